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

// ServerOptions returns a copy of options, or new ones, with which a server
// accepts subscriptions. [AddFields] decides which.
func ServerOptions(opts *mcp.ServerOptions) *mcp.ServerOptions {
	with := mcp.ServerOptions{}
	if opts != nil {
		with = *opts
	}
	if with.SubscribeHandler == nil {
		with.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	}
	if with.UnsubscribeHandler == nil {
		with.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	return &with
}

// AddFields adds the fields of states to a server, as resources with the values
// as JSON. A client sees those that its agent may read, without secrets, without
// references to Go values and, if there are names, only these. Values of
// secrets that other fields repeat are masked. A field without a value is not
// found.
//
// A client that subscribes to a field is notified of each change, by any
// process. The server needs [ServerOptions]. A subscription that the client
// has no right to is not found, and one more than 1000 of a client is refused.
func AddFields(srv *mcp.Server, states States, names ...string) {
	f := &fields{states: states, names: names, subscriptions: newSubscriptions(srv, states)}
	// The template tells clients the form of the URIs, and gives the server the
	// capability.
	srv.AddResourceTemplate(&mcp.ResourceTemplate{
		Name:        "field",
		Description: "A field of the state, as JSON",
		MIMEType:    "application/json",
		URITemplate: scheme + "{user}/{field}",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return f.read(ctx, req, req.Params.URI)
	})
	srv.AddReceivingMiddleware(f.middleware)
}

type fields struct {
	states        States
	names         []string
	subscriptions *subscriptions
}

// of returns the fields that the sender of a request may see.
func (f *fields) of(st *state.State) []state.FieldInfo {
	return slices.DeleteFunc(st.Fields(), func(info state.FieldInfo) bool {
		return info.Secret || info.Reference || len(f.names) > 0 && !slices.Contains(f.names, info.Name)
	})
}

func (f *fields) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, _ := req.GetSession().(*mcp.ServerSession)
		switch params := req.GetParams().(type) {
		case *mcp.SubscribeParams: // lasts as long as the session, or until UnsubscribeParams
			release, err := f.subscribe(ctx, req, params.URI)
			if err != nil {
				return nil, err
			}
			if err := f.subscriptions.keep(session, params.URI, release); err != nil {
				return nil, err
			}
			result, err := next(ctx, method, req)
			if err != nil {
				f.subscriptions.drop(session, params.URI)
			}
			return result, err
		case *mcp.UnsubscribeParams:
			f.subscriptions.drop(session, params.URI)
		case *mcp.SubscriptionsListenParams: // the call lasts as long as the subscriptions
			if params.Notifications == nil {
				break
			}
			if len(params.Notifications.ResourceSubscriptions) > maxSubscriptions {
				return nil, errTooMany
			}
			for _, uri := range params.Notifications.ResourceSubscriptions {
				release, err := f.subscribe(ctx, req, uri)
				if err != nil {
					return nil, err
				}
				defer release()
			}
		}
		result, err := next(ctx, method, req)
		if list, ok := result.(*mcp.ListResourcesResult); ok && err == nil && list.NextCursor == "" {
			return f.list(ctx, req, list)
		}
		return result, err
	}
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
				URI:         URI(view.User, info.Name),
				Name:        info.Name,
				Description: info.Description,
				MIMEType:    "application/json",
			})
		}
	}
	list.CacheScope = "private"
	return list, nil
}

// read returns the value of a field.
func (f *fields) read(ctx context.Context, req mcp.Request, uri string) (*mcp.ReadResourceResult, error) {
	view, name, err := f.field(ctx, req, uri)
	if err != nil {
		return nil, err
	}
	value, err := state.GetAs[state.JSON](view.State, name)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{
		Cacheable: mcp.Cacheable{CacheScope: "private"},
		Contents: []*mcp.ResourceContents{{
			URI: uri, MIMEType: "application/json", Text: view.Redact(string(value)),
		}},
	}, nil
}

// subscribe begins to notify the subscribers of a field, until release is
// called.
func (f *fields) subscribe(ctx context.Context, req mcp.Request, uri string) (release func(), err error) {
	if !strings.HasPrefix(uri, scheme) { // another resource of the server
		return func() {}, nil
	}
	view, name, err := f.field(ctx, req, uri)
	if err != nil {
		return nil, err
	}
	return f.subscriptions.begin(ctx, view.User, name)
}

// field returns the state and the name of a field that the sender of a request
// may see. What it may not see is not found, like what does not exist.
func (f *fields) field(ctx context.Context, req mcp.Request, uri string) (view View, name string, err error) {
	owner, name, ok := parseURI(uri)
	if !ok {
		return View{}, "", mcp.ResourceNotFoundError(uri)
	}
	view, err = f.states.View(ctx, req)
	if err != nil {
		return View{}, "", err
	}
	isNamed := func(info state.FieldInfo) bool { return info.Name == name }
	if view.User != owner || !slices.ContainsFunc(f.of(view.State), isNamed) {
		return View{}, "", mcp.ResourceNotFoundError(uri)
	}
	return view, name, nil
}
