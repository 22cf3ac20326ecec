package mcpstate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/tool"
)

const rounds = 100

type topic struct {
	Topic string `json:"topic"`
}

// work takes longer for the first of two topics.
func work(topic string) {
	if topic == "first" {
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(time.Millisecond)
}

var (
	inOrder = []string{"first", "second"}
	calls   = []state.ToolCall{
		{ID: "1", Name: "note", Input: `{"topic":"first"}`}, {ID: "2", Name: "note", Input: `{"topic":"second"}`},
	}
)

// callBoth makes the calls of one message of a model at the same time, as
// clients do.
func callBoth(t *testing.T, s *mcp.ClientSession) {
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() {
			_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.Name, Arguments: c.Input})
			must(err)
		})
	}
	wg.Wait()
}

// The SDK, v1.8.0, has no state, and calls the handlers of a session at the same
// time. A list that they share, with a lock for each access, loses notes. A lock
// for the whole change loses none, but the order is that of time.
func TestSDKAloneLosesNotesAndTheirOrder(t *testing.T) {
	var mu sync.Mutex
	var list []string
	get := func() []string { mu.Lock(); defer mu.Unlock(); return list }
	set := func(l []string) { mu.Lock(); defer mu.Unlock(); list = l }
	for name, note := range map[string]func(topic string){
		"get and set": func(topic string) {
			had := get()
			work(topic)
			set(append(had[:len(had):len(had)], topic))
		},
		"append under a lock": func(topic string) {
			work(topic)
			mu.Lock()
			defer mu.Unlock()
			list = append(list, topic)
		},
	} {
		srv := newServer()
		mcp.AddTool(srv, &mcp.Tool{Name: "note"}, func(_ context.Context, _ *mcp.CallToolRequest, in topic) (*mcp.CallToolResult, any, error) {
			note(in.Topic)
			return nil, nil, nil
		})
		s := connectInMemory(t, srv)
		lost := adaptertest.Rounds(rounds, inOrder, func() []string { set(nil); callBoth(t, s); return get() })
		t.Logf("%s: %d of %d rounds", name, lost, rounds)
		if lost == 0 {
			t.Errorf("%s: nothing was lost: the SDK has changed", name)
		}
	}
}

// A session of the SDK, v1.8.0, has no id in memory and over stdio: state that is
// kept by it is shared by all clients.
func TestSDKSessionsHaveNoID(t *testing.T) {
	srv := newServer()
	connectInMemory(t, srv)
	connectInMemory(t, srv)
	for session := range srv.Sessions() {
		equal(t, "", session.ID())
	}
}

// With the adapter, the host of the state joins what the calls of a message
// write, in the order of the message.
func TestImportedToolsLoseNothing(t *testing.T) {
	srv := newServer()
	mcp.AddTool(srv, &mcp.Tool{Name: "note"}, func(_ context.Context, _ *mcp.CallToolRequest, in topic) (*mcp.CallToolResult, topic, error) {
		work(in.Topic)
		return nil, in, nil
	})
	imported, err := mcpstate.Import(t.Context(), connectInMemory(t, srv), &mcpstate.ImportOptions{
		Bind: func(*mcp.Tool) []tool.Option {
			return []tool.Option{tool.ToFunc(notes, "topic", func(s string) ([]string, error) { return []string{s}, nil })}
		},
	})
	must(err)
	equal(t, 0, adaptertest.Rounds(rounds, inOrder, func() []string {
		st := state.New(schema)
		ran(tool.Run(t.Context(), st.As("guest"), imported, calls))
		return notes.GetOr(st, nil)
	}))
}

// Calls of several clients have no order. None is lost.
func TestServedToolsLoseNothing(t *testing.T) {
	st := state.New(schema)
	note := tool.Must(tool.New("note", "", func(_ context.Context, in topic) (string, error) {
		work(in.Topic)
		return in.Topic, nil
	}, tool.ToFunc(notes, "", func(s string) ([]string, error) { return []string{s}, nil })))
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Memory(st, nil), note)
	s := connectInMemory(t, srv)
	for range rounds {
		callBoth(t, s)
	}
	equal(t, 2*rounds, state.ListLen(st, notes))
}
