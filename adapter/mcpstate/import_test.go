package mcpstate_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/tool"
)

// What a server answers is the result of an imported tool, or its error. A call
// without an id has no key.
func TestResultsOfImportedTools(t *testing.T) {
	text := []mcp.Content{&mcp.TextContent{Text: "No such order."}}
	var mu sync.Mutex
	var metas []mcp.Meta
	srv := newServer()
	for name, result := range map[string]*mcp.CallToolResult{
		"fails":      {IsError: true, Content: text},
		"fails_mute": {IsError: true},
		"structured": {Content: text, StructuredContent: json.RawMessage(`{"n":1}`)},
		"says":       {Content: text},
		"nothing":    {},
	} {
		srv.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				metas = append(metas, req.Params.Meta)
				answer := *result // the SDK adds to it
				return &answer, nil
			})
	}
	imported, err := mcpstate.Import(t.Context(), connectInMemory(t, srv), &mcpstate.ImportOptions{Prefix: "shop_"})
	must(err)
	for name, want := range map[string]struct {
		text  string
		fails bool
	}{
		"fails":      {`tool "shop_fails": No such order.`, true},
		"fails_mute": {`tool "shop_fails_mute": the tool failed without a text`, true},
		"structured": {`{"n":1}`, false},
		"says":       {"No such order.", false},
		"nothing":    {"null", false},
	} {
		metas = nil
		results, err := tool.Run(t.Context(), state.New(nil), imported, []state.ToolCall{
			{Name: "shop_" + name, Input: `{}`}, {ID: "c1", Name: "shop_" + name, Input: `{}`},
		})
		must(err)
		for _, r := range results {
			equal(t, want.text, r.Message.Text())
			equal(t, want.fails, r.Err != nil)
		}
		keys := 0
		for _, m := range metas {
			if _, ok := m[mcpstate.IdempotencyKey]; ok {
				keys++
			}
		}
		equal(t, 1, keys)
	}
}
