package mcpstate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
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
			amounts := refunds.GetOr(view.State(), nil)
			slices.Sort(amounts)
			equal(t, []int{0, 1, 2, 3, 4, 5, 5, 6, 7}, amounts)
			equal(t, 0, len(state.Messages.GetOr(view.State(), nil)))
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
