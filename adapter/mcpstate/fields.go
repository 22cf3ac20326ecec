package mcpstate

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
)

const scheme = "state://"

// URI returns the URI of a field as a resource: state://user/field.
func URI(user, field string) string {
	return scheme + url.PathEscape(user) + "/" + url.PathEscape(field)
}

// parseURI returns the parts of a URI.
func parseURI(uri string) (user, field string, ok bool) {
	path, ok := strings.CutPrefix(uri, scheme)
	user, field, found := strings.Cut(path, "/")
	user, err := url.PathUnescape(user)
	if err != nil || !ok || !found {
		return "", "", false
	}
	field, err = url.PathUnescape(field)
	return user, field, err == nil
}

// AddFields adds the fields of states to a server, as resources with the values
// as JSON. A client sees those that its agent may read, without secrets, without
// references to Go values and, if there are names, only these. Values of
// secrets that other fields repeat are masked. A field without a value is not
// found.
func AddFields(srv *mcp.Server, states States, names ...string) {
	f := &fields{states, names}
	// The template tells clients the form of the URIs, and gives the server the
	// capability.
	srv.AddResourceTemplate(&mcp.ResourceTemplate{
		Name:        "field",
		Description: "A field of the state, as JSON",
		MIMEType:    "application/json",
		URITemplate: scheme + "{user}/{field}",
	}, f.read)
	srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListResourcesResult); ok && err == nil && list.NextCursor == "" {
				return f.list(ctx, req, list)
			}
			return result, err
		}
	})
}

type fields struct {
	states States
	names  []string
}

// of returns the fields that the sender of a request may see.
func (f *fields) of(st *state.State) []state.FieldInfo {
	return slices.DeleteFunc(st.Fields(), func(info state.FieldInfo) bool {
		return info.Secret || info.Reference || len(f.names) > 0 && !slices.Contains(f.names, info.Name)
	})
}

// list adds the fields to the last page of a list.
func (f *fields) list(ctx context.Context, req mcp.Request, list *mcp.ListResourcesResult) (mcp.Result, error) {
	view, err := f.states.View(ctx, req)
	if err != nil {
		return nil, wrap("list fields", err)
	}
	for _, info := range f.of(view.State) {
		if info.Set {
			list.Resources = append(list.Resources, &mcp.Resource{
				URI: URI(view.User, info.Name), Name: info.Name, Description: info.Description, MIMEType: "application/json",
			})
		}
	}
	list.CacheScope = "private"
	return list, nil
}

// read returns the value of a field. What the sender may not see is not found,
// like what does not exist.
func (f *fields) read(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	owner, name, ok := parseURI(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	view, err := f.states.View(ctx, req)
	if err != nil {
		return nil, err
	}
	isNamed := func(info state.FieldInfo) bool { return info.Name == name }
	value, err := state.GetAs[state.JSON](view.State, name)
	if err != nil || view.User != owner || !slices.ContainsFunc(f.of(view.State), isNamed) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{
		Cacheable: mcp.Cacheable{CacheScope: "private"},
		Contents: []*mcp.ResourceContents{{
			URI: uri, MIMEType: "application/json", Text: view.Redact(string(value)),
		}},
	}, nil
}
