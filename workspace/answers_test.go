package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// A call that is only in the conversation, and in no result of the history, is
// answered there.
func TestAnswersWithoutHistory(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("a"))
	require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.ToolCalls(keyed("1"), keyed("2"))}))
	require.NoError(t, run.Suspend("key1", "key2"))
	run.Finish(t)
	runs.Begin(t, "ann", text("b")).Finish(t)
	msg := answers(t, m, "c", "2", "1")
	msg.Content = state.UserText("done")
	run = runs.Begin(t, "ann", msg)
	require.Equal(t, "a c1 c2 r1 r2 b done", dialog(&run.Workspace))
	require.Len(t, run.Message().Decisions, 2)
	require.Empty(t, run.Suspended())
	run.Finish(t)
	require.Empty(t, view(t, m, "ann").Suspended())
}

// keyed returns a call of the tool refund with a key, for a conversation that is
// written without the history.
func keyed(id string) state.ToolCall {
	call := refund(id)
	call.Key = "key" + id
	return call
}

// A message that answers a call that does not wait for it is refused, and
// changes nothing.
func TestAnswersThatAreRefused(t *testing.T) {
	unknown := tool.AnswerWith("unknown", "1")
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, runs *heldRuns)
		calls   string          // that are answered, by their ids
		others  []tool.Decision // that the message has as well
		agent   string
		busy    workspace.WhenBusy
		err     error
	}{
		{name: "an unknown call", others: []tool.Decision{unknown}, err: state.ErrUnknownCall},
		{name: "the id of a call", others: []tool.Decision{tool.AnswerWith("1", "1")}, err: state.ErrUnknownCall},
		{name: "the name of a tool", others: []tool.Decision{tool.AnswerWith("refund", "1")}, err: state.ErrUnknownCall},
		{name: "one of several", calls: "1", others: []tool.Decision{unknown}, err: state.ErrUnknownCall},
		{name: "twice in one message", calls: "1 1", err: workspace.ErrInvalid},
		{name: "an open call that is not suspended", prepare: func(t *testing.T, runs *heldRuns) {
			run := runs.Begin(t, "ann", text("b"))
			ask(t, run, "2")
			run.Finish(t)
		}, calls: "2", err: workspace.ErrNotSuspended},
		{name: "an answered call", prepare: func(t *testing.T, runs *heldRuns) {
			runs.Begin(t, "ann", answers(t, runs.Manager, "b", "1")).Finish(t)
		}, calls: "1", err: workspace.ErrNotSuspended},
		{name: "a call that the run before has answered itself", prepare: func(t *testing.T, runs *heldRuns) {
			run := runs.Begin(t, "ann", text("b"))
			require.NoError(t, run.State().History().Answer(state.ToolResult(refund("1"), `"never mind"`)))
			require.Empty(t, run.Suspended())
			run.Finish(t)
		}, calls: "1", err: workspace.ErrNotSuspended},
		{name: "a call that the message of the run answers", prepare: func(t *testing.T, runs *heldRuns) {
			runs.Begin(t, "ann", answers(t, runs.Manager, "b", "1"))
		}, calls: "1", err: workspace.ErrNotSuspended},
		{name: "a call that the run has committed the answer to", prepare: func(t *testing.T, runs *heldRuns) {
			require.NoError(t, runs.Begin(t, "ann", answers(t, runs.Manager, "b", "1")).Commit(t.Context()))
		}, calls: "1", err: workspace.ErrNotSuspended},
		{name: "a call that a waiting message answers", prepare: func(t *testing.T, runs *heldRuns) {
			runs.Begin(t, "ann", text("b"))
			out, err := runs.Submit(t.Context(), "ann", answers(t, runs.Manager, "c", "1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}, calls: "1", err: workspace.ErrNotSuspended},
		{name: "a call of a run that the message undoes", prepare: func(t *testing.T, runs *heldRuns) {
			run := runs.Begin(t, "ann", text("b"))
			ask(t, run, "2")
			require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "2")))
			require.NoError(t, run.Commit(t.Context()))
		}, calls: "2", busy: workspace.BusyRollback, err: state.ErrUnknownCall},
		{name: "the zero decision", others: make([]tool.Decision, 1), err: workspace.ErrInvalid},
		{name: "too many answers", others: manyAnswers(65), err: workspace.ErrInvalid},
		{name: "an agent that has no right to it", calls: "1", agent: "stranger", err: state.ErrDenied},
	} {
		t.Run(row.name, func(t *testing.T) {
			db := store.NewMemory()
			team := state.MustSchema(notes, state.Team{"clerk": nil, "stranger": nil})
			m, runs := suspended(t, db, workspace.Options{Schema: team})
			if row.prepare != nil {
				row.prepare(t, runs)
			}
			before := entries(t, db)
			msg := answers(t, m, "x", strings.Fields(row.calls)...)
			msg.Decisions, msg.Agent, msg.WhenBusy = append(msg.Decisions, row.others...), row.agent, row.busy
			_, err := m.Submit(t.Context(), "ann", msg)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, before, entries(t, db))
			view(t, m, "ann")
		})
	}
}

