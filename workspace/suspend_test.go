package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// callKeys returns the keys of calls of a run.
func callKeys(t testing.TB, run *heldRun, ids ...string) (keys []string) {
	t.Helper()
	for _, id := range ids {
		keys = append(keys, keyOf(t, &run.Workspace, id))
	}
	return keys
}

// The run that has suspended a call may fail, be interrupted or be taken over
// too. If what it has committed is undone, so is the suspension.
func TestRunThatSuspendsMayEndInEveryWay(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(t *testing.T, runs *heldRuns, run *heldRun)
		want string
		left string
		late error // of an answer to the call, if it waits no longer
	}{
		{"failure", func(t *testing.T, _ *heldRuns, run *heldRun) {
			run.Fail(t, errors.New("broken"))
		}, "a c1 c2", "1", nil}, // a retry goes on with what is open
		{"interrupt", func(t *testing.T, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, text("b"))).Finish(t)
		}, "a c1 c2 e2 b", "1", nil},
		{"rollback", func(t *testing.T, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann", whenBusy(workspace.BusyRollback, text("b"))).Finish(t)
		}, "b", "", state.ErrUnknownCall},
		{"cancellation", func(t *testing.T, runs *heldRuns, run *heldRun) {
			require.NoError(t, runs.Cancel(t.Context(), "ann", run.ID(), "because"))
		}, "a c1 c2 e1 e2", "", workspace.ErrNotSuspended},
		{"reset", func(t *testing.T, runs *heldRuns, _ *heldRun) {
			_, err := runs.Reset(t.Context(), "ann")
			require.NoError(t, err)
		}, "", "", state.ErrUnknownCall},
		{"deletion", func(t *testing.T, runs *heldRuns, _ *heldRun) {
			require.NoError(t, runs.Delete(t.Context(), "ann"))
		}, "", "", state.ErrUnknownCall},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, runs := hold(t, store.NewMemory(), workspace.Options{})
			run := runs.Begin(t, "ann", text("a"))
			ask(t, run, "1", "2")
			require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
			require.NoError(t, run.Commit(t.Context()))
			late := answers(t, m, "z", "1")
			row.end(t, runs, run)
			v := view(t, m, "ann")
			require.Equal(t, row.want, dialog(&v.Workspace))
			require.Equal(t, row.left, ids(v.Suspended()))
			requireSuspended(t, m, "ann", len(v.Suspended()))
			if row.left == "" {
				_, err := m.Submit(t.Context(), "ann", late)
				require.ErrorIs(t, err, row.late)
			}
		})
	}
}

// Editing the conversation does not end a suspension, unless the call is gone
// when the changes are stored.
func TestSuspendedCallThatIsEdited(t *testing.T) {
	m, runs := suspended(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("b"))
	msgs := state.Messages.GetOr(run.State(), nil)
	require.NoError(t, state.Messages.Replace(run.State(), nil))
	require.Empty(t, run.Suspended())
	require.NoError(t, state.Messages.Replace(run.State(), msgs))
	require.Equal(t, "1", ids(run.Suspended()))
	require.NoError(t, run.Commit(t.Context()))
	require.NoError(t, state.Messages.Replace(run.State(), msgs[:1]))
	late := answers(t, m, "c", "1")
	run.Finish(t)
	_, err := m.Submit(t.Context(), "ann", late)
	require.ErrorIs(t, err, workspace.ErrNotSuspended)
	requireSuspended(t, m, "ann", 0)
}

// requireSuspended checks the number of suspended calls that a head tells, by
// itself and in a list.
func requireSuspended(t *testing.T, m *workspace.Manager, user string, want int) {
	t.Helper()
	s, err := m.Summary(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, want, s.Suspended)
	for s, err := range m.Summaries(t.Context(), "") {
		require.NoError(t, err)
		if s.UserID == user {
			require.Equal(t, want, s.Suspended)
		}
	}
}

