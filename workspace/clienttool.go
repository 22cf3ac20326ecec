package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// ClientTools returns the tools of the sender of the message. A call of one is
// suspended: the Answers of a later message bring its result. Loop offers them to
// its agents; other programs give them to a [tool.Turn].
func (r *Run) ClientTools() []*tool.Tool {
	tools, _ := toolsOf(r.message.Tools) // which were checked when the message was accepted
	return tools
}

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

// withClientTools returns a loop whose agents have the tools of the sender as well.
func withClientTools(l *tool.Loop, r *Run) *tool.Loop {
	tools := r.ClientTools()
	if len(tools) == 0 {
		return l
	}
	with := *l
	with.Agents = maps.Clone(l.Agents)
	for name, agent := range with.Agents {
		others := slices.DeleteFunc(slices.Clone(tools), func(t *tool.Tool) bool {
			return slices.ContainsFunc(agent.Tools, func(o *tool.Tool) bool { return o != nil && o.Name() == t.Name() })
		})
		agent.Tools = slices.Concat(agent.Tools, others)
		with.Agents[name] = agent
	}
	return &with
}

// patch writes the Fields of a message to a State.
func (m *Message) patch(st *state.State) error {
	if len(m.Fields) == 0 {
		return nil
	}
	values := map[string]any{}
	for name, text := range m.Fields {
		dec := json.NewDecoder(bytes.NewReader([]byte(text)))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("the field %q has no JSON: %w", name, err)
		}
		values[name] = v
	}
	if m.Agent != "" {
		st = st.As(m.Agent)
	}
	return st.Patch(values)
}
