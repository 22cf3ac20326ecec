package tool

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

// toolbox finds tools by name.
type toolbox struct {
	tools map[string]*Tool // nil for a name that several tools have
	names []string         // in the order of the tools
}

func newToolbox(tools []*Tool) toolbox {
	box := toolbox{tools: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if t == nil || t.Name() == "" {
			continue
		}
		if _, twice := box.tools[t.Name()]; twice {
			box.tools[t.Name()] = nil
			continue
		}
		box.tools[t.Name()] = t
		box.names = append(box.names, t.Name())
	}
	return box
}

// toolsOf returns the tool of each call, or nil for a call without one.
func (box toolbox) toolsOf(calls []state.ToolCall) []*Tool {
	tools := make([]*Tool, len(calls))
	for i, call := range calls {
		tools[i] = box.tools[call.Name]
	}
	return tools
}

// missingTool returns the error that there is no tool of a name.
func (box toolbox) missingTool(name string) error {
	if _, twice := box.tools[name]; twice {
		return fmt.Errorf("there are several tools %q", name)
	}
	known := "none"
	if len(box.names) > 0 {
		known = strings.Join(box.names, ", ")
	}
	return fmt.Errorf("tool %q not found; there are %s", name, known)
}
