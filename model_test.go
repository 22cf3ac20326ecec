package state_test

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/statemodel"
	"github.com/stretchr/testify/require"
)

// The tests of this file prove that a State does what its specification in
// internal/test/statemodel says, for random programs. Then follow the mistakes that
// such programs found, as the shortest program that shows each.

func TestModel(t *testing.T) { statemodel.Check(t) }

func TestModelAppendOfNothing(t *testing.T) {
	st := state.New(concSchema)
	b := st.Fork()
	require.NoError(t, concLog.Set(b, []string{"a"}))
	require.NoError(t, concLog.Set(b, nil))
	var last any
	for c, err := range b.Changes(0) {
		require.NoError(t, err)
		last = c.Value
	}
	require.Empty(t, last)
	require.NoError(t, concLog.Set(st, []string{"z"}))
	require.NoError(t, st.Join(b))
	require.Equal(t, []string{"z", "a"}, concLog.Or(st, nil))
}

func TestModelHistoryEcho(t *testing.T) {
	st := state.New(concSchema)
	require.NoError(t, st.History().Append(concSaid("one")))
	b := st.Fork()
	require.NoError(t, b.History().Append(state.InferenceResult{ID: "taken back"}))
	_, ok, err := b.History().Pop()
	require.True(t, ok)
	require.NoError(t, err)
	require.NoError(t, b.History().Reset(b.History().Results()))
	require.NoError(t, st.History().Append(concSaid("two")))
	require.NoError(t, st.Join(b), "the branch left the results as it found them")
	require.Equal(t, 2, st.History().Len())
}

func TestModelSetInUpdateOfABranchIsComputed(t *testing.T) {
	st := state.New(concSchema)
	a, b := st.Fork(), st.Fork()
	for _, s := range []*state.State{a, b} {
		require.NoError(t, s.Update(func(tx *state.State) error { return concFirst.Set(tx, concFirst.Or(tx, 0)+1) }))
	}
	require.ErrorIs(t, st.Join(a, b), state.ErrConflict, "one of two increments would be lost")
}

// A history that Revert made empty again is as before its first result: what
// follows combines with the results of a branch.
func TestModelHistoryRevertedToNothing(t *testing.T) {
	st := state.New(concSchema)
	empty := st.Snapshot()
	b := st.Fork()
	require.NoError(t, st.History().Append(concSaid("taken back")))
	require.NoError(t, st.Revert(empty))
	require.NoError(t, st.History().Append(concSaid("one")))
	require.NoError(t, b.History().Append(concSaid("two")))
	require.NoError(t, st.Join(b))
	require.Equal(t, 2, st.History().Len())
}
