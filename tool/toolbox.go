package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
)

// toolbox is tools that calls name.
type toolbox []*Tool

// newToolbox returns the tools that can be called.
func newToolbox(tools []*Tool) toolbox {
	return slices.DeleteFunc(slices.Clone(tools), func(t *Tool) bool { return t == nil || t.name == "" })
}

// named returns the tool of a name, or nil: if there is none, and if there are
// several.
func (box toolbox) named(name string) (found *Tool, several bool) {
	for _, t := range box {
		if t.name != name {
			continue
		}
		if found != nil {
			return nil, true
		}
		found = t
	}
	return found, false
}

// maxShownName is the length of the longest name of a missing tool that an error
// shows.
const maxShownName = 256

// missingTool returns the error that there is no tool of a name. The model has
// chosen the name, so the secrets of st in it are masked.
func (box toolbox) missingTool(st *state.State, name string) error {
	if _, several := box.named(name); several {
		return &kindError{ErrUnknownTool, fmt.Errorf("tool: there are several tools %q", name)}
	}
	names := make([]string, len(box))
	for i, t := range box {
		names[i] = t.name
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

// Usable returns the tools that the agent of st may use, in their order: those
// of which it may read each field that is injected and write each field that a
// result is written to. Show a model only these: a call of another tool fails, and
// its function is not called. A field needs no value, because other calls may set
// it. What the function of a stateful tool uses is not known, and does not count.
func Usable(st *state.State, tools []*Tool) []*Tool {
	fields := map[string]state.FieldInfo{}
	for _, info := range st.Fields() {
		fields[info.Name] = info
	}
	cannotRead := func(name string) bool {
		_, ok := fields[name]
		return !ok && !inside.IsKey(st, name)
	}
	cannotWrite := func(name string) bool {
		info, ok := fields[name]
		return !info.Writable && (ok || !inside.IsKey(st, name))
	}
	var usable []*Tool
	for _, t := range tools {
		if t != nil && !slices.ContainsFunc(t.Reads(), cannotRead) && !slices.ContainsFunc(t.Writes(), cannotWrite) {
			usable = append(usable, t)
		}
	}
	return usable
}
