package mcpstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/tool"
)

// IdempotencyKey is the member of _meta in which the caller of a tool may name
// the call. The name is the ID of [tool.CallOf] in the function of the tool, and
// the cause of what the call writes. The Key there is made of the name, of the
// tool, of the user and the agent of the sender, and of the name of the client: a
// call that a client makes again has the same one, and one of another sender has
// not. Without a name, each call has a new one. Two calls with one name are two
// calls: the function passes the Key on to what it calls. A name of more than 256
// bytes is refused.
const IdempotencyKey = "agentstate.dev/idempotency-key"

const maxKey = 256

// AddTools adds tools to a server. A client sees, and can call, only those that
// its agent may use: see [tool.Usable]. A call is one unit of work of states,
// which is undone where states can do that if the tool fails.
//
// The result of a call is a text, which is JSON unless the tool returns a
// string. If it is an object, it is the structured content, too. If the tool
// returns a list of MCP's own contents, such as {"type":"image",…}, these are
// the result. The error of a tool is a result that is an error; other errors,
// such as those of a store, are errors of the protocol.
func AddTools(srv *mcp.Server, states States, tools ...*tool.Tool) {
	ours := map[string]bool{}
	for _, t := range tools {
		ours[t.Name()] = true
		srv.AddTool(describe(t), handler(states, t))
	}
	srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			list, ok := result.(*mcp.ListToolsResult)
			if err != nil || !ok {
				return result, err
			}
			view, err := states.View(ctx, req)
			if err != nil {
				return nil, wrap("list tools", err)
			}
			hidden := maps.Clone(ours)
			for _, t := range tool.Usable(view.State, tools) {
				delete(hidden, t.Name())
			}
			list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return hidden[t.Name] })
			list.CacheScope = "private" // other clients have other rights
			return list, nil
		}
	})
}

// describe returns what a client is told about a tool.
func describe(t *tool.Tool) *mcp.Tool {
	a := t.Annotations()
	return &mcp.Tool{
		Name: t.Name(), Description: t.Description(), InputSchema: json.RawMessage(t.Schema()),
		Annotations: &mcp.ToolAnnotations{
			Title: a.Title, ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive,
			IdempotentHint: a.Idempotent, OpenWorldHint: a.OpenWorld,
		},
	}
}

// errFailed undoes the unit of work of a call that failed.
var errFailed = errors.New("mcpstate: the tool failed")

func handler(states States, t *tool.Tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tools := []*tool.Tool{t}
		call := state.ToolCall{Name: t.Name(), Input: state.JSON(req.Params.Arguments)}
		call.ID, _ = req.Params.Meta[IdempotencyKey].(string)
		if len(call.ID) > maxKey {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: IdempotencyKey + " has more than 256 bytes"}
		}
		key, err := keyOf(ctx, states, req, t.Name(), call.ID)
		if err != nil {
			return nil, wrap(fmt.Sprintf("call tool %q", t.Name()), err)
		}
		call.Key = key
		var result *mcp.CallToolResult
		err = states.Do(ctx, req, func(ctx context.Context, st *state.State) error {
			if len(tool.Usable(st, tools)) == 0 {
				result = failure("unknown tool " + t.Name())
				return errFailed
			}
			results, err := tool.Run(ctx, st, tools, []state.ToolCall{call})
			switch {
			case err != nil:
				return err
			case len(results) == 0:
				result = failure("The call waits for a decision and has no result yet.")
			case results[0].Err != nil:
				result = failure(results[0].Err.Error())
				return errFailed
			default:
				result = success(results[0].Message.Content())
			}
			return nil
		})
		if err != nil && !errors.Is(err, errFailed) {
			return nil, wrap(fmt.Sprintf("call tool %q", t.Name()), err)
		}
		return result, nil
	}
}

// keyOf returns the key of a call that its caller has given a name, or none.
func keyOf(ctx context.Context, states States, req *mcp.CallToolRequest, tool, name string) (string, error) {
	if name == "" {
		return callkey.New(), nil
	}
	view, err := states.View(ctx, req)
	if err != nil {
		return "", err
	}
	client := ""
	if info := req.ClientInfo(); info != nil {
		client = info.Name
	}
	return callkey.Derive("mcp", client, view.User, view.State.Agent(), tool, name), nil
}

// success returns the result of a call that returned JSON.
func success(out state.JSON) *mcp.CallToolResult {
	var text string
	if json.Unmarshal([]byte(out), &text) == nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	result := &mcp.CallToolResult{}
	if len(out) > 2 && out[0] == '[' && json.Unmarshal([]byte(`{"content":`+string(out)+`}`), result) == nil {
		return result
	}
	result = &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(out)}}}
	if len(out) > 0 && out[0] == '{' {
		result.StructuredContent = json.RawMessage(out)
	}
	return result
}

// failure returns the result of a call that the model should know has failed.
func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func wrap(doing string, err error) error { return fmt.Errorf("mcpstate: %s: %w", doing, err) }
