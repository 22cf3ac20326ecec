package workspace_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A call of the store that does not return delays the messages of its user by
// less than 1.5 TTL, whichever call it is.
func TestCallOfTheStoreThatHangs(t *testing.T) {
	for n := int64(1); ; n++ {
		reached := false
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var left atomic.Int64 // calls until the one that hangs, as on a connection that was cut without a word
				stuck := fakestore.New(fakestore.Bare{Store: db}, func(ctx context.Context, c fakestore.Call, do func() error) error {
					if left.Add(-1) != 0 {
						return do()
					}
					<-ctx.Done()
					err := context.DeadlineExceeded
					if c.Writes != nil {
						err = store.ErrUnknownOutcome
					}
					return &store.Error{Store: "stuck", Op: "test", Err: err}
				})
				m := open(t, stuck, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
					if err := visits.Set(run.State(), 1); err != nil {
						return err
					}
					return run.Commit(ctx)
				}})
				left.Store(n)
				began := time.Now()
				results := make(chan error, 3)
				for i := range 3 {
					go func() {
						_, err := m.Handle(context.Background(), "ann", text(fmt.Sprint(i)))
						results <- err
					}()
				}
				for range 3 {
					select {
					case err := <-results:
						require.NoError(t, err)
					case <-time.After(10 * ttl):
						require.Fail(t, "a message is not handled")
					}
				}
				require.Less(t, time.Since(began), ttl*3/2)
				reached = left.Load() <= 0
				require.NoError(t, m.Close())
				require.Equal(t, 3, visits.GetOr(view(t, open(t, db, workspace.Options{}), "ann").State(), 0))
			})
		})
		if !reached || t.Failed() {
			break
		}
	}
}
