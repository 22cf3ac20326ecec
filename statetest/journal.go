package statetest

import (
	"context"
	"strings"

	"github.com/agentstate/state"
)

// Journal returns who wrote what to st after a version, oldest first, in a line
// each: the agent, or host, the op, the field, or history, and the cause if
// there is one. Lines have no values. If there are names, there are only lines
// of these fields, as with [state.State.Watch]: "" is the history. An error of
// the journal is the last line.
func Journal(st *state.State, since uint64, names ...string) []string {
	lines := []string{}
	for c, err := range st.Snapshot().Watch(context.Background(), since, names...) {
		if err != nil {
			return append(lines, "error: "+err.Error())
		}
		lines = append(lines, journalLine(c))
	}
	return lines
}

func journalLine(c state.Change) string {
	words := []string{c.Agent, string(c.Op), c.Field}
	if c.Agent == "" {
		words[0] = "host"
	}
	if c.Field == "" {
		words[2] = "history"
	}
	if c.Cause != "" {
		words = append(words, c.Cause)
	}
	return strings.Join(words, " ")
}
