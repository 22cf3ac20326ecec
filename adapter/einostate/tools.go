package einostate

import (
	"context"
	"errors"
	"fmt"

	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// Tools returns tools as tools of eino. The model sees neither injected
// parameters nor the state. A call that fails has its error as the result, for
// the model to read. A call whose function returns [tool.Suspend] interrupts the
// agent.
//
// In an agent with [Middleware], the calls of a message are one step: fields are
// written in the order of the calls, whichever returns first. Elsewhere, each
// call works for itself on the state of the context.
func Tools(tools ...*tool.Tool) []einotool.BaseTool {
	own := make([]einotool.BaseTool, len(tools))
	for i, t := range tools {
		info := &schema.ToolInfo{}
		if convert(map[string]any{
			"name": t.Name(), "desc": t.Description(), "has_params_one_of": true, "json_schema": t.Schema(),
		}, info) != nil { // eino does not read the schema
			info = &schema.ToolInfo{Name: t.Name(), Desc: t.Description()}
		}
		own[i] = &boundTool{t, info}
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

func (t *boundTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

func (t *boundTool) InvokableRun(ctx context.Context, args string, _ ...einotool.Option) (string, error) {
	result, err := t.call(ctx, state.ToolCall{
		ID: compose.GetToolCallID(ctx), Name: t.tool.Name(), Input: state.JSON(args),
	})
	if errors.Is(err, tool.ErrSuspended) {
		return "", einotool.Interrupt(ctx, waiting(err.Error()))
	}
	if err != nil {
		return "", fmt.Errorf("einostate: call tool %q: %w", t.tool.Name(), err)
	}
	return result.Message.Text(), nil
}

// call makes a call in the turn of the context, or else by itself: a turn of one
// call would hold its outputs until the calls before it have returned.
func (t *boundTool) call(ctx context.Context, c state.ToolCall) (tool.Result, error) {
	if turn, ok := loop.TurnOf(ctx); ok && turn.Has(c.Name) {
		return turn.Call(ctx, c)
	}
	st, ok := state.FromContext(ctx)
	if !ok {
		return tool.Result{}, fmt.Errorf("the context carries no state: %w", state.ErrInvalid)
	}
	step, err := tool.BeginStep(ctx, st, []*tool.Tool{t.tool}, []state.ToolCall{c})
	if err != nil {
		return tool.Result{}, err
	}
	return step.Call(ctx, 0)
}
