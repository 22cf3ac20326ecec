package workspace_test

import (
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

func TestInfo(t *testing.T) {
	db := store.NewMemory()
	m, err := workspace.Open(t.Context(), store.ReadOnly(db), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	info := m.Info()
	require.Equal(t, "memory", info.Store)
	require.Equal(t, store.DurabilityProcess, info.Durability)
	require.True(t, info.ReadOnly)
	require.Nil(t, info.Schema)
	require.Nil(t, info.Run)
	require.Equal(t, 4*time.Second, info.TTL)
	require.Equal(t, 32, info.Queue)
	require.Empty(t, info.Keys)

	schema := state.MustSchema()
	m, err = workspace.Open(t.Context(), db, &workspace.Options{
		Schema: schema, Keys: []workspace.Key{{ID: "new", Secret: make([]byte, 32)}, {ID: "old", Secret: make([]byte, 33)}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	info = m.Info()
	require.False(t, info.ReadOnly)
	require.Same(t, schema, info.Schema)
	require.Equal(t, []workspace.Key{{ID: "new"}, {ID: "old"}}, info.Keys)
}