// manyAnswers answers n calls that there are not.
func manyAnswers(n int) (list []tool.Decision) {
	for i := range n {
		list = append(list, tool.AnswerWith(fmt.Sprint("key", i), "1"))
	}
	return list
}

// An answer that was accepted counts once, however often it is sent.
func TestAnswerIsSentAgain(t *testing.T) {
	m, runs := suspended(t, store.NewMemory(), workspace.Options{})
	runs.Begin(t, "ann", answers(t, m, "b", "1")).Finish(t)
	out, err := m.Submit(t.Context(), "ann", answers(t, m, "b", "1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDuplicate, out.Status)
	require.Equal(t, workspace.StatusDone, out.First)
}

// An answer whose run has stored nothing is not given: the call waits for the
// next answer, or for the same one if the message is tried again.
func TestAnswerOfARunThatFails(t *testing.T) {
	m, runs := suspended(t, store.NewMemory(), workspace.Options{})
	runs.Begin(t, "ann", answers(t, m, "b", "1")).Fail(t, errors.New("broken"))
	require.Equal(t, "1", ids(view(t, m, "ann").Suspended()))
	run := runs.Begin(t, "ann", answers(t, m, "b", "1")) // a dead letter that is sent again
	require.Equal(t, "a c1 r1", dialog(&run.Workspace))
	other := runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, answers(t, m, "c", "1")))
	require.Equal(t, "a c1 r1", dialog(&other.Workspace))
	other.Finish(t)
}

// An answer whose call is closed while the message waits is left out.
func TestCallIsClosedWhileItsAnswerWaits(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "1", "2")
	require.NoError(t, run.Suspend(callKeys(t, run, "1", "2")...))
	require.NoError(t, run.Commit(t.Context()))
	out, err := m.Submit(t.Context(), "ann", answers(t, m, "b", "1", "2"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusQueued, out.Status)
	require.NoError(t, run.State().History().Answer(state.ToolResult(refund("1"), `"never mind"`)))
	run.Finish(t)
	next := runs.Next(t)
	require.Equal(t, "b", next.Message().ID)
	require.Equal(t, []string{keyOf(t, &next.Workspace, "2")}, decided(next.Message()))
	require.Equal(t, "a c1 c2 r1 r2", dialog(&next.Workspace))
	require.Contains(t, fmt.Sprint(state.Messages.GetOr(next.State(), nil)), "never mind")
}

// An answer is given by the agent that has made the call, and its result says so.
func TestAnswerOfAnAgent(t *testing.T) {
	clerk := state.MustSchema(notes, state.Team{"clerk": nil, "stranger": nil})
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: clerk})
	run := runs.Begin(t, "ann", text("a"))
	require.NoError(t, run.State().As("clerk").History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(refund("1"))}}))
	require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
	run.Finish(t)
	msg := answers(t, m, "b", "1")
	for agent, want := range map[string]error{"stranger": state.ErrDenied, "nobody": state.ErrDenied} {
		msg.Agent = agent
		_, err := m.Submit(t.Context(), "ann", msg)
		require.ErrorIs(t, err, want, agent)
	}
	msg.Agent = "clerk"
	run = runs.Begin(t, "ann", msg)
	require.Equal(t, "clerk", run.Message().Agent)
	require.Equal(t, "a c1 r1", dialog(&run.Workspace))
	result := state.Messages.GetOr(run.State(), nil)[2]
	verdict, ok := result.Extra("decision")
	require.True(t, ok)
	require.JSONEq(t, `{"kind":"answer","by":"clerk"}`, string(verdict))
	first, _ := run.State().History().At(0)
	require.Equal(t, []state.ToolResultMessage{result.(state.ToolResultMessage)}, first.ToolCalls)
	run.Finish(t)
}