// The head tells how many calls are suspended, whatever suspends or ends them.
func TestSummaryCountsSuspendedCalls(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "1", "2")
	require.NoError(t, run.Suspend(callKeys(t, run, "1", "2")...))
	requireSuspended(t, m, "ann", 0) // nothing is committed
	require.NoError(t, run.Commit(t.Context()))
	requireSuspended(t, m, "ann", 2)
	run.Finish(t)
	asked := view(t, m, "ann").Version
	data, err := m.Export(t.Context(), "ann")
	require.NoError(t, err)
	runs.Begin(t, "ann", answers(t, m, "b", "1")).Finish(t)
	requireSuspended(t, m, "ann", 1)
	runs.Begin(t, "ann", answers(t, m, "c", "2")).Finish(t)
	requireSuspended(t, m, "ann", 0)

	v := view(t, m, "ann")
	require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: asked, Seen: v.Version}))
	requireSuspended(t, m, "ann", len(view(t, m, "ann").Suspended()))
	require.NoError(t, m.ImportWorkspace(t.Context(), "bob", data))
	requireSuspended(t, m, "bob", 2)
}

func TestSuspendedCallsAreShown(t *testing.T) {
	m, runs := suspended(t, store.NewMemory(), workspace.Options{})
	data, err := json.Marshal(view(t, m, "ann"))
	require.NoError(t, err)
	require.Contains(t, string(data), `"suspended":[{"key":"`+view(t, m, "ann").Suspended()[0].Key+`","id":"1","name":"refund","input":{"amount":500},"run_id":"`)
	run := runs.Begin(t, "ann", answers(t, m, "b", "1"))
	data, err = json.Marshal(run)
	require.NoError(t, err)
	require.Contains(t, string(data), `"decisions":[{"key":"`+run.Message().Decisions[0].Key+`","kind":"answer","result":"approved 1"}]`)
	require.NotContains(t, string(data), `"suspended"`)
	run.Finish(t)
}

func TestSuspendIsChecked(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("a"))
	var calls []string
	for i := range 65 {
		calls = append(calls, fmt.Sprint(i))
	}
	ask(t, run, calls...)
	keys := callKeys(t, run, calls...)
	for _, unknown := range []string{"unknown", "", "0", "refund"} { // ids and names are no keys
		require.ErrorIs(t, run.Suspend(keys[0], unknown), state.ErrUnknownCall)
	}
	require.Empty(t, run.Suspended(), "all or none")
	require.ErrorIs(t, run.Suspend(keys...), state.ErrLimitExceeded)
	require.NoError(t, run.Suspend(keys[:64]...))
	require.NoError(t, run.Suspend(keys[:64]...), "again")
	require.ErrorIs(t, run.Suspend(keys[64]), state.ErrLimitExceeded)
	run.Finish(t)
	require.Len(t, view(t, m, "ann").Suspended(), 64)
	require.ErrorIs(t, run.Suspend(keys[0]), workspace.ErrRunEnded)
	run = runs.Begin(t, "ann", answers(t, m, "b", calls[:64]...))
	require.Empty(t, run.Suspended())
	run.Finish(t)
}

// Calls without ids wait one by one, and a decision hits the one that it names.
func TestCallsWithoutIDs(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "", "")
	var keys []string
	for _, call := range transcript.Pending(state.Messages.GetOr(run.State(), nil)) {
		keys = append(keys, call.Key)
	}
	require.NoError(t, run.Suspend(keys...))
	run.Finish(t)
	run = runs.Begin(t, "ann", text("b"))
	ask(t, run, "")
	require.NoError(t, run.State().History().Answer(state.ToolResult(refund(""), `"refused"`)))
	require.Len(t, run.Suspended(), 2)
	run.Finish(t)
	answer := func(id, key string) workspace.Message {
		return workspace.Message{ID: id, Decisions: []tool.Decision{tool.AnswerWith(key, state.JSONText("of "+id))}}
	}
	runs.Begin(t, "ann", answer("c", keys[1])).Finish(t)
	left := view(t, m, "ann").Suspended()
	require.Len(t, left, 1)
	require.Equal(t, keys[0], left[0].Key)
	run = runs.Begin(t, "ann", answer("d", keys[0]))
	require.Empty(t, run.Suspended())
	require.Equal(t, "a c c r r b c r", dialog(&run.Workspace))
	msgs := state.Messages.GetOr(run.State(), nil)
	require.Equal(t, []string{"of d", "of c"}, []string{msgs[2].Text(), msgs[3].Text()})
	require.Empty(t, transcript.Pending(msgs))
	run.Finish(t)
}

