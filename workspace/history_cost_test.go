package workspace_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// History is bounded whatever a workspace goes through, and what it shows at a
// version is what was there.
func TestHistoryIsBounded(t *testing.T) {
	effort.Cost(t)
	for _, history := range []int{-1, 32 << 10, 100 << 10, 0} {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := history
				switch {
				case history < 0:
					limit = 0
				case history == 0:
					limit = 256 << 10
				}
				db := store.NewMemory()
				draft := &state.Field[string]{Name: "draft"}
				m := open(t, db, workspace.Options{Schema: state.MustSchema(draft), RecordBytes: history})
				note := func(n int) string { return fmt.Sprint(n, strings.Repeat("x", 1000+n%7*200)) }
				for n := 1; n <= 600; n++ {
					require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
						return draft.Set(w.State(), note(n))
					}))
					s, err := m.Summary(t.Context(), "ann")
					require.NoError(t, err)
					most := limit
					if limit > 0 {
						most = max(limit, 64<<10) // what one compaction moves is kept whole
					}
					require.LessOrEqual(t, s.Bytes, most+64<<10+20<<10, "records, those since the last compaction, and snapshots")
					if n%50 == 0 {
						for version := s.Oldest; version <= s.Version; version += 7 {
							v, err := m.ViewAt(t.Context(), "ann", version)
							require.NoError(t, err)
							if version > 0 {
								require.True(t, note(int(version)) == draft.GetOr(v.State(), ""), version)
							}
						}
					}
				}
				s, err := m.Summary(t.Context(), "ann")
				require.NoError(t, err)
				require.Positive(t, s.Oldest)
				if history >= 0 {
					require.GreaterOrEqual(t, s.Bytes, limit-64<<10)
				}
			})
		})
	}
}
