package workspacetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Refund returns a call of the tool refund.
func Refund(id string) state.ToolCall {
	return state.ToolCall{ID: id, Name: "refund", Input: `{"amount":500}`}
}

// Dialog returns a conversation in one line: "c1" is the call with id 1, "r1"
// its result and "e1" its error.
func Dialog(w *workspace.Workspace) string {
	var words []string
	for _, m := range state.Messages.GetOr(w.State(), nil) {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				words = append(words, "c"+c.ID)
			}
		case state.ToolResultMessage:
			kind := "r"
			if m.IsError() {
				kind = "e"
			}
			words = append(words, kind+m.Call().ID)
		case state.TextMessage:
			words = append(words, strings.TrimPrefix(m.Text(), "text of "))
		}
	}
	return strings.Join(words, " ")
}

func IDs(calls []workspace.Suspended) string {
	var list []string
	for _, c := range calls {
		list = append(list, c.ID)
	}
	return strings.Join(list, " ")
}

// Ask lets the model of a run make calls.
func Ask(t testing.TB, run *Held, calls ...string) {
	t.Helper()
	var list []state.ToolCall
	for _, id := range calls {
		list = append(list, Refund(id))
	}
	require.NoError(t, run.State().History().Append(state.InferenceResult{
		Output: []state.Message{state.ToolCalls(list...)},
	}))
}

// Suspended is [Hold] for a workspace in which call 1 is suspended, by a run that
// is over.
func Suspended(t testing.TB, db store.Store, opts workspace.Options) (*workspace.Manager, *Runs) {
	t.Helper()
	m, runs := Hold(t, db, opts)
	run := runs.Begin(t, "ann", Text("a"))
	Ask(t, run, "1")
	require.NoError(t, run.Suspend(KeyOf(t, &run.Workspace, "1")))
	run.Finish(t)
	return m, runs
}

// KeyOf returns the key of the last call with an id.
func KeyOf(t testing.TB, w *workspace.Workspace, id string) string {
	t.Helper()
	return callkeys.Of(t, w.State(), id)
}

// Answers returns a message without content that answers calls of ann, which are
// stored.
func Answers(t testing.TB, m *workspace.Manager, id string, calls ...string) workspace.Message {
	t.Helper()
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	msg := workspace.Message{ID: id}
	for _, call := range calls {
		msg.Decisions = append(msg.Decisions, tool.AnswerWith(KeyOf(t, &v.Workspace, call), state.JSONText("approved "+call)))
	}
	return msg
}
