package mcpstate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// A client sees the fields that AddFields names, once and behind the server's own
// resources on any number of pages, and no reference. No other client may be shown
// what was cached for it.
func TestFieldsOfAServerWithResources(t *testing.T) {
	type pool struct{ n int }
	conns := &state.Field[*pool]{Name: "conns", Read: state.Public, Ephemeral: true, NoCopy: true}
	share := &state.Field[int]{Name: "share 50%/day", Read: state.Public}
	other := &state.Field[string]{Name: "other", Read: state.Public}
	st := state.New(state.MustSchema(conns, share, other, state.Team{"guest": nil}))
	must(errors.Join(conns.Set(st, &pool{1}), share.Set(st, 7), other.Set(st, "x")))

	srv := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
	for _, uri := range []string{"file:///a", "file:///b"} {
		srv.AddResource(&mcp.Resource{Name: uri, URI: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, errors.New("not read")
		})
	}
	states := mcpstate.Memory(st, func(mcp.Request) (string, error) { return "guest", nil })
	mcpstate.AddFields(srv, states, "conns", "share 50%/day")
	mcpstate.AddTools(srv, states, tools(nil)[1])
	client := connectInMemory(t, srv)
	uri := mcpstate.URI("local", "share 50%/day")
	equal(t, []string{"file:///a", "file:///b", uri}, uris(t, client))
	equal(t, "7", read(t, client, "local", "share 50%/day"))
	for _, hidden := range []string{"conns", "other"} {
		if _, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: mcpstate.URI("local", hidden)}); err == nil {
			t.Errorf("%s is shown", hidden)
		}
	}
	page := &mcp.ListResourcesParams{}
	for {
		list, err := client.ListResources(t.Context(), page)
		must(err)
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			equal(t, "private", string(list.CacheScope))
			break
		}
	}
	listed, err := client.ListTools(t.Context(), nil)
	must(err)
	equal(t, "private", string(listed.CacheScope))
}

// A field that repeats a secret is masked for an agent that may not read the secret.
func TestFieldsThatRepeatASecret(t *testing.T) {
	st := desk()
	must(notes.Set(st, []string{"card 4242-4242"}))
	srv := newServer()
	mcpstate.AddFields(srv, mcpstate.Memory(st, func(mcp.Request) (string, error) { return "guest", nil }))
	equal(t, `["card [SECRET]"]`, read(t, connectInMemory(t, srv), "local", "notes"))
}

// What a tool that fails has written to a workspace is undone.
func TestAToolThatFailsWritesNothing(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: schema})
	must(err)
	defer m.Close()
	half := tool.Must(tool.NewStateful("half", "", func(_ context.Context, st *state.State, _ struct{}) (string, error) {
		return "", errors.Join(notes.Set(st, []string{"half"}), errors.New("then it fails"))
	}))
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Workspaces(m, func(mcp.Request) (user, agent string, err error) { return "ann", "billing", nil }), half)
	contains(t, call(t, connectInMemory(t, srv), "half", struct{}{}), "then it fails")
	view, err := m.View(t.Context(), "ann")
	if !errors.Is(err, workspace.ErrNotFound) {
		must(err)
		equal(t, []string(nil), notes.GetOr(view.State(), nil))
	}
}
