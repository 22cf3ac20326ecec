package workspace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A deployment without keys gets its first key in the order that Key documents,
// with the values of Manager.Store.
func TestFirstKey(t *testing.T) {
	db := store.NewMemory()
	plain := open(t, db, workspace.Options{Run: nothing})
	_, err := plain.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.NoError(t, plain.Store("ann").Set(t.Context(), "card", "4242"))

	sealing := open(t, db, workspace.Options{Run: nothing, Keys: []workspace.Key{key("a")}})
	_, _, err = sealing.Store("ann").Get(t.Context(), "card")
	require.ErrorIs(t, err, workspace.ErrInvalidKey, "nobody can say who wrote a plain value")

	data, err := plain.Export(t.Context(), "ann")
	require.NoError(t, err)
	require.NoError(t, plain.Delete(t.Context(), "ann"))
	n, err := plain.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, plain.Close())

	require.NoError(t, sealing.ImportWorkspace(t.Context(), "ann", data))
	value, found, err := sealing.Store("ann").Get(t.Context(), "card")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "4242", value)
	out, err := sealing.Submit(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDuplicate, out.Status)
	report, err := sealing.Verify(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, report.Keys)
	require.Equal(t, 1, report.Data)
	require.NoError(t, sealing.Close())
}
