package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
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
	for _, m := range state.Messages.Or(w.State(), nil) {
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

// Begin begins the run of a message.
func Begin(t testing.TB, m *workspace.Manager, msg workspace.Message) *workspace.Run {
	t.Helper()
	run, out, err := m.Begin(t.Context(), "ann", msg)
	require.NoError(t, err)
	require.Equal(t, workspace.StatusStarted, out.Status)
	return run
}

// Ask lets the model of a run make calls.
func Ask(t testing.TB, run *workspace.Run, calls ...string) {
	t.Helper()
	var list []state.ToolCall
	for _, id := range calls {
		list = append(list, Refund(id))
	}
	require.NoError(t, run.State().History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(list...)}}))
}

func Finish(t testing.TB, run *workspace.Run) {
	t.Helper()
	_, err := run.Finish(t.Context())
	require.NoError(t, err)
}

// Suspended returns a Manager of a workspace in which call 1 is suspended, by a
// run that is over.
func Suspended(t testing.TB, db store.Store, opts workspace.Options) *workspace.Manager {
	t.Helper()
	m := Open(t, db, opts)
	run := Begin(t, m, Text("a"))
	Ask(t, run, "1")
	require.NoError(t, run.Suspend("1"))
	Finish(t, run)
	return m
}

// Answers returns a message without content that answers calls.
func Answers(id string, calls ...string) workspace.Message {
	msg := workspace.Message{ID: id}
	for _, call := range calls {
		msg.Answers = append(msg.Answers, state.ToolResult(Refund(call), state.JSONText("approved "+call)))
	}
	return msg
}

// However a later run ends, a suspended call stays open, and so does a call that
// an earlier run has left open. The calls of the run itself are answered.
func (s *suite) SuspendedCallsStayOpen(t *testing.T) {
	for name, end := range map[string]func(t testing.TB, m *workspace.Manager, run *workspace.Run){
		"failure": func(t testing.TB, _ *workspace.Manager, run *workspace.Run) {
			_, err := run.Fail(t.Context(), errors.New("the model does not answer"))
			require.NoError(t, err)
		},
		"interrupt": func(t testing.TB, m *workspace.Manager, _ *workspace.Run) {
			Finish(t, Begin(t, m, WhenBusy(workspace.BusyInterrupt, Text("i"))))
		},
		"cancellation": func(t testing.TB, m *workspace.Manager, run *workspace.Run) {
			require.NoError(t, m.Cancel(t.Context(), "ann", run.ID(), "because"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				m := Suspended(t, db, workspace.Options{TTL: ttl})
				run := Begin(t, m, Text("b"))
				Ask(t, run, "2")
				Finish(t, run) // leaves 2 open without suspending it
				run = Begin(t, m, Text("c"))
				require.Equal(t, "1", IDs(run.Suspended()))
				Ask(t, run, "3")
				require.NoError(t, run.Commit(t.Context()))
				end(t, m, run)
				v := View(t, m, "ann")
				require.Equal(t, "a c1 b c2 c c3 e3", strings.TrimSuffix(Dialog(&v.Workspace), " i"))
				require.Equal(t, "1", IDs(v.Suspended()))
				require.Equal(t, state.JSON(`{"amount":500}`), v.Suspended()[0].Input)

				run = Begin(t, m, Answers("d", "1"))
				require.Equal(t, "a c1 r1 b c2 c c3 e3", strings.TrimSuffix(Dialog(&run.Workspace), " i"))
				require.Empty(t, run.Suspended())
				Finish(t, run)
			})
		})
	}
}

// A run that is taken over finds its open calls again, unless it begins anew.
func (s *suite) PendingOfARunThatIsTakenOver(t *testing.T) {
	for _, row := range []struct {
		how  workspace.Takeover
		want string
	}{
		{workspace.TakeoverResume, "a c1 b c2 c3"},
		{workspace.TakeoverRestart, "a c1 b"},
	} {
		t.Run(fmt.Sprint(row.how), func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				process, kill := AsProcess(db)
				m := Suspended(t, process, workspace.Options{TTL: ttl})
				run := Begin(t, m, Text("b"))
				Ask(t, run, "2", "3")
				require.NoError(t, run.Suspend("3"))
				require.NoError(t, run.Commit(t.Context()))
				id := run.ID()
				kill()
				require.NoError(t, m.Close())

				var got string
				second := Open(t, db, workspace.Options{TTL: ttl, Takeover: row.how, Run: func(_ context.Context, run *workspace.Run) error {
					require.Equal(t, id, run.ID())
					got = Dialog(&run.Workspace)
					return nil
				}})
				require.NoError(t, Settle(t.Context(), second))
				require.Equal(t, row.want, got)
				want := "1 3"
				if row.how == workspace.TakeoverRestart {
					want = "1"
				}
				require.Equal(t, want, IDs(View(t, second, "ann").Suspended()))
			})
		})
	}
}

// When no attempts are left, nobody makes the calls any more.
func (s *suite) PendingOfARunWithoutAttempts(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		process, kill := AsProcess(db)
		crashed := Open(t, process, workspace.Options{TTL: ttl})
		run := Begin(t, crashed, Text("a"))
		Ask(t, run, "1", "2")
		require.NoError(t, run.Suspend("1"))
		require.NoError(t, run.Commit(t.Context()))
		kill()
		require.NoError(t, crashed.Close())
		m := Open(t, db, workspace.Options{TTL: ttl, Attempts: 1, Run: func(context.Context, *workspace.Run) error { return nil }})
		require.NoError(t, Settle(t.Context(), m))
		v := View(t, m, "ann")
		require.Equal(t, "a c1 c2 e2", Dialog(&v.Workspace))
		require.Equal(t, "1", IDs(v.Suspended()))
		require.Len(t, v.DeadLetters, 1)
	})
}
