package tool

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

// toolbox finds tools by name.
type toolbox struct {
	tools   []*Tool        // in their order, without those that cannot be called
	indexOf map[string]int // in tools; -1 for a name that several tools have
}

func newToolbox(tools []*Tool) toolbox {
	box := toolbox{make([]*Tool, 0, len(tools)), make(map[string]int, len(tools))}
	for _, t := range tools {
		if t == nil || t.Name() == "" {
			continue
		}
		if _, twice := box.indexOf[t.Name()]; twice {
			box.indexOf[t.Name()] = -1
			continue
		}
		box.indexOf[t.Name()] = len(box.tools)
		box.tools = append(box.tools, t)
	}
	return box
}

// indexes returns the index of the tool of each call, or -1 for a call without
// one.
func (box toolbox) indexes(calls []state.ToolCall) []int {
	indexes := make([]int, len(calls))
	for i, call := range calls {
		index, ok := box.indexOf[call.Name]
		if !ok {
			index = -1
		}
		indexes[i] = index
	}
	return indexes
}

// missingTool returns the error that there is no tool of a name. The model has
// chosen the name, so the secrets of st in it are masked.
func (box toolbox) missingTool(st *state.State, name string) error {
	if _, twice := box.indexOf[name]; twice {
		return &kindError{ErrUnknownTool, fmt.Errorf("tool: there are several tools %q", name)}
	}
	names := make([]string, len(box.tools))
	for i, t := range box.tools {
		names[i] = t.Name()
	}
	known := "there are none"
	switch len(names) {
	case 0:
	case 1:
		known = "there is " + names[0]
	default:
		known = "there are " + strings.Join(names, ", ")
	}
	return &kindError{ErrUnknownTool, fmt.Errorf("tool %q not found; %s", st.Redactor().Redact(name), known)}
}
