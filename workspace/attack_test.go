package workspace_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The reason of a dead letter hides secrets that the failed run has replaced or
// deleted, which are stored still, and those that it has set.
func TestReasonHidesStoredSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, change := range map[string]func(run *workspace.Run) error{
		"replaced": func(run *workspace.Run) error {
			return errors.Join(run.Memory().SetSecret("key", "another-value"), token.Set(run.State(), "another-token"))
		},
		"deleted": func(run *workspace.Run) error {
			run.Memory().Delete("key")
			_, err := token.Delete(run.State())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
					if err := change(run); err != nil {
						return err
					}
					return errors.New("login failed with " + secret + " and tok-" + secret + ", not with another-token")
				}})
				require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
					return errors.Join(w.Memory().SetSecret("key", secret), token.Set(w.State(), "tok-"+secret))
				}))
				_, _ = m.Handle(t.Context(), "ann", text("1"))
				out, err := m.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
				require.Contains(t, out.Reason, "login failed")
				require.NotContains(t, out.Reason, secret)
				require.Equal(t, name != "replaced", strings.Contains(out.Reason, "another-token"), out.Reason)
			})
		})
	}
}

// Within a run, Wait would wait for the run.
func TestWaitInRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, _ *workspace.Run) error {
			return m.Wait(ctx)
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Handle(ctx, "ann", text("1"))
		require.ErrorIs(t, err, workspace.ErrBusy)
	})
}
