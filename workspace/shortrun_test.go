package workspace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run that takes a small part of the TTL does not cost the store a watch.
func TestShortRunsAreNotWatched(t *testing.T) {
	for _, test := range []struct {
		name    string
		takes   time.Duration
		watches int
	}{
		{"short", time.Second, 0},
		{"long", 3 * time.Second, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := fakestore.Count(store.NewMemory())
				m := open(t, db, workspace.Options{TTL: 64 * time.Second, Run: func(context.Context, *workspace.Run) error {
					time.Sleep(test.takes)
					return nil
				}})
				out, err := m.Handle(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				require.Equal(t, test.watches, db.Calls("Watch"))
				require.NoError(t, m.Close())
			})
		})
	}
}
