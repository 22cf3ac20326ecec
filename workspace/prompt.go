package workspace

import "github.com/agentstate/state"

// Prompt returns what a model should know of a run, as text for a system
// prompt: [Workspace.Prompt] of the host's handle. It returns "" for a nil run.
func Prompt(run *Run) string {
	if run == nil {
		return ""
	}
	return run.Prompt(run.State())
}

// Prompt returns the fields that a handle on the state may read, as
// [state.State.Describe] does, and what is remembered about the user, as
// [Memory.Prompt] does. Pass the handle of the agent whose prompt it is. All
// secrets of the workspace are masked, also where other values repeat them.
func (w *Workspace) Prompt(st *state.State) string {
	text, memory := st.Describe(), w.memory.Prompt()
	if text != "" && memory != "" {
		text += "\n"
	}
	return w.Redact(text + memory)
}
