package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// talkOf returns the texts of a conversation.
func talkOf(w workspace.Workspace) (texts []string) {
	for _, m := range state.Messages.GetOr(w.State(), nil) {
		texts = append(texts, fmt.Sprint(m.Role(), ": ", m.Text()))
	}
	return texts
}

// answering is an Options.Run that notes the visit, commits, and answers.
func answering(ctx context.Context, run *workspace.Run) error {
	if err := errors.Join(visits.Set(run.State(), 1), run.Commit(ctx)); err != nil {
		return err
	}
	return state.Messages.Set(run.State(), []state.Message{state.AssistantText("answer to " + run.Message().ID)})
}

func TestFork(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: answering})
	for _, id := range []string{"1", "2", "3"} {
		_, err := m.Handle(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	before, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	numbers := map[string]int{} // by text
	for said := range before.Messages(0, 100) {
		numbers[said.Message.Text()] = said.Number
	}
	talk := talkOf(before.Workspace)
	require.Len(t, talk, 6)
	for i, c := range []struct {
		at     workspace.ForkPoint
		said   int // messages of the fork
		visits int
	}{
		{workspace.ForkPoint{}, 6, 3},
		{workspace.ForkPoint{Version: before.Version}, 6, 3},
		{workspace.ForkPoint{Version: 2}, 2, 1},
		{workspace.ForkPoint{Version: 3}, 3, 2},
		{workspace.ForkPoint{Message: numbers["text of 2"]}, 2, 1},
		{workspace.ForkPoint{Message: numbers["text of 3"]}, 4, 2},
		{workspace.ForkPoint{Message: numbers["answer to 3"]}, 5, 3},
		{workspace.ForkPoint{Message: numbers["text of 1"]}, 0, 0},
		{workspace.ForkPoint{Version: before.Version, Message: numbers["text of 2"]}, 2, 3},
	} {
		to := workspace.Thread("ann", fmt.Sprint(i))
		require.NoError(t, m.Fork(t.Context(), "ann", to, c.at))
		v, err := m.View(t.Context(), to)
		require.NoError(t, err)
		require.True(t, v.Exists)
		require.Equal(t, talk[:c.said], append([]string{}, talkOf(v.Workspace)...), "%+v", c.at)
		require.Equal(t, c.visits, visits.GetOr(v.State(), 0), "%+v", c.at)
		require.Empty(t, v.Ended)
		_, err = m.Verify(t.Context(), to)
		require.NoError(t, err)
		_, err = m.Handle(t.Context(), to, text("2")) // it knows no ids of messages
		require.NoError(t, err)
		v, err = m.View(t.Context(), to)
		require.NoError(t, err)
		require.Equal(t, append(talk[:c.said:c.said], "user: text of 2", "assistant: answer to 2"), talkOf(v.Workspace))
		for said := range v.Messages(0, 2) {
			require.NotZero(t, said.Time)
		}
	}
	after, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, before.Version, after.Version, "the thread stays as it is")

	for name, c := range map[string]struct {
		from, to string
		at       workspace.ForkPoint
		want     error
	}{
		"it exists":            {"ann", "ann/0", workspace.ForkPoint{}, workspace.ErrExists},
		"itself":               {"ann", "ann", workspace.ForkPoint{}, workspace.ErrExists},
		"another user":         {"ann", "bob/1", workspace.ForkPoint{}, workspace.ErrInvalid},
		"from another user":    {"ann", "ann%2F1", workspace.ForkPoint{}, workspace.ErrInvalid},
		"the user part":        {"ann", "ann/", workspace.ForkPoint{}, workspace.ErrInvalid},
		"from the user part":   {"ann/", "ann/new", workspace.ForkPoint{}, workspace.ErrInvalid},
		"an invalid id":        {"ann", "ann/1/2", workspace.ForkPoint{}, workspace.ErrInvalid},
		"from an invalid id":   {"ann/1/2", "ann/new", workspace.ForkPoint{}, workspace.ErrInvalid},
		"no such thread":       {"ann/none", "ann/new", workspace.ForkPoint{}, workspace.ErrNotFound},
		"no such version":      {"ann", "ann/new", workspace.ForkPoint{Version: 99}, workspace.ErrInvalid},
		"no such message":      {"ann", "ann/new", workspace.ForkPoint{Message: 99}, workspace.ErrNotFound},
		"a negative number":    {"ann", "ann/new", workspace.ForkPoint{Message: -1}, workspace.ErrNotFound},
		"not in that version":  {"ann", "ann/new", workspace.ForkPoint{Version: 2, Message: numbers["text of 3"]}, workspace.ErrNotFound},
		"to a user's own that": {"ann/0", "ann", workspace.ForkPoint{}, workspace.ErrExists},
	} {
		require.ErrorIs(t, m.Fork(t.Context(), c.from, c.to, c.at), c.want, name)
	}
	v, err := m.View(t.Context(), "ann/new")
	require.NoError(t, err)
	require.False(t, v.Exists)
}

