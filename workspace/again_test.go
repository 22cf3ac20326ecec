package workspace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// saying returns a message with an id that says something else than it.
func saying(id, said string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText(said)}
}

// givenUp makes message "a" a dead letter whose run has stored it and a call, and
// returns the key of the call.
func givenUp(t *testing.T, runs *heldRuns) (key string) {
	t.Helper()
	run := runs.Begin(t, "ann", text("a"))
	ask(t, run, "1")
	key = keyOf(t, &run.Workspace, "1")
	require.NoError(t, run.Commit(t.Context()))
	run.Fail(t, errors.New("no good"))
	return key
}

// askedAgain returns what users have said that is marked as asked again.
func askedAgain(w *workspace.Workspace) string {
	var texts []string
	for _, m := range state.Messages.GetOr(w.State(), nil) {
		if again, ok := m.Extra("again"); ok && again == "true" {
			texts = append(texts, strings.TrimPrefix(m.Text(), "text of "))
		}
	}
	return strings.Join(texts, " ")
}

// A message that was given up is handled again, by Retry or because it is sent
// again. If nothing was handled since, its run goes on: the message stands once,
// and its open call keeps its key. Otherwise the message is put at the end once
// more, and its open call is closed. Another text is another message.
func TestAMessageThatWasGivenUpIsHandledAgain(t *testing.T) {
	retry := func(t *testing.T, runs *heldRuns) { require.NoError(t, runs.Retry(t.Context(), "ann", "a")) }
	send := func(said string) func(t *testing.T, runs *heldRuns) {
		return func(t *testing.T, runs *heldRuns) {
			out, err := runs.Submit(t.Context(), "ann", saying("a", said))
			require.NoError(t, err)
			require.NotEqual(t, workspace.StatusDuplicate, out.Status)
		}
	}
	long := strings.Repeat("x", 1000) // not in the head
	for _, row := range []struct {
		name   string
		before string // a message that is handled between, and ends
		behind string // a message in whose run it is handed over again
		fails  bool   // that run stores nothing
		again  func(t *testing.T, runs *heldRuns)
		goesOn bool
		want   string
		marked string // what was asked again
	}{
		{name: "Retry", again: retry, goesOn: true, want: "a c1"},
		{name: "the same text", again: send("text of a"), goesOn: true, want: "a c1"},
		{name: "another text", again: send("other"), goesOn: true, want: "a c1 e1 other"},
		{name: "a long other text", again: send(long), goesOn: true, want: "a c1 e1 " + long},
		{name: "Retry after another message", before: "b", again: retry, want: "a c1 e1 b a", marked: "a"},
		{name: "the same text after another message", before: "b", again: send("text of a"), want: "a c1 e1 b a", marked: "a"},
		{name: "another text after another message", before: "b", again: send("other"), want: "a c1 e1 b other"},
		{name: "Retry behind a run", behind: "b", again: retry, goesOn: true, want: "a c1 e1 b a", marked: "a"},
		{name: "the same text behind a run", behind: "b", again: send("text of a"), goesOn: true, want: "a c1 e1 b a", marked: "a"},
		{name: "another text behind a run", behind: "b", again: send("other"), goesOn: true, want: "a c1 e1 b other"},
		{name: "a long other text behind a run", behind: "b", again: send(long), goesOn: true, want: "a c1 e1 b " + long},
		{name: "Retry behind a run that stores nothing", behind: "b", fails: true, again: retry, goesOn: true, want: "a c1"},
		{name: "the same text behind a run that stores nothing", behind: "b", fails: true, again: send("text of a"), goesOn: true, want: "a c1"},
		{name: "another text behind a run that stores nothing", behind: "b", fails: true, again: send("other"), goesOn: true, want: "a c1 e1 other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, runs := hold(t, store.NewMemory(), workspace.Options{})
			key := givenUp(t, runs)
			if row.before != "" {
				runs.Begin(t, "ann", text(row.before)).Finish(t)
			}
			require.Equal(t, row.goesOn, view(t, m, "ann").DeadLetters[0].GoesOn)
			var other *heldRun
			if row.behind != "" {
				other = runs.Begin(t, "ann", text(row.behind))
			}
			row.again(t, runs)
			for _, d := range view(t, m, "ann").DeadLetters {
				require.NotEqual(t, "a", d.Message.ID)
			}
			switch {
			case row.fails:
				other.Fail(t, errors.New("nothing is stored"))
			case other != nil:
				other.Finish(t)
			}
			run := runs.Next(t)
			require.Equal(t, "a", run.Message().ID)
			require.Equal(t, row.want, dialog(&run.Workspace))
			require.Equal(t, row.marked, askedAgain(&run.Workspace))
			var open []string
			for _, call := range transcript.Pending(state.Messages.GetOr(run.State(), nil)) {
				open = append(open, call.Key)
			}
			if row.want == "a c1" {
				require.Equal(t, []string{key}, open)
			} else {
				require.Empty(t, open)
			}
			run.Finish(t)
			v := view(t, m, "ann")
			require.Equal(t, row.want, dialog(&v.Workspace))
			require.Equal(t, row.marked, askedAgain(&v.Workspace))
		})
	}
}

