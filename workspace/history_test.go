package workspace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run of many steps leaves its steps to be looked at afterwards, until the
// compaction after the next one: then there are more bytes than
// Options.RecordBytes.
func TestHistoryOfALongRun(t *testing.T) {
	steps := 10_000
	if testing.Short() {
		steps = 2_000
	}
	synctest.Test(t, func(t *testing.T) {
		const history = 64 << 10
		count := &state.Field[int]{Name: "count"}
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Schema: state.MustSchema(count), RecordBytes: history, Run: func(ctx context.Context, r *workspace.Run) error {
			for n := range steps {
				if err := count.Set(r.State(), n); err != nil {
					return err
				}
				if err := r.Commit(ctx); err != nil {
					return err
				}
			}
			return nil
		}})
		var first workspace.View
		for _, id := range []string{"1", "2"} {
			_, err := m.Handle(t.Context(), "ann", text(id))
			require.NoError(t, err)
			synctest.Wait() // for the compaction
			if id == "1" {
				first = *view(t, m, "ann")
			}
		}
		require.Zero(t, first.Oldest)
		v := view(t, m, "ann")
		require.Equal(t, first.Version, v.Oldest)
		at, bytes := v.Oldest, 0
		for r, err := range m.Records(t.Context(), "ann", v.Oldest) {
			require.NoError(t, err)
			at++
			require.Equal(t, at, r.Version)
			bytes += len(fmt.Sprint(r))
		}
		require.Equal(t, v.Version, at)
		s, err := m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, v.Oldest, s.Oldest)
		require.Greater(t, s.Bytes, history)
		report, err := m.Verify(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, int(v.Version-v.Oldest), report.Records)

		// The versions of a run are its commits, and the one before the end is the
		// last of them.
		for _, version := range []uint64{v.Oldest + 1, (v.Oldest + v.Version) / 2, v.Version - 1} {
			past, err := m.ViewAt(t.Context(), "ann", version)
			require.NoError(t, err)
			require.Equal(t, int(version-v.Oldest)-1, count.GetOr(past.State(), -1))
		}
		_, err = m.ViewAt(t.Context(), "ann", v.Oldest-1)
		require.ErrorIs(t, err, state.ErrCompacted)
		effects, err := m.Diff(t.Context(), "ann", v.Oldest, v.Version)
		require.NoError(t, err)
		require.NotEmpty(t, effects)
		require.NoError(t, m.Revert(t.Context(), "ann", workspace.RevertTo{Version: v.Oldest}))
		require.Equal(t, steps-1, count.GetOr(view(t, m, "ann").State(), -1))
	})
}

// A secret that was replaced is nowhere in the store, whatever History says.
func TestHistoryOfSecrets(t *testing.T) {
	key := &state.Field[string]{Name: "key", Secret: true}
	for name, remove := range map[string]func(t *testing.T, runs *heldRuns){
		"replaced": func(t *testing.T, runs *heldRuns) {
			require.NoError(t, runs.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return key.Set(w.State(), "other") }))
		},
		"deleted": func(t *testing.T, runs *heldRuns) {
			require.NoError(t, runs.Update(t.Context(), "ann", func(w *workspace.Workspace) error { _, err := w.State().KV().Delete("key"); return err }))
		},
		"reset": func(t *testing.T, runs *heldRuns) {
			_, err := runs.Reset(t.Context(), "ann")
			require.NoError(t, err)
		},
		"replaced by a run": func(t *testing.T, runs *heldRuns) {
			run := runs.Begin(t, "ann", text("1"))
			require.NoError(t, key.Set(run.State(), "other"))
			run.Finish(t)
		},
		"workspace deleted": func(t *testing.T, runs *heldRuns) { require.NoError(t, runs.Delete(t.Context(), "ann")) },
		"deleted in the memory": func(t *testing.T, runs *heldRuns) {
			require.NoError(t, runs.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
				_, err := w.Memory().Delete("pin")
				return err
			}))
		},
		"deleted by a run in the memory": func(t *testing.T, runs *heldRuns) {
			run := runs.Begin(t, "ann", text("1"))
			_, err := run.Memory().Delete("pin")
			require.NoError(t, err)
			require.NoError(t, run.Commit(t.Context()))
			run.Finish(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := "key"
			if strings.HasSuffix(name, "memory") {
				secret = "pin"
			}
			synctest.Test(t, func(t *testing.T) {
				for _, db := range []store.Store{store.NewMemory()} {
					draft := &state.Field[string]{Name: "draft"}
					m, runs := hold(t, db, workspace.Options{Schema: state.MustSchema(draft, key), RecordBytes: 1 << 20})
					require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
						if secret == "pin" {
							return w.Memory().SetSecret("pin", "sesame")
						}
						return key.Set(w.State(), "sesame")
					}))
					for range 300 {
						require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
							return draft.Set(w.State(), strings.Repeat("x", 1000))
						}))
					}
					s, err := m.Summary(t.Context(), "ann")
					require.NoError(t, err)
					require.Zero(t, s.Oldest)
					require.True(t, strings.Contains(fmt.Sprint(entries(t, db)), "sesame"))
					remove(t, runs)
					synctest.Wait()
					require.False(t, strings.Contains(fmt.Sprint(entries(t, db)), "sesame"))
				}
			})
		})
	}
}
