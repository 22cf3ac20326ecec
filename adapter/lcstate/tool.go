package lcstate

import (
	"context"
	"errors"
	"strings"

	"github.com/tmc/langchaingo/tools"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// Tool returns a tool for the agents of langchaingo, which show the model no
// schema and give a tool one text: the description has the schema, and the text
// is an object in JSON, or the value of the only parameter if that is a text.
//
// It has the rights of agent, or of the handle in the context for "". An error is
// a result for the model to read, because an executor of langchaingo ends with
// it, unless the context has ended or the call is suspended: an executor cannot
// wait. Use an [Agent] for that.
func Tool(agent string, t *tool.Tool) tools.Tool { return textTool{t, agent} }

type textTool struct {
	*tool.Tool
	agent string
}

func (t textTool) Description() string {
	return t.Tool.Description() + "\nThe input is JSON of this schema: " + string(t.Schema())
}

func (t textTool) Call(ctx context.Context, input string) (string, error) {
	st, err := stateOf(ctx, t.agent)
	if err != nil {
		return "", err
	}
	out, err := t.Tool.Call(ctx, st, t.arguments(input))
	switch {
	case err == nil:
		return out.Text(), nil
	case ctx.Err() != nil || errors.Is(err, tool.ErrSuspended):
		return "", err
	}
	return "error: " + err.Error(), nil
}

// arguments returns input as the arguments of a call.
func (t textTool) arguments(input string) state.JSON {
	if strings.HasPrefix(strings.TrimSpace(input), "{") {
		return state.JSON(input)
	}
	var schema struct {
		Properties map[string]struct{ Type any } `json:"properties"`
	}
	if err := t.Schema().Decode(&schema); err == nil && len(schema.Properties) == 1 {
		for name, p := range schema.Properties {
			if p.Type == "string" {
				object, _ := state.JSONOf(map[string]string{name: input})
				return object
			}
		}
	}
	return state.JSON(input)
}
