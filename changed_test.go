package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// TestChanged: fields and keys that were set, replaced, deleted or set back,
// on branches, snapshots and states that were made apart.
func TestChanged(t *testing.T) {
	count, notes := &state.Field[int]{Name: "count"}, &state.Field[[]string]{Name: "notes"}
	schema := state.MustSchema(count, notes, state.AllowUndeclared)
	st, apart := state.New(schema), state.New(schema)
	changed := func(now, since *state.State) []string {
		names, err := now.Changed(since)
		require.NoError(t, err)
		return names
	}
	require.NoError(t, count.Set(st, 1))
	require.NoError(t, st.KV().Set("b", 1))
	first := st.Snapshot()
	require.Empty(t, changed(st, first))
	require.Equal(t, []string{"count", "b"}, changed(st, apart))

	branch := st.Fork()
	require.NoError(t, notes.Set(branch, []string{"x"}))
	require.NoError(t, branch.KV().Set("a", 1))
	_, err := branch.KV().Delete("b")
	require.NoError(t, err)
	require.NoError(t, count.Replace(branch, 2))
	require.NoError(t, count.Replace(branch, 1))
	require.NoError(t, state.Messages.Set(branch, []state.Message{state.UserText("hi")}))
	for _, now := range []*state.State{branch, branch.Snapshot()} {
		require.ElementsMatch(t, []string{"messages", "notes", "a", "b"}, changed(now, first))
		require.ElementsMatch(t, changed(now, first), changed(first, now))
	}

	require.NoError(t, count.Set(apart, 1))
	require.NoError(t, apart.KV().Set("b", 1))
	require.Empty(t, changed(apart, first))
	require.NoError(t, apart.History().Push(state.InferenceResult{}))
	require.Empty(t, changed(apart, first))

	_, err = st.Changed(state.New(nil))
	require.ErrorIs(t, err, state.ErrInvalid)
	_, err = st.Changed(nil)
	require.ErrorIs(t, err, state.ErrInvalid)
}
