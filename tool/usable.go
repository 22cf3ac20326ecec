package tool

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// Usable returns the tools that the agent of st may use, in their order: those
// of which it may read each field that is injected and write each field that a
// result is written to. Show a model only these: a call of another tool would
// fail. A field needs no value, because other calls may set it. What the
// function of a stateful tool uses is not known, and does not count.
func Usable(st *state.State, tools []*Tool) []*Tool {
	fields := map[string]state.FieldInfo{}
	for _, info := range st.Fields() {
		fields[info.Name] = info
	}
	cannotRead := func(name string) bool {
		_, ok := fields[name]
		return !ok && !internal.IsKey(st, name)
	}
	cannotWrite := func(name string) bool {
		info, ok := fields[name]
		return !info.Writable && (ok || !internal.IsKey(st, name))
	}
	var usable []*Tool
	for _, t := range tools {
		if t != nil && !slices.ContainsFunc(t.Reads(), cannotRead) && !slices.ContainsFunc(t.Writes(), cannotWrite) {
			usable = append(usable, t)
		}
	}
	return usable
}
