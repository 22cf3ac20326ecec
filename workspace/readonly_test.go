package workspace_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A Manager on a read-only store shows everything, whatever is under way, and
// refuses all else at once.
func TestManagerOnAReadOnlyStore(t *testing.T) {
	sealed := []workspace.Key{{ID: "k", Secret: make([]byte, 32)}}
	for name, keys := range map[string][]workspace.Key{"plain": nil, "sealed": sealed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := store.NewMemory()
				pin := &state.Field[string]{Name: "pin", Secret: true}
				schema := state.MustSchema(pin)
				m, runs := hold(t, db, workspace.Options{Schema: schema, Keys: keys, TTL: time.Second})
				require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return pin.Set(w.State(), "4711-0815") }))
				require.NoError(t, m.Store("ann").Set(t.Context(), "k", "v"))
				runs.Begin(t, "ann", text("0")).Fail(t, fmt.Errorf("no good"))
				run := runs.Begin(t, "ann", text("1"))
				_, err := m.Submit(t.Context(), "ann", text("2"))
				require.NoError(t, err)

				wasCalled := func(context.Context, *workspace.Run) error {
					t.Error("a run was begun")
					return nil
				}
				reader := open(t, store.ReadOnly(db), workspace.Options{
					Schema: schema, Keys: keys, TTL: time.Second, Name: "desk", Run: wasCalled,
				})
				var users []string
				for user, err := range reader.List(t.Context()) {
					require.NoError(t, err)
					users = append(users, user)
				}
				for s, err := range reader.Summaries(t.Context(), "") {
					require.NoError(t, err)
					require.NoError(t, s.Err)
					users = append(users, s.UserID)
				}
				require.Equal(t, []string{"ann", "ann"}, users)
				v := view(t, reader, "ann")
				require.Equal(t, run.ID(), v.Run.ID)
				require.Len(t, v.Queue, 1)
				require.Len(t, v.DeadLetters, 1)
				require.Equal(t, "4711-0815", pin.GetOr(v.State(), ""))
				_, err = reader.ViewAt(t.Context(), "ann", 1)
				require.NoError(t, err)
				records := 0
				for _, err := range reader.Records(t.Context(), "ann", 0) {
					require.NoError(t, err)
					records++
				}
				require.Positive(t, records)
				effects, err := reader.Diff(t.Context(), "ann", 0, 1)
				require.NoError(t, err)
				require.NotEmpty(t, effects)
				report, err := reader.Verify(t.Context(), "ann")
				require.NoError(t, err)
				require.Equal(t, 1, report.Data)
				_, err = reader.Export(t.Context(), "ann")
				require.NoError(t, err)
				value, found, err := reader.Store("ann").Get(t.Context(), "k")
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, "v", value)
				for err := range reader.Check(t.Context(), schema) {
					require.Fail(t, "it fits", err)
				}
				for e, err := range reader.Watch(t.Context(), "ann").AsHost() {
					require.NoError(t, err)
					require.Equal(t, 1, e.Queued)
					break
				}

				export, err := m.Export(t.Context(), "ann")
				require.NoError(t, err)
				change := func(w *workspace.Workspace) error { return pin.Set(w.State(), "1") }
				for name, write := range map[string]func() error{
					"Handle": func() error { _, err := reader.Handle(t.Context(), "ann", text("3")); return err },
					"Submit": func() error { _, err := reader.Submit(t.Context(), "ann", text("3")); return err },
					"Do": func() error {
						return reader.Do(t.Context(), "bob", func(context.Context, *workspace.Run) error { return nil })
					},
					"Update":          func() error { return reader.Update(t.Context(), "bob", change) },
					"UpdateAt":        func() error { return reader.UpdateAt(t.Context(), "bob", 0, change) },
					"Retry":           func() error { return reader.Retry(t.Context(), "ann", "0") },
					"Discard":         func() error { return reader.Discard(t.Context(), "ann", "2") },
					"Cancel":          func() error { return reader.Cancel(t.Context(), "ann", run.ID(), "no") },
					"Reset":           func() error { _, err := reader.Reset(t.Context(), "ann"); return err },
					"Delete":          func() error { return reader.Delete(t.Context(), "ann") },
					"Compact":         func() error { return reader.Compact(t.Context(), "ann") },
					"Expire":          func() error { _, err := reader.Expire(t.Context(), time.Nanosecond); return err },
					"ImportWorkspace": func() error { return reader.ImportWorkspace(t.Context(), "carl", export) },
					"Store":           func() error { return reader.Store("ann").Set(t.Context(), "k", "w") },
				} {
					began := time.Now()
					require.ErrorIs(t, write(), store.ErrReadOnly, name)
					require.Zero(t, time.Since(began), name)
				}
				require.Equal(t, int64(0), reader.Stats().Commits)

				// Nothing of the run is touched, even if its holder is silent.
				run.Finish(t)
				require.NoError(t, reader.Wait(t.Context()))
				require.NoError(t, reader.Close())
			})
		})
	}
}
