package mcpstate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// overTransports runs a test with clients over each transport. The users ann and
// bob have a card and an order.
func overTransports(t *testing.T, test func(t *testing.T, m *workspace.Manager, file string, connect connector)) {
	for name, connector := range transports {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "desk.db")
			m, err := openDesk(t.Context(), file)
			must(err)
			t.Cleanup(func() { m.Close() })
			for _, user := range []string{"ann", "bob"} {
				must(m.Update(t.Context(), user, func(w *workspace.Workspace) error {
					return errors.Join(card.Set(w.State(), "4242-4242"), order.Set(w.State(), "#W1"),
						refunds.Set(w.State(), []int{5}), notes.Set(w.State(), []string{"paid with 4242-4242"}))
				}))
			}
			test(t, m, file, connector(t, m, file))
		})
	}
}

func TestAGuestSeesOnlyWhatItMayUse(t *testing.T) {
	overTransports(t, func(t *testing.T, _ *workspace.Manager, _ string, connect connector) {
		billing, guest := connect("ann", "billing", nil, ""), connect("ann", "guest", nil, "")
		equal(t, []string{"note", "refund"}, names(t, billing))
		equal(t, []string{"note"}, names(t, guest))
		equal(t, []string{"state://ann/order", "state://ann/refunds", "state://ann/notes"}, uris(t, billing))
		equal(t, []string{"state://ann/order", "state://ann/notes"}, uris(t, guest))

		equal(t, "[5]", read(t, billing, "ann", "refunds"))
		equal(t, `["paid with [SECRET]"]`, read(t, billing, "ann", "notes"))
		equal(t, `["paid with [SECRET]"]`, read(t, guest, "ann", "notes"))
		contains(t, read(t, billing, "ann", "card"), "Resource not found")
		for _, missing := range [][2]string{
			{"ann", "refunds"}, {"ann", "card"}, {"ann", "messages"}, {"ann", "other"}, {"bob", "order"},
		} {
			contains(t, read(t, guest, missing[0], missing[1]), "Resource not found")
		}
		equal(t, "error: unknown tool refund", call(t, guest, "refund", map[string]any{"amount": 5}))
		contains(t, call(t, billing, "refund", map[string]any{"amount": 5, "card": "mine"}), "error: ")
		equal(t, `{"amount":5,"to":"[SECRET]"}`, call(t, billing, "refund", map[string]any{"amount": 5}))
		equal(t, "[5,5]", read(t, billing, "ann", "refunds"))
	})
}

// Tools of a server change workspaces one call at a time, each once, and leave
// no message.
func TestParallelCallsOfTwoUsers(t *testing.T) {
	overTransports(t, func(t *testing.T, m *workspace.Manager, file string, connect connector) {
		users := []string{"ann", "bob"}
		var wg sync.WaitGroup
		for _, user := range users {
			s := connect(user, "billing", nil, "")
			for i := range 8 {
				wg.Go(func() {
					equal(t, fmt.Sprintf(`{"amount":%d,"to":"[SECRET]"}`, i), call(t, s, "refund", map[string]any{"amount": i}))
				})
			}
		}
		wg.Wait()
		log, err := os.ReadFile(file + ".log")
		must(err)
		equal(t, 16, strings.Count(string(log), "\n"))
		for _, user := range users {
			view, err := m.View(t.Context(), user)
			must(err)
			amounts := refunds.Or(view.State(), nil)
			slices.Sort(amounts)
			equal(t, []int{0, 1, 2, 3, 4, 5, 5, 6, 7}, amounts)
			equal(t, 0, len(state.Messages.Or(view.State(), nil)))
			equal(t, 0, len(view.Queue)+view.Tickets+len(view.Ended))
		}
		// A tool that fails leaves the workspace as it was.
		s := connect("ann", "billing", nil, "")
		before, err := m.View(t.Context(), "ann")
		must(err)
		equal(t, `error: tool "refund": the amount is negative`, call(t, s, "refund", map[string]any{"amount": -1}))
		after, err := m.View(t.Context(), "ann")
		must(err)
		equal(t, before.Version, after.Version)
	})
}

func TestSubscriptions(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			overTransports(t, func(t *testing.T, m *workspace.Manager, _ string, connect connector) {
				testSubscriptions(t, m, connect, version)
			})
		})
	}
}

