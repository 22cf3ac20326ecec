package mcpstate_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

func TestClientsSeeWhatTheirAgentMayUse(t *testing.T) {
	var refunded atomic.Int64
	st := desk()
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Memory(st, agentOf), tools(func() { refunded.Add(1) })...)
	url := serve(t, srv)
	billing, guest := connect(t, url, "u", "billing", nil, ""), connect(t, url, "u", "guest", nil, "")

	equal(t, []string{"note", "refund"}, names(t, billing))
	equal(t, []string{"note"}, names(t, guest))
	for remote, err := range billing.Tools(t.Context(), nil) {
		must(err)
		schema, err := state.JSONOf(remote.InputSchema)
		must(err)
		if strings.Contains(string(schema), "card") {
			t.Errorf("the schema shows an injected parameter: %s", schema)
		}
		if remote.Name == "note" && (remote.Annotations.Title != "Note" || !remote.Annotations.IdempotentHint) {
			t.Errorf("annotations are lost: %+v", remote.Annotations)
		}
	}

	equal(t, `{"amount":5,"to":"[SECRET]"}`, call(t, billing, "refund", map[string]any{"amount": 5}))
	contains(t, call(t, billing, "refund", map[string]any{"amount": 5, "card": "mine"}), "error: ")
	equal(t, `error: tool "refund": the amount is negative`, call(t, billing, "refund", map[string]any{"amount": -1}))
	equal(t, "error: unknown tool refund", call(t, guest, "refund", map[string]any{"amount": 5}))
	equal(t, "hello", call(t, guest, "note", map[string]any{"text": "hello"}))
	equal(t, int64(2), refunded.Load())
	equal(t, []int{5}, refunds.GetOr(st, nil))
	equal(t, []string{"hello"}, notes.GetOr(st, nil))

	stranger := connect(t, url, "", "", nil, "")
	if _, err := stranger.ListTools(t.Context(), nil); err == nil {
		t.Error("a client that is not authenticated sees tools")
	}
}

func TestStructuredAndOwnContents(t *testing.T) {
	srv := newServer()
	raw := func(name string, out state.JSON) *tool.Tool {
		return tool.Must(tool.Raw(name, "", `{"type":"object"}`, func(context.Context, state.JSON) (state.JSON, error) {
			return out, nil
		}))
	}
	mcpstate.AddTools(srv, mcpstate.Memory(state.New(nil), nil),
		raw("object", `{"n":9007199254740993}`), raw("list", `[1,2]`), raw("nothing", ``), raw("empty", `[]`),
		raw("parts", `[{"type":"text","text":"a chart"},{"type":"image","mimeType":"image/png","data":"aGk="}]`),
	)
	s := connect(t, serve(t, srv), "u", "", nil, "")
	equal(t, `{"n":9007199254740993}`, call(t, s, "object", nil))
	equal(t, `[1,2]`, call(t, s, "list", nil))
	equal(t, `nothing successfully executed`, call(t, s, "nothing", nil))
	equal(t, `[]`, call(t, s, "empty", nil))
	equal(t, `a chart<*mcp.ImageContent>`, call(t, s, "parts", nil))
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "object"})
	must(err)
	if result.StructuredContent == nil {
		t.Error("an object is not structured content")
	}

	// What was served comes back as it was.
	imported, err := mcpstate.Import(t.Context(), s, &mcpstate.ImportOptions{Prefix: "far."})
	must(err)
	var calls []state.ToolCall
	for _, t := range imported {
		calls = append(calls, state.ToolCall{ID: t.Name(), Name: t.Name(), Input: "{}"})
	}
	for _, r := range ran(tool.Run(t.Context(), state.New(nil), imported, calls)) {
		want := map[string]string{
			"object": `{"n":9007199254740993}`, "list": `[1,2]`, "nothing": `"nothing successfully executed"`, "empty": "[]",
			"parts": `[{"type":"text","text":"a chart"},{"type":"image","mimeType":"image/png","data":"aGk="}]`,
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.Message.Call().Name, "far."), "far_"), "_")
		if !r.Message.Content().Equal(state.JSON(want[name])) || r.Err != nil {
			t.Errorf("%s: %s, %v; want %s", r.Message.Call().Name, r.Message.Content(), r.Err, want[name])
		}
	}
}