// A call that its tool suspends in a step of the run is suspended, whether it is
// in the conversation before the step or after it.
func TestToolSuspends(t *testing.T) {
	errApproval := errors.New("a person must approve it")
	tools := []*tool.Tool{tool.Must(tool.New("refund", "Refund an amount.",
		func(context.Context, struct {
			Amount int `json:"amount"`
		}) (string, error) {
			return "", tool.Suspend(errApproval)
		}))}
	for name, early := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			m, runs := hold(t, store.NewMemory(), workspace.Options{})
			run := runs.Begin(t, "ann", text("a"))
			if early {
				ask(t, run, "1", "2")
			}
			require.Empty(t, must(tool.Run(run.Context(), run.State(), tools, []state.ToolCall{refund("1"), refund("2")})))
			if !early {
				require.Empty(t, run.Suspended())
				require.NoError(t, run.Commit(t.Context()))
				ask(t, run, "1", "2")
			}
			require.Equal(t, "1 2", ids(run.Suspended()))
			require.NoError(t, run.Commit(t.Context()))
			run.Fail(t, errors.New("broken"))
			require.Equal(t, "1 2", ids(view(t, m, "ann").Suspended()))
		})
	}
}

// waiting returns the calls that wait, for a policy.
func waiting(w *workspace.Workspace) (calls []state.ToolCall) {
	for _, s := range w.Suspended() {
		calls = append(calls, s.ToolCall)
	}
	return calls
}

// However long it takes, the window keeps a suspended call, and the prompts made
// meanwhile say that it waits.
func TestWindowKeepsSuspendedCalls(t *testing.T) {
	m, runs := suspended(t, store.NewMemory(), workspace.Options{KeepMessages: 4, KeepResults: 2})
	for i := range 10 {
		run := runs.Begin(t, "ann", text(fmt.Sprint("m", i)))
		ask(t, run, fmt.Sprint("x", i))
		require.NoError(t, run.State().History().Answer(state.ToolResult(refund(fmt.Sprint("x", i)), `"done"`)))
		msgs, _ := transcript.Repair(state.Messages.GetOr(run.State(), nil), transcript.Anthropic,
			transcript.Policy{AnswerCalls: true, Suspended: waiting(&run.Workspace)})
		require.Empty(t, transcript.Check(msgs, transcript.Anthropic))
		require.Contains(t, fmt.Sprint(msgs), "Waiting for approval.")
		require.NotContains(t, fmt.Sprint(msgs), "There is no result")
		run.Finish(t)
	}
	v := view(t, m, "ann")
	require.LessOrEqual(t, len(state.Messages.GetOr(v.State(), nil)), 5)
	require.Equal(t, 3, v.State().History().Len())
	run := runs.Begin(t, "ann", answers(t, m, "z", "1"))
	require.True(t, strings.HasPrefix(dialog(&run.Workspace), "a c1 r1 "), dialog(&run.Workspace))
	first, _ := run.State().History().At(0)
	require.Len(t, first.ToolCalls, 1)
	run.Finish(t)
	require.Equal(t, 2, view(t, m, "ann").State().History().Len())
}

