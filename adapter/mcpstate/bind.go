package mcpstate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// Bind returns middleware for the receiving side of a server whose handlers
// exist already. Each call of a tool is one unit of work of states, and the
// handler finds the state in its context, with [state.FromContext].
//
// bindings are options for tools, by their names. [tool.From] and
// [tool.FromName] inject a field as an argument, which clients neither see nor
// may give; the handler must accept it. [tool.To] and its kind write a member of
// the structured content, or of the text if that is JSON, to a field. The
// secrets that the agent may read are masked in results and failures, unless an
// option is [tool.Reveal].
//
// Handlers that [mcp.AddTool] has made check their arguments against the schema
// of the server, which has the parameter.
func Bind(states States, bindings map[string][]tool.Option) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				return callBound(ctx, states, next, method, call, bindings[call.Params.Name])
			}
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				return hideInjected(list, bindings)
			}
			return result, err
		}
	}
}

// hideInjected removes what is injected from the schemas of a list.
func hideInjected(list *mcp.ListToolsResult, bindings map[string][]tool.Option) (mcp.Result, error) {
	for i, t := range list.Tools {
		opts := bindings[t.Name]
		if len(opts) == 0 {
			continue
		}
		schema, err := state.JSONOf(t.InputSchema)
		if err != nil {
			return nil, wrap("schema of tool "+t.Name, err)
		}
		bound, err := tool.Raw(t.Name, t.Description, schema, noFunction, opts...)
		if err != nil {
			return nil, wrap("bindings of tool "+t.Name, err)
		}
		shown := *t // the server keeps the original
		shown.InputSchema = json.RawMessage(bound.Schema())
		list.Tools[i] = &shown
	}
	return list, nil
}

func noFunction(context.Context, state.JSON) (state.JSON, error) { return "", nil }

// anyArguments is the schema of a bound call: the handler knows its own.
const anyArguments = `{"type":"object","additionalProperties":true}`

func callBound(
	ctx context.Context, states States, next mcp.MethodHandler, method string, req *mcp.CallToolRequest,
	opts []tool.Option,
) (mcp.Result, error) {
	var result mcp.Result
	var broken error // of the handler, as the protocol knows it
	err := states.Do(ctx, req, func(ctx context.Context, st *state.State) error {
		bound, err := tool.RawStateful(req.Params.Name, "", anyArguments,
			func(ctx context.Context, st *state.State, args state.JSON) (state.JSON, error) {
				params, call := *req.Params, *req
				params.Arguments, call.Params = json.RawMessage(args), &params
				result, broken = next(state.NewContext(ctx, st), method, &call)
				if broken != nil {
					return "", broken
				}
				out, ok := result.(*mcp.CallToolResult)
				if !ok {
					return "", nil
				}
				if out.IsError {
					return "", errFailed
				}
				return content(out)
			}, opts...)
		if err != nil {
			return wrap("bindings of tool "+req.Params.Name, err)
		}
		_, err = bound.Call(ctx, st, state.JSON(req.Params.Arguments))
		switch {
		case broken != nil:
			return errFailed
		case err != nil && !errors.Is(err, errFailed):
			result = failure(err.Error())
			return errFailed
		}
		if out, ok := result.(*mcp.CallToolResult); ok {
			if result, broken = mask(ctx, st, req, out, opts); broken != nil {
				return errFailed
			}
		}
		return err
	})
	if broken != nil {
		return nil, broken
	}
	if err != nil && !errors.Is(err, errFailed) {
		return nil, wrap("call tool "+req.Params.Name, err)
	}
	return result, nil
}

// mask returns a result without secrets that st may read, unless an option is
// [tool.Reveal]. A result without any is returned as it is. Package tool masks
// the whole result as that of a tool with these options.
func mask(
	ctx context.Context, st *state.State, req *mcp.CallToolRequest, result *mcp.CallToolResult, opts []tool.Option,
) (mcp.Result, error) {
	whole, err := state.JSONOf(result)
	if err != nil {
		return nil, wrap("result of tool "+req.Params.Name, err)
	}
	opts = slices.DeleteFunc(slices.Clone(opts), func(o tool.Option) bool {
		_, ok := o.(tool.Output)
		return ok
	})
	shown, err := tool.Raw(req.Params.Name, "", anyArguments,
		func(context.Context, state.JSON) (state.JSON, error) { return whole, nil }, opts...)
	if err != nil {
		return nil, wrap("bindings of tool "+req.Params.Name, err)
	}
	out, err := shown.Call(ctx, st, state.JSON(req.Params.Arguments))
	if err != nil {
		return nil, wrap("result of tool "+req.Params.Name, err)
	}
	if out.Equal(whole) {
		return result, nil
	}
	masked := &mcp.CallToolResult{}
	if err := json.Unmarshal([]byte(out), masked); err != nil {
		return nil, wrap("result of tool "+req.Params.Name, err)
	}
	return masked, nil
}
