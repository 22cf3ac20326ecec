package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
)

// toolbox finds tools by name.
type toolbox struct {
	tools   []*Tool        // in their order, without those that cannot be called
	indexOf map[string]int // in tools; -1 for a name that several tools have. It is nil for few tools.
}

// fewTools is the number of tools up to which looking at each is faster than a
// map.
const fewTools = 8

func newToolbox(tools []*Tool) toolbox {
	if box := (toolbox{tools: slices.Clone(tools)}); len(tools) <= fewTools && box.areUnique() {
		return box
	}
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

// areUnique reports whether each of few tools has a name of its own.
func (box toolbox) areUnique() bool {
	for i, t := range box.tools {
		if t == nil || t.Name() == "" || box.index(t.Name()) != i {
			return false
		}
	}
	return true
}

// index returns the index of the tool of a name, or -1.
func (box toolbox) index(name string) int {
	if box.indexOf == nil {
		return slices.IndexFunc(box.tools, func(t *Tool) bool { return t.Name() == name })
	}
	index, ok := box.indexOf[name]
	if !ok {
		return -1
	}
	return index
}

// indexes returns the index of the tool of each call, or -1 for a call without
// one.
func (box toolbox) indexes(calls []state.ToolCall) []int {
	indexes := make([]int, len(calls))
	for i, call := range calls {
		indexes[i] = box.index(call.Name)
	}
	return indexes
}

// maxShownName is the length of the longest name of a missing tool that an error
// shows.
const maxShownName = 256

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
	shown := strconv.Quote(st.Redactor().Redact(name))
	if len(name) > maxShownName { // a part of it could be a part of a secret
		shown = fmt.Sprintf("with a name of %d bytes", len(name))
	}
	return &kindError{ErrUnknownTool, fmt.Errorf("tool %s not found; %s", shown, known)}
}
