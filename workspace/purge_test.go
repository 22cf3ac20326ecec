package workspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A secret that a run sets first, and that is rolled back with it, does not stay
// in what compaction keeps.
func TestSecretOfARolledBackRunIsPurged(t *testing.T) {
	const canary = "Xq7canaryZ"
	for name, set := range map[string]func(w *workspace.Workspace) error{
		"field":  func(w *workspace.Workspace) error { return token.Set(w.State(), canary) },
		"memory": func(w *workspace.Workspace) error { return w.Memory().SetSecret("pin", canary) },
	} {
		for _, known := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				db := store.NewMemory()
				m, runs := hold(t, db, workspace.Options{RecordBytes: 1 << 20})
				writeLong(t, m)
				run := runs.Begin(t, "ann", text("1"))
				require.NoError(t, set(&run.Workspace))
				require.NoError(t, run.Commit(t.Context()))
				require.True(t, holds(t, db, canary))

				other, others := m, runs
				if !known { // the schema may have been published later
					other, others = hold(t, db, workspace.Options{RecordBytes: 1 << 20, Schema: state.MustSchema()})
				}
				next := others.Begin(t, "ann", whenBusy(workspace.BusyRollback, text("2")))
				for _, letter := range []string{"y", "z"} { // more than the snapshot, so that they are compacted
					require.NoError(t, next.Workspace.Memory().Set("long", strings.Repeat(letter, 60_000)))
					require.NoError(t, next.Commit(t.Context()))
				}
				next.Finish(t)
				// An update compacts before it returns, unless that was done before.
				require.NoError(t, other.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
					return w.Memory().Set("short", "z")
				}))
				require.False(t, holds(t, db, canary))
			})
		}
	}
}

// holds reports whether a value in a store has a text.
func holds(t *testing.T, db store.Store, text string) bool {
	t.Helper()
	for e, err := range db.List(t.Context(), "", "", true) {
		require.NoError(t, err)
		if strings.Contains(string(e.Value), text) {
			return true
		}
	}
	return false
}
