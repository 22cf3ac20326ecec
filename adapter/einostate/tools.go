package einostate

import (
	"context"
	"errors"
	"fmt"

	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// Tools returns tools as tools of eino. The model sees neither injected
// parameters nor the state. A call that fails has its error as the result, for
// the model to read. A call whose function returns [tool.Suspend] interrupts the
// agent.
//
// In an agent with [Middleware], the calls of a message are one step: fields are
// written in the order of the calls, whichever returns first. In a graph without
// an agent, each call works for itself on the state of the context, which is
// that of [state.FromContext].
func Tools(tools ...*tool.Tool) []einotool.BaseTool {
	own := make([]einotool.BaseTool, len(tools))
	for i, t := range tools {
		own[i] = &boundTool{t, newToolInfo(t)}
	}
	return own
}

// waiting is the info of an interrupt of a boundTool. eino stores it.
type waiting string

func init() { schema.RegisterName[waiting]("agentstate_waiting") }

// boundTool is a tool of eino.
type boundTool struct {
	tool *tool.Tool
	info *schema.ToolInfo
}

func newToolInfo(t *tool.Tool) *schema.ToolInfo {
	var info schema.ToolInfo
	err := convert(map[string]any{
		"name": t.Name(), "desc": t.Description(), "has_params_one_of": true, "json_schema": t.Schema(),
	}, &info)
	if err != nil { // eino does not read the schema
		info = schema.ToolInfo{Name: t.Name(), Desc: t.Description()}
	}
	return &info
}

func (t *boundTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

func (t *boundTool) InvokableRun(ctx context.Context, args string, _ ...einotool.Option) (string, error) {
	call := state.ToolCall{ID: compose.GetToolCallID(ctx), Name: t.tool.Name(), Input: state.JSON(args)}
	var result tool.Result
	var err error
	if turn, ok := ctx.Value(turnKey{}).(*turn); ok {
		result, err = turn.call(ctx, call)
	} else if st, ok := state.FromContext(ctx); ok {
		var step *tool.Step
		if step, err = tool.Begin(ctx, st, []*tool.Tool{t.tool}, []state.ToolCall{call}); err == nil {
			result, err = step.Call(ctx, 0)
		}
	} else {
		err = errNoState
	}
	if errors.Is(err, tool.ErrSuspended) {
		return "", einotool.Interrupt(ctx, waiting(err.Error()))
	}
	if err != nil {
		return "", fmt.Errorf("einostate: call tool %q: %w", t.tool.Name(), err)
	}
	return result.Message.Text(), nil
}

// errNoState is the error of agents and tools that are used without a state.
var errNoState = fmt.Errorf("einostate: the context carries no state: %w", state.ErrInvalid)