func TestImportBindsFieldsAndNamesCalls(t *testing.T) {
	var seen []string
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Memory(state.New(nil), nil),
		tool.Must(tool.New("order.status", "", func(ctx context.Context, in struct {
			Order string `json:"order"`
		}) (string, error) {
			c, _ := tool.CallOf(ctx)
			seen = append(seen, c.ID, c.Key)
			if in.Order == "" {
				return "", errors.New("no such order")
			}
			return "shipped " + in.Order, nil
		})))
	s := connect(t, serve(t, srv), "u", "", nil, "")
	imported, err := mcpstate.Import(t.Context(), s, &mcpstate.ImportOptions{
		Bind: func(*mcp.Tool) []tool.Option { return []tool.Option{tool.From(order, "order")} },
	})
	must(err)
	st := desk()
	run := func() tool.Result {
		return ran(tool.Run(t.Context(), st, imported, []state.ToolCall{{ID: "c1", Name: imported[0].Name(), Input: "{}", Key: "key"}}))[0]
	}
	equal(t, "shipped #W1", run().Message.Text())
	must(order.Set(st, ""))
	contains(t, run().Message.Text(), `tool "order.status": no such order`)
	equal(t, []string{"key", seen[1], "key", seen[1]}, seen)

	_, err = mcpstate.Import(t.Context(), s, &mcpstate.ImportOptions{
		Bind: func(*mcp.Tool) []tool.Option { return []tool.Option{tool.From(order, "missing")} },
	})
	if err == nil || !strings.Contains(err.Error(), `mcpstate: import tool "order.status"`) {
		t.Error(err)
	}
}

func TestNamesOfUsersAreEscaped(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: schema})
	must(err)
	t.Cleanup(func() { m.Close() })
	must(m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error { return order.Set(w.State(), "#W1") }))
	srv := newServer()
	mcpstate.AddFields(srv, mcpstate.Workspaces(m, who))
	s := connect(t, serve(t, srv), "ann/1", "guest", nil, "")
	equal(t, []string{"state://ann%2F1/order"}, uris(t, s))
	equal(t, `"#W1"`, read(t, s, "ann/1", "order"))
}

// A call that waits for a person has no place in a server: the client has the
// conversation. The client is told, and nothing is left behind.
func TestACallThatWaitsForAPerson(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: schema})
	must(err)
	t.Cleanup(func() { m.Close() })
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Workspaces(m, who), tool.Must(tool.New("approve", "",
		func(context.Context, struct{}) (string, error) {
			return "", tool.Suspend(errors.New("a person has to approve"))
		})))
	s := connect(t, serve(t, srv), "ann", "billing", nil, "")
	equal(t, "error: The call waits for a decision and has no result yet.", call(t, s, "approve", nil))
	view, err := m.View(t.Context(), "ann")
	must(err)
	equal(t, 0, len(view.Suspended()))
}

// A call that a client makes again has the key that it had, on another connection
// too. That of another sender, of another tool or without a name has another one.
func TestKeysOfCalls(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: schema})
	must(err)
	t.Cleanup(func() { m.Close() })
	var key string
	tell := func(name string) *tool.Tool {
		return tool.Must(tool.New(name, "", func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := tool.CallOf(ctx)
			key = c.Key
			return "", nil
		}))
	}
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Workspaces(m, who), tell("pay"), tell("refund"))
	url := serve(t, srv)
	keyOf := func(user, agent, tool, name string) string {
		s := connect(t, url, user, agent, nil, "")
		key = ""
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Meta: mcp.Meta{mcpstate.IdempotencyKey: name}})
		must(err)
		return key
	}
	first := keyOf("ann", "billing", "pay", "1")
	equal(t, first, keyOf("ann", "billing", "pay", "1"))
	keys := map[string]bool{first: true, "": true, "1": true}
	for _, c := range [][4]string{
		{"bob", "billing", "pay", "1"}, {"ann", "guest", "pay", "1"}, {"ann", "billing", "refund", "1"}, {"ann", "billing", "pay", "2"},
		{"ann", "billing", "pay", ""}, {"ann", "billing", "pay", ""},
	} {
		other := keyOf(c[0], c[1], c[2], c[3])
		equal(t, false, keys[other])
		keys[other] = true
	}
}

// ran returns v, and panics if err is not nil.
func ran[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
