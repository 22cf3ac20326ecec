package mcpstate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// The tests of this file show what the README says of HTTP. A framework that no
// longer behaves like that fails them, and the README is to be changed.

// served says how workspaces are served: by n servers, whose requests take turns,
// which let clients keep what they read for a minute if cached.
type served struct {
	n                 int
	stateless, cached bool
}

func replicas(t *testing.T, s served, tools ...*tool.Tool) string {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: schema})
	must(err)
	t.Cleanup(func() { must(m.Close()) })
	var handlers []http.Handler
	for range s.n {
		opts := &mcp.ServerOptions{}
		if s.cached {
			opts.SetCacheable = func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs = 60_000 }
		}
		srv := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, opts)
		mcpstate.AddTools(srv, mcpstate.Workspaces(m, who), tools...)
		mcpstate.AddFields(srv, mcpstate.Workspaces(m, who))
		handlers = append(handlers, mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: s.stateless}))
	}
	var turn atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handlers[int(turn.Add(1))%s.n].ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Several processes need a server without sessions.
func TestReplicasNeedNoSessions(t *testing.T) {
	note := tools(func() {})[1]
	for stateless, version := range map[bool]string{true: "2026-07-28", false: "2025-11-25"} {
		s := connect(t, replicas(t, served{n: 2, stateless: stateless}, note), "ann", "guest", nil, "")
		equal(t, version, s.InitializeResult().ProtocolVersion)
		_, err := s.ListTools(t.Context(), nil)
		if stateless {
			must(err)
			equal(t, "a", call(t, s, "note", map[string]any{"text": "a"}))
			continue
		}
		if err == nil {
			t.Fatal("the second process knows the session of the first")
		}
		contains(t, err.Error(), "session not found")
	}
}

// The Key of a call with a name is of the name of the client, which an older client
// says only when it begins a session.
func TestKeysOfClientsThatServersWithoutSessionsDoNotKnow(t *testing.T) {
	keys := map[string][]string{}
	for _, c := range []struct {
		stateless bool
		version   string
	}{{true, ""}, {false, ""}, {true, "2025-11-25"}, {false, "2025-11-25"}} {
		var key string
		look := tool.Must(tool.New("look", "Looks.", func(ctx context.Context, _ struct{}) (string, error) {
			of, _ := tool.CallOf(ctx)
			key = of.Key
			return "", nil
		}))
		s := connect(t, replicas(t, served{n: 1, stateless: c.stateless}, look), "ann", "guest", nil, c.version)
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "look", Meta: mcp.Meta{mcpstate.IdempotencyKey: "k1"}})
		must(err)
		if c.stateless && c.version != "" {
			keys["unknown"] = append(keys["unknown"], key)
		} else {
			keys["known"] = append(keys["known"], key)
		}
	}
	equal(t, 3, len(keys["known"]))
	equal(t, []string{keys["known"][0]}, slices.Compact(slices.Clone(keys["known"])))
	if keys["unknown"][0] == keys["known"][0] {
		t.Error("the client is known: the README says that it is not")
	}
}

// A call that its client has given up is made and stored if the server has no sessions.
func TestACallThatItsClientGivesUp(t *testing.T) {
	for _, stateless := range []bool{true, false} {
		called, left, ended := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
		slow := tool.Must(tool.New("slow", "Writes.", func(ctx context.Context, _ struct{}) ([]string, error) {
			close(called)
			<-left
			if stateless { // nobody tells it
				ended <- ctx.Err() != nil
				return []string{"written"}, nil
			}
			<-ctx.Done()
			ended <- true
			return nil, ctx.Err()
		}, tool.To(notes, "")))
		s := connect(t, replicas(t, served{n: 1, stateless: stateless}, slow), "ann", "guest", nil, "")
		ctx, giveUp := context.WithCancel(t.Context())
		go func() { <-called; giveUp() }()
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
		if err == nil {
			t.Error("the call has a result")
		}
		_, err = s.ListTools(t.Context(), nil) // a round trip behind what the client says of it
		must(err)
		close(left)
		equal(t, !stateless, <-ended)
	}
}
