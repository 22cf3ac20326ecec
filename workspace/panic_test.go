package workspace_test

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

const luck = "what-the-store-was-given"

// panickyStore panics in one of its methods while that is set.
type panickyStore struct {
	store.Store
	at atomic.Value
}

func (s *panickyStore) enter(method string) {
	if s.at.Load() == method {
		panic("no luck with " + luck)
	}
}

func (s *panickyStore) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	s.enter("Get")
	return s.Store.Get(ctx, keys...)
}

func (s *panickyStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	s.enter("Batch")
	return s.Store.Batch(ctx, writes)
}

func (s *panickyStore) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		s.enter("List")
		s.Store.List(ctx, prefix, after, values)(yield)
	}
}

func (s *panickyStore) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		s.enter("Watch")
		s.Store.(store.Watcher).Watch(ctx, prefix)(yield)
	}
}

// A panic of a store is its error, also where no caller waits for it: a Manager
// that looks for runs goes on when the store works again.
func TestStoreThatPanicsInTheBackground(t *testing.T) {
	for _, method := range []string{"Get", "Batch", "List", "Watch"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log testkit.Buffer
				db := store.NewMemory()
				panicky := &panickyStore{Store: db}
				release := make(chan bool)
				m := open(t, panicky, workspace.Options{
					TTL:    time.Second,
					Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Run: func(ctx context.Context, run *workspace.Run) error {
						if run.Message().ID == "waits" {
							<-release
						}
						return nil
					},
				})
				_, err := m.Submit(t.Context(), "bob", text("waits")) // whose lease is renewed, and watched
				require.NoError(t, err)
				go func() {
					for range m.Watch(t.Context(), "ann") { // until the Manager is closed
					}
				}()
				synctest.Wait()
				dead, kill := asProcess(db)
				other := open(t, dead, workspace.Options{TTL: time.Second, Run: func(ctx context.Context, _ *workspace.Run) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}})
				_, err = other.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				synctest.Wait()
				kill()
				panicky.at.Store(method)
				time.Sleep(3 * time.Second)
				panicky.at.Store("")
				out, err := m.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				close(release)
				if method != "Watch" {
					require.Contains(t, log.String(), "the store panicked")
					require.Contains(t, log.String(), "panic_test.go", "the stack")
				}
				require.NotContains(t, log.String(), luck)
			})
		})
	}
}

// The panic of a loop over what a store has is that of the program.
func TestPanicOfALoopOverAStore(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return token.Set(w.State(), "x") }))
	require.PanicsWithValue(t, "mine", func() {
		for range m.Summaries(t.Context(), "") {
			panic("mine")
		}
	})
}
