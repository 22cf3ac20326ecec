package workspace_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Users that do not exist cost no memory, however many names somebody tries.
func TestUsersThatDoNotExist(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: visit})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	ask := func(n int) {
		for i := range n {
			s, err := m.Summary(t.Context(), fmt.Sprint("user", i))
			require.NoError(t, err)
			require.Zero(t, s.Seq)
		}
	}
	objects := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapObjects
	}
	const names = 5000
	ask(500)
	before := objects()
	ask(names)
	require.Less(t, int(objects())-int(before), names, "objects that stay")
	out, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDuplicate, out.Status)
}
