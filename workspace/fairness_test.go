package workspace_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A user whose queue is never empty does not keep the slots of a Manager: a run
// that waits for a slot comes before the next run of that user.
func TestBusyUserDoesNotStarveOthers(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		const messages = 50
		var m *workspace.Manager
		var handled atomic.Int32
		m = open(t, db, workspace.Options{TTL: ttl, Runs: 1, Run: func(ctx context.Context, run *workspace.Run) error {
			time.Sleep(ttl / 10)
			if run.UserID() == "bob" {
				return nil
			}
			if n := handled.Add(1); n < messages {
				_, err := m.Submit(ctx, "ann", text(fmt.Sprint("next ", n)))
				return err
			}
			return nil
		}})
		for _, id := range []string{"first", "second"} {
			_, err := m.Submit(t.Context(), "ann", text(id))
			require.NoError(t, err)
		}
		time.Sleep(ttl / 20)
		_, err := m.Handle(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		require.LessOrEqual(t, handled.Load(), int32(2))
		require.NoError(t, m.Wait(t.Context()))
		require.EqualValues(t, messages+1, handled.Load())
		require.NoError(t, m.Close())
	})
}