// However a later run ends, a suspended call stays open. The next message closes a
// call that an earlier run has left open, and one of a run that is given up. Those
// of a run that ends otherwise are closed at its end.
func TestSuspendedCallsStayOpen(t *testing.T) {
	for _, row := range []struct {
		name  string
		end   func(t testing.TB, runs *heldRuns, run *heldRun)
		ended string // the conversation then
		next  string // and in the run of the answer
	}{
		{"failure", func(t testing.TB, _ *heldRuns, run *heldRun) {
			run.Fail(t, errors.New("the model does not answer"))
		}, "a c1 b c2 e2 c c3", "a c1 r1 b c2 e2 c c3 e3"},
		{"interrupt", func(t testing.TB, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, text("i"))).Finish(t)
		}, "a c1 b c2 e2 c c3 e3 i", "a c1 r1 b c2 e2 c c3 e3 i"},
		{"cancellation", func(t testing.TB, runs *heldRuns, run *heldRun) {
			require.NoError(t, runs.Cancel(t.Context(), "ann", run.ID(), "because"))
		}, "a c1 b c2 e2 c c3 e3", "a c1 r1 b c2 e2 c c3 e3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				m, runs := suspended(t, db, workspace.Options{TTL: ttl})
				run := runs.Begin(t, "ann", text("b"))
				ask(t, run, "2")
				run.Finish(t) // leaves 2 open without suspending it
				run = runs.Begin(t, "ann", text("c"))
				require.Equal(t, "1", ids(run.Suspended()))
				ask(t, run, "3")
				require.NoError(t, run.Commit(t.Context()))
				row.end(t, runs, run)
				v := view(t, m, "ann")
				require.Equal(t, row.ended, dialog(&v.Workspace))
				require.Equal(t, "1", ids(v.Suspended()))
				require.Equal(t, state.JSON(`{"amount":500}`), v.Suspended()[0].Input)

				run = runs.Begin(t, "ann", answers(t, m, "d", "1"))
				require.Equal(t, row.next, dialog(&run.Workspace))
				require.Empty(t, run.Suspended())
				run.Finish(t)
			})
		})
	}
}

// A run that is taken over finds its open calls again, unless it begins anew.
func TestPendingOfARunThatIsTakenOver(t *testing.T) {
	for _, row := range []struct {
		how  workspace.Takeover
		want string
	}{
		{workspace.TakeoverResume, "a c1 b c2 c3"},
		{workspace.TakeoverRestart, "a c1 b"},
	} {
		t.Run(fmt.Sprint(row.how), func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				process, kill := asProcess(db)
				m, runs := suspended(t, process, workspace.Options{TTL: ttl})
				run := runs.Begin(t, "ann", text("b"))
				ask(t, run, "2", "3")
				require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "3")))
				require.NoError(t, run.Commit(t.Context()))
				id := run.ID()
				kill()
				closeEarly(t, m)

				var got string
				second := open(t, db, workspace.Options{TTL: ttl, Takeover: row.how, Run: func(_ context.Context, run *workspace.Run) error {
					require.Equal(t, id, run.ID())
					got = dialog(&run.Workspace)
					return nil
				}})
				require.NoError(t, settle(t.Context(), second))
				require.Equal(t, row.want, got)
				want := "1 3"
				if row.how == workspace.TakeoverRestart {
					want = "1"
				}
				require.Equal(t, want, ids(view(t, second, "ann").Suspended()))
			})
		})
	}
}

// When no attempts are left, nobody makes the calls any more, unless somebody lets
// the message go on.
func TestPendingOfARunWithoutAttempts(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		process, kill := asProcess(db)
		crashed, runs := hold(t, process, workspace.Options{TTL: ttl})
		run := runs.Begin(t, "ann", text("a"))
		ask(t, run, "1", "2")
		require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
		require.NoError(t, run.Commit(t.Context()))
		kill()
		_ = crashed.Close()
		m := open(t, db, workspace.Options{TTL: ttl, Attempts: 1, Run: func(context.Context, *workspace.Run) error { return nil }})
		require.NoError(t, settle(t.Context(), m))
		v := view(t, m, "ann")
		require.Equal(t, "a c1 c2", dialog(&v.Workspace))
		require.Equal(t, "1", ids(v.Suspended()))
		require.Len(t, v.DeadLetters, 1)
		require.True(t, v.DeadLetters[0].GoesOn)
	})
}