func testSubscriptions(t *testing.T, m *workspace.Manager, connect connector, version string) {
	var mu sync.Mutex
	seen := map[string]bool{} // client and URI
	heard := make(chan struct{}, 1)
	client := func(agent string) *mcp.ClientSession {
		return connect("ann", agent, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
				mu.Lock()
				seen[agent+" "+req.Params.URI] = true
				mu.Unlock()
				select {
				case heard <- struct{}{}:
				default:
				}
			},
		}, version)
	}
	subscribe := func(s *mcp.ClientSession, field string) error {
		return s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: mcpstate.URI("ann", field)})
	}
	billing, guest := client("billing"), client("guest")
	must(subscribe(billing, "refunds"))
	// A client of the newer protocol learns in the background that it is refused.
	if err := subscribe(guest, "refunds"); err == nil && version == "2025-11-25" {
		t.Error("a guest may subscribe to a hidden field")
	}
	must(subscribe(guest, "notes"))
	// The subscriptions begin in the background, so the changes are repeated.
	want := map[string]bool{"billing state://ann/refunds": true, "guest state://ann/notes": true}
	for {
		must(m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			return errors.Join(refunds.Set(w.State(), []int{1}), notes.Set(w.State(), []string{"n"}))
		}))
		select {
		case <-heard:
		case <-time.After(300 * time.Millisecond):
		}
		mu.Lock()
		got := fmt.Sprint(seen)
		n := len(seen)
		mu.Unlock()
		if n >= len(want) {
			equal(t, fmt.Sprint(want), got)
			return
		}
	}
}

// watched counts the users who are watched.
type watched struct {
	mcpstate.States
	began, now atomic.Int64
}

func (w *watched) Watch(ctx context.Context, user string) iter.Seq2[[]string, error] {
	w.now.Add(1)
	w.began.Add(1)
	context.AfterFunc(ctx, func() { w.now.Add(-1) })
	return w.States.Watch(ctx, user)
}

// A field is watched as long as there are subscriptions to it.
func TestWatchingEndsWithTheLastSubscription(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		ends := map[string]func(first, second *mcp.ClientSession){
			"unsubscribe": func(first, second *mcp.ClientSession) {
				for _, s := range []*mcp.ClientSession{first, second} {
					must(s.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: mcpstate.URI("local", "notes")}))
				}
			},
			"close": func(first, second *mcp.ClientSession) { must(first.Close()); must(second.Close()) },
		}
		for name, end := range ends {
			t.Run(version+" "+name, func(t *testing.T) {
				w := &watched{States: mcpstate.Memory(desk(), nil)}
				srv := newServer()
				mcpstate.AddFields(srv, w)
				url := serve(t, srv)
				first, second := connect(t, url, "ann", "", nil, version), connect(t, url, "ann", "", nil, version)
				for _, s := range []*mcp.ClientSession{first, second, first} {
					must(s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: mcpstate.URI("local", "notes")}))
				}
				testkit.Until(func() bool { return w.began.Load() > 0 })
				end(first, second)
				testkit.Until(func() bool { return w.now.Load() == 0 })
			})
		}
	}
}

// All subscriptions of a user share a watch, and a client may have 1000.
func TestSubscriptionsShareAWatch(t *testing.T) {
	st := state.New(nil)
	for i := range 1001 {
		must(st.KV().Set(fmt.Sprint("key", i), i))
	}
	w := &watched{States: mcpstate.Memory(st, nil)}
	srv := newServer()
	mcpstate.AddFields(srv, w)
	s := connect(t, serve(t, srv), "ann", "", nil, "2025-11-25")
	for i := range 1001 {
		err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: mcpstate.URI("local", fmt.Sprint("key", i))})
		var refused *jsonrpc.Error
		if i < 1000 && err != nil || i == 1000 && (!errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams) {
			t.Fatal(i, err)
		}
	}
	equal(t, 1, int(w.began.Load()))
	must(s.Close())
	testkit.Until(func() bool { return w.now.Load() == 0 })
}

// A key of more than 256 bytes is refused before the tool is called.
func TestLongIdempotencyKeyIsRefused(t *testing.T) {
	called := 0
	count := tool.Must(tool.New("count", "Counts.", func(context.Context, struct{}) (int, error) { called++; return called, nil }))
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Memory(state.New(nil), nil), count)
	s := connect(t, serve(t, srv), "ann", "", nil, "2025-11-25")
	for _, length := range []int{256, 257} {
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "count", Meta: mcp.Meta{mcpstate.IdempotencyKey: strings.Repeat("k", length)},
		})
		var refused *jsonrpc.Error
		if ok := errors.As(err, &refused) && refused.Code == jsonrpc.CodeInvalidParams; ok != (length > 256) {
			t.Error(length, err)
		}
	}
	equal(t, 1, called)
}
