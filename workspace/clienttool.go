package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// ClientTool is a tool that the sender of a message has, such as a page.
type ClientTool struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Schema      state.JSON `json:"schema,omitempty"` // of the arguments, an object (default: no arguments)
}

// maxClientTools is the maximum number of tools of a message.
const maxClientTools = 128

// errClient is why a call of a tool of the sender waits.
var errClient = errors.New("the sender of the message has the tool")

// toolsOf returns tools whose calls are suspended, or why there cannot be such.
func toolsOf(list []ClientTool) (tools []*tool.Tool, err error) {
	if len(list) > maxClientTools {
		return nil, &state.LimitError{Name: "tools of a message", Limit: maxClientTools, Got: len(list)}
	}
	for _, c := range list {
		if c.Schema == "" {
			c.Schema = `{"type":"object"}`
		}
		t, err := tool.Raw(c.Name, c.Description, c.Schema, func(context.Context, state.JSON) (state.JSON, error) {
			return "", tool.Suspend(errClient)
		})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tools, func(o *tool.Tool) bool { return o.Name() == c.Name }) {
			return nil, fmt.Errorf("two tools are named %q", c.Name)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
