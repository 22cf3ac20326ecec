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

// What a server answers is the result of an imported tool, or its error. Each call
// has a key of its own.
func TestResultsOfImportedTools(t *testing.T) {
	text := []mcp.Content{&mcp.TextContent{Text: "No such order."}}
	var mu sync.Mutex
	var metas []mcp.Meta
	srv := newServer()
	for name, result := range map[string]*mcp.CallToolResult{
		"fails":      {IsError: true, Content: text},
		"fails_mute": {IsError: true},
		"fails_rows": {IsError: true, StructuredContent: json.RawMessage(`{"why":"no stock"}`)},
		"fails_both": {IsError: true, Content: text, StructuredContent: json.RawMessage(`{"n":1}`)},
		"structured": {StructuredContent: json.RawMessage(`{"n":1}`)},
		"both":       {Content: text, StructuredContent: json.RawMessage(`{"n":1}`)},
		"both_taken": {Content: text, StructuredContent: json.RawMessage(`{"content":1}`)},
		"both_list":  {Content: text, StructuredContent: json.RawMessage(`[1]`)},
		"both_texts": {Content: append(text, text...), StructuredContent: json.RawMessage(`{"n":1}`)},
		"digits":     {Content: []mcp.Content{&mcp.TextContent{Text: `{"n": 9007199254740993}`}}, StructuredContent: json.RawMessage(`{"n":9007199254740993}`)},
		"other_json": {Content: []mcp.Content{&mcp.TextContent{Text: "3"}}, StructuredContent: json.RawMessage(`{"n":1}`)},
		"rounded":    {StructuredContent: json.RawMessage(`{"n":[9007199254740993]}`)},
		"asks":       {InputRequests: mcp.InputRequestMap{"1": &mcp.ElicitParams{Mode: "form", Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}},
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
	ours, theirs := mcp.NewInMemoryTransports()
	_, err := srv.Connect(t.Context(), theirs, nil)
	must(err)
	session := connectTo(t, ours, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // the host asks people itself
	}, "")
	imported, err := mcpstate.Import(t.Context(), session, &mcpstate.ImportOptions{Prefix: "shop_"})
	must(err)
	for name, want := range map[string]struct {
		text  string
		fails bool
	}{
		"fails":      {`tool "shop_fails": No such order.`, true},
		"fails_mute": {`tool "shop_fails_mute": the tool failed without a text`, true},
		"fails_rows": {`tool "shop_fails_rows": {"why":"no stock"}`, true},
		"fails_both": {"tool \"shop_fails_both\": No such order.\n{\"n\":1}", true},
		"structured": {`{"n":1}`, false},
		"both":       {`{"content":"No such order.","n":1}`, false},
		"both_taken": {`{"content":"No such order.","structuredContent":{"content":1}}`, false},
		"both_list":  {`{"content":"No such order.","structuredContent":[1]}`, false},
		"both_texts": {`{"content":[{"type":"text","text":"No such order."},{"type":"text","text":"No such order."}],"n":1}`, false},
		"digits":     {`{"n":9007199254740993}`, false},
		"other_json": {`{"content":"3","n":1}`, false},
		"rounded":    {`{"content":"Integers above 2^53 in this result may be rounded.","n":[9007199254740992]}`, false},
		"asks":       {`tool "shop_asks": not run: the server asks for input: Sure?`, true},
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
		keys := map[any]bool{}
		for _, m := range metas {
			keys[m[mcpstate.IdempotencyKey]] = true
		}
		equal(t, 2, len(keys))
		equal(t, false, keys[nil] || keys[""] || keys["c1"])
	}
}