// What the first run of a message has not stored does not stand, and is not asked
// again.
func TestAMessageWhoseRunHasStoredNothingIsNew(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *workspace.Manager, run *heldRun){
		"before a commit": func(t *testing.T, _ *workspace.Manager, run *heldRun) { run.Fail(t, errors.New("no good")) },
	} {
		t.Run(name, func(t *testing.T) {
			m, runs := hold(t, store.NewMemory(), workspace.Options{})
			end(t, m, runs.Begin(t, "ann", text("a")))
			require.False(t, view(t, m, "ann").DeadLetters[0].GoesOn)
			require.NoError(t, m.Retry(t.Context(), "ann", "a"))
			run := runs.Next(t)
			require.Equal(t, "a", dialog(&run.Workspace))
			require.Empty(t, askedAgain(&run.Workspace))
			run.Finish(t)
		})
	}
}

// A message that goes on may be given up again, and goes on once more, in every
// process.
func TestAMessageGoesOnMoreThanOnce(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{})
	key := givenUp(t, runs)
	for range 2 {
		require.NoError(t, m.Retry(t.Context(), "ann", "a"))
		run := runs.Next(t)
		require.Equal(t, "a c1", dialog(&run.Workspace))
		run.Fail(t, errors.New("no good"))
		require.True(t, view(t, m, "ann").DeadLetters[0].GoesOn, "also if this run has stored nothing")
		require.NoError(t, m.Close())
		m, runs = hold(t, db, workspace.Options{})
	}
	require.NoError(t, m.Retry(t.Context(), "ann", "a"))
	run := runs.Next(t)
	require.NoError(t, run.State().History().Answer(state.ToolResult(refund("1"), `"done"`)))
	run.Finish(t)
	v := view(t, m, "ann")
	require.Equal(t, "a c1 r1", dialog(&v.Workspace))
	require.Equal(t, key, keyOf(t, &v.Workspace, "1"))
}

// A message that was edited away does not stand, and is put at the end.
func TestAMessageThatWasRemovedIsAskedAgain(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	givenUp(t, runs)
	update(t, m, func(w *workspace.Workspace) error { return state.Messages.Replace(w.State(), nil) })
	require.False(t, view(t, m, "ann").DeadLetters[0].GoesOn)
	require.NoError(t, m.Retry(t.Context(), "ann", "a"))
	run := runs.Next(t)
	require.Equal(t, "a", dialog(&run.Workspace))
	run.Finish(t)
}

// A fork keeps which runs have stored its messages. A new message of the fork with
// the id of such a run is another message: it is not lost, is given up as any
// other, and goes on where its own run has ended.
func TestAForkTakesMessagesWithTheIDsOfItsSource(t *testing.T) {
	for name, fromDead := range map[string]bool{"of a message that was handled": false, "of a dead letter": true} {
		for _, committed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				m, runs := hold(t, store.NewMemory(), workspace.Options{})
				run := runs.Begin(t, "ann/1", text("a"))
				require.NoError(t, run.Commit(t.Context()))
				if fromDead {
					run.Fail(t, errors.New("no good"))
				} else {
					run.Finish(t)
				}
				require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
				fork := view(t, m, "ann/2")
				for said := range fork.Messages(0, 100) {
					require.Equal(t, "a", said.Run, "the fork keeps the id")
				}
				run = runs.Begin(t, "ann/2", saying("a", "new"))
				require.Equal(t, "a new", dialog(&run.Workspace))
				require.Empty(t, askedAgain(&run.Workspace))
				if committed {
					require.NoError(t, run.Commit(t.Context()))
				}
				run.Fail(t, errors.New("no good"))
				require.Equal(t, committed, view(t, m, "ann/2").DeadLetters[0].GoesOn)
				require.NoError(t, m.Retry(t.Context(), "ann/2", "a"))
				run = runs.Next(t)
				require.Equal(t, "a new", dialog(&run.Workspace))
				require.Empty(t, askedAgain(&run.Workspace))
				run.Finish(t)
				v := view(t, m, "ann/2")
				require.Equal(t, "a new", dialog(&v.Workspace))
				v = view(t, m, "ann/1")
				require.Equal(t, "a", dialog(&v.Workspace))
			})
		}
	}
}
