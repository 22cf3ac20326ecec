package workspace_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// stuckStore is a store of which one call hangs until its context ends, as on a
// connection that was cut without a word. It reports no changes.
type stuckStore struct {
	store.Batcher
	left atomic.Int64 // calls until then
}

// wait returns an error from the call that hangs.
func (s *stuckStore) wait(ctx context.Context, unknown error) error {
	if s.left.Add(-1) != 0 {
		return nil
	}
	<-ctx.Done()
	return &store.Error{Store: "stuck", Op: "test", Err: unknown}
}

func (s *stuckStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.wait(ctx, context.DeadlineExceeded); err != nil {
		return store.Entry{}, err
	}
	return s.Batcher.Get(ctx, key)
}

func (s *stuckStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	if err := s.wait(ctx, store.ErrUnknownOutcome); err != nil {
		return "", err
	}
	return s.Batcher.Put(ctx, key, value, cond)
}

func (s *stuckStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if err := s.wait(ctx, store.ErrUnknownOutcome); err != nil {
		return nil, err
	}
	return s.Batcher.Batch(ctx, writes)
}

func (s *stuckStore) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	if err := s.wait(ctx, context.DeadlineExceeded); err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
	}
	return s.Batcher.Scan(ctx, prefix, after)
}

// A call of the store that does not return delays the messages of its user by
// less than 1.5 TTL, whichever call it is.
func TestCallOfTheStoreThatHangs(t *testing.T) {
	for n := int64(1); ; n++ {
		reached := false
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				s := &stuckStore{Batcher: db.(store.Batcher)}
				m := open(t, s, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
					if err := visits.Set(run.State(), 1); err != nil {
						return err
					}
					return run.Commit(ctx)
				}})
				s.left.Store(n)
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
				reached = s.left.Load() <= 0
				require.NoError(t, m.Close())
				require.Equal(t, 3, visits.Or(view(t, open(t, db, workspace.Options{}), "ann").State(), 0))
			})
		})
		if !reached || t.Failed() {
			break
		}
	}
}