// What was compacted away cannot be forked, but the present content can be cut.
func TestForkOfCompacted(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: answering, RecordBytes: -1})
	for _, id := range []string{"1", "2"} {
		_, err := m.Handle(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	require.NoError(t, m.Compact(t.Context(), "ann"))
	for _, at := range []workspace.ForkPoint{{Version: 2}, {Message: 3}} {
		require.ErrorIs(t, m.Fork(t.Context(), "ann", "ann/1", at), state.ErrCompacted)
	}
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.NoError(t, m.Fork(t.Context(), "ann", "ann/1", workspace.ForkPoint{Version: v.Version, Message: 3}))
	fork, err := m.View(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Equal(t, talkOf(v.Workspace)[:2], talkOf(fork.Workspace))
}

// A fork has no open calls, no run, no queue and no former secrets, and nothing of
// what was cut off.
func TestForkOfWork(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{Title: func(st *state.State) string { return fmt.Sprint(len(state.Messages.GetOr(st, nil)), " said") }})
	ask := func(run *heldRun, id string) {
		t.Helper()
		require.NoError(t, state.Messages.Set(run.State(), []state.Message{
			state.ToolCalls(state.ToolCall{ID: id, Name: "pay", Input: "{}", Key: "key-" + id}),
		}))
	}
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error {
		return errors.Join(token.Set(w.State(), "former-token"), w.Memory().SetSecret("pin", "former-pin"), w.Memory().Set("likes", "tea"))
	}))
	run := runs.Begin(t, "ann/1", text("1"))
	ask(run, "suspended")
	require.NoError(t, run.Suspend("key-suspended"))
	run.Finish(t)
	run = runs.Begin(t, "ann/1", text("2"))
	ask(run, "open")
	require.NoError(t, run.Commit(t.Context()))
	_, err := m.Submit(t.Context(), "ann/1", text("3"))
	require.NoError(t, err)

	v, err := m.View(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Len(t, v.Suspended(), 1)
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
	fork, err := m.View(t.Context(), "ann/2")
	require.NoError(t, err)
	require.Empty(t, fork.Suspended())
	require.Nil(t, fork.Run)
	require.Empty(t, fork.Queue)
	said := state.Messages.GetOr(fork.State(), nil)
	require.Empty(t, transcript.Pending(said))
	require.Equal(t, []string{"user", "assistant", "tool_result", "user", "assistant", "tool_result"}, rolesOf(said))
	require.Contains(t, said[2].Text(), "There is no result")
	s, err := m.Summary(t.Context(), "ann/2")
	require.NoError(t, err)
	require.Zero(t, s.Suspended)
	require.Equal(t, "6 said", s.Title)
	require.Equal(t, "former-token", token.GetOr(fork.State(), ""))
	likes, _ := fork.Memory().Get("likes")
	require.Equal(t, "tea", likes.Value)

	require.NoError(t, m.Discard(t.Context(), "ann/1", "3"))
	require.NoError(t, m.Cancel(t.Context(), "ann/1", v.Run.ID, ""))
	run = runs.Begin(t, "ann/1", text("4")) // as long as it is under way, the past stays
	run.Memory().Delete("pin")
	require.NoError(t, token.Set(run.State(), "present-token"))
	require.NoError(t, run.Commit(t.Context()))
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/3", workspace.ForkPoint{Version: 1}))
	fork, err = m.View(t.Context(), "ann/3")
	require.NoError(t, err)
	require.Equal(t, "present-token", token.GetOr(fork.State(), ""))
	for key, value := range entries(t, db) {
		if strings.Contains(key, "ann%2F3") {
			require.NotContains(t, value, "former", key)
			require.NotContains(t, value, "text of", key)
		}
	}
}

func rolesOf(msgs []state.Message) (roles []string) {
	for _, m := range msgs {
		roles = append(roles, string(m.Role()))
	}
	return roles
}
