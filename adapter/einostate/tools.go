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
	turn, ok := tool.TurnOf(ctx)
	var err error
	if !ok {
		turn, err = tool.NewTurn(ctx, "", t.tool)
	}
	var result tool.Result
	if err == nil {
		result, err = turn.Call(ctx, state.ToolCall{ID: compose.GetToolCallID(ctx), Name: t.tool.Name(), Input: state.JSON(args)})
	}
	if errors.Is(err, tool.ErrSuspended) {
		return "", einotool.Interrupt(ctx, waiting(err.Error()))
	}
	if err != nil {
		return "", fmt.Errorf("einostate: call tool %q: %w", t.tool.Name(), err)
	}
	return result.Message.Text(), nil
}