// An agent that may answer the call in the history, but not in the conversation,
// may not answer it.
func TestAnswerOfAnAgentWithoutTheConversation(t *testing.T) {
	said := &state.Field[[]state.Message]{Name: "messages", Read: state.Only("clerk", "boss"), Write: state.Only("boss")}
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: state.MustSchema(said, state.Team{"clerk": nil, "boss": nil})})
	run := runs.Begin(t, "ann", text("a"))
	call := state.ToolCalls(keyed("1"))
	require.NoError(t, run.State().As("clerk").History().Append(state.InferenceResult{Output: []state.Message{call}}))
	require.NoError(t, state.Messages.Set(run.State(), []state.Message{call}))
	require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
	run.Finish(t)
	msg := answers(t, m, "b", "1")
	msg.Agent = "clerk"
	_, err := m.Submit(t.Context(), "ann", msg)
	require.ErrorIs(t, err, state.ErrDenied)
	msg.Agent = ""
	run = runs.Begin(t, "ann", msg)
	require.Equal(t, "a c1 r1", dialog(&run.Workspace))
	run.Finish(t)
}

// Handlers of the conversation see an answer as they see everything else.
func TestAnswerInAConversationThatIsTrimmed(t *testing.T) {
	trimmed := state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(3).Handler()})
	m, runs := hold(t, store.NewMemory(), workspace.Options{Schema: trimmed})
	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "1")
	require.NoError(t, run.Suspend(keyOf(t, &run.Workspace, "1")))
	run.Finish(t)
	for _, id := range []string{"b", "c", "d"} {
		runs.Begin(t, "ann", text(id)).Finish(t)
	}
	run = runs.Begin(t, "ann", answers(t, m, "e", "1"))
	require.Equal(t, "a c1 r1 d", dialog(&run.Workspace))
	run.Finish(t)
}

// decided returns the keys of the calls about which a message decides.
func decided(msg workspace.Message) (keys []string) {
	for _, d := range msg.Decisions {
		keys = append(keys, d.Key)
	}
	return keys
}

// A run that is taken over knows the answers that were given, whether or not a
// commit has stored them. The answer to a call that was closed while the message
// waited is not one of them.
func TestAnswersAreKnownAfterATakeover(t *testing.T) {
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := store.NewMemory()
				process, kill := asProcess(db)
				m, runs := hold(t, process, workspace.Options{})
				run := runs.Begin(t, "ann", text("a"))
				ask(t, run, "1", "2")
				require.NoError(t, run.Suspend(callKeys(t, run, "1", "2")...))
				require.NoError(t, run.Commit(t.Context()))
				out, err := m.Submit(t.Context(), "ann", answers(t, m, "b", "1", "2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
				require.NoError(t, run.State().History().Answer(state.ToolResult(refund("2"), `"never mind"`)))
				run.Finish(t)
				run = runs.Next(t)
				if committed {
					require.NoError(t, run.Commit(t.Context()))
				}
				kill()
				closeEarly(t, m)

				var got []string
				var want string
				second := open(t, db, workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
					got = decided(run.Message())
					want = keyOf(t, &run.Workspace, "1")
					require.Equal(t, "a c1 c2 r1 r2", dialog(&run.Workspace))
					return nil
				}})
				require.NoError(t, settle(t.Context(), second))
				require.Equal(t, []string{want}, got)
				require.Empty(t, view(t, second, "ann").Suspended())
			})
		})
	}
}

// An id that is given to two messages shows as long as the first is there.
func TestADuplicateSaysThatItDiffers(t *testing.T) {
	long := strings.Repeat("x", 1000) // not in the head
	content := func(id, said string) workspace.Message {
		return workspace.Message{ID: id, Content: state.UserText(said)}
	}
	again := func(m *workspace.Manager, msg workspace.Message) workspace.Outcome {
		out, err := m.Submit(t.Context(), "ann", msg)
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDuplicate, out.Status)
		return out
	}
	for _, said := range []string{"<hello> \u2028 é", long} {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		run := runs.Begin(t, "ann", content("run", said))
		out, err := m.Submit(t.Context(), "ann", content("wait", said))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
		for _, id := range []string{"run", "wait"} {
			require.False(t, again(m, content(id, said)).Differs)
			require.True(t, again(m, content(id, said+"!")).Differs)
		}
		run.Finish(t)
		require.False(t, again(m, content("run", said+"!")).Differs, "only the id is kept")
	}
}
