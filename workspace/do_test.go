package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func TestDo(t *testing.T) {
	var hooked []string
	m := open(t, store.NewMemory(), workspace.Options{Hooks: workspace.Hooks{
		OnRunStart:    func(context.Context, *workspace.Run) { hooked = append(hooked, "start") },
		OnRunComplete: func(context.Context, *workspace.Run, error) { hooked = append(hooked, "complete") },
	}})
	require.NoError(t, m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
		same, ok := workspace.FromContext(ctx)
		require.True(t, ok)
		require.Same(t, run, same)
		require.Equal(t, "ann", run.UserID())
		require.Equal(t, workspace.Message{}, run.Message())
		require.NotEmpty(t, run.ID())
		requireMasked(t, run)
		require.ErrorIs(t, m.Do(ctx, "ann", visit), workspace.ErrBusy)
		require.NoError(t, m.Do(ctx, "bob", visit))
		require.NoError(t, run.Memory().Set("name", "Ann"))
		require.NoError(t, visits.Set(run.State(), 1))
		require.NoError(t, run.Commit(ctx))
		seen := view(t, m, "ann")
		require.Equal(t, workspace.Message{}, seen.Run.Message)
		require.Equal(t, run.ID(), seen.Run.ID)
		return visits.Set(run.State(), 1)
	}))
	v := view(t, m, "ann")
	require.Equal(t, 2, visits.GetOr(v.State(), 0))
	require.Nil(t, v.Run)
	require.Empty(t, v.Ended)
	require.Empty(t, conversation(t, v))
	require.Equal(t, 1, visits.GetOr(view(t, m, "bob").State(), 0))
	require.Empty(t, hooked)
}

// What fn has not committed is not stored if it fails, however it fails.
func TestDoFails(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	broken := errors.New("broken")
	before := func(run *workspace.Run) {
		require.NoError(t, visits.Set(run.State(), 1))
		require.NoError(t, run.Commit(t.Context()))
		require.NoError(t, visits.Set(run.State(), 100))
	}
	require.ErrorIs(t, m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
		before(run)
		return broken
	}), broken)
	require.PanicsWithValue(t, "broken", func() {
		_ = m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
			before(run)
			panic("broken")
		})
	})
	exited := make(chan bool)
	go func() {
		defer close(exited)
		_ = m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
			before(run)
			runtime.Goexit()
			return nil
		})
	}()
	<-exited
	v := view(t, m, "ann")
	require.Equal(t, 3, visits.GetOr(v.State(), 0))
	require.Nil(t, v.Run)
	require.Empty(t, v.DeadLetters)
	require.Empty(t, v.Ended)
	require.NoError(t, m.Do(t.Context(), "ann", visit), "nothing is left behind")
}

// Calls and messages take their turns in the order in which they came, and none
// is called twice or at the same time as another. What one Manager does it knows
// at once, and so does everyone if the store is a Watcher.
func TestDoTakesTurns(t *testing.T) {
	for name, c := range map[string]struct {
		db   func() store.Store
		tool func(m, tools *workspace.Manager) *workspace.Manager
		most time.Duration
	}{
		"one Manager": {
			func() store.Store { return plain{Store: store.NewMemory()} }, func(m, _ *workspace.Manager) *workspace.Manager { return m }, 100 * time.Millisecond,
		},
		"two, with a Watcher": {
			func() store.Store { return store.NewMemory() }, func(_, tools *workspace.Manager) *workspace.Manager { return tools }, 100 * time.Millisecond,
		},
		"two, without": {
			func() store.Store { return plain{Store: store.NewMemory()} }, func(_, tools *workspace.Manager) *workspace.Manager { return tools }, 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := c.db()
				var mu sync.Mutex
				var order []string
				note := func(id string) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, id)
				}
				begin := make(chan bool)
				m := open(t, db, workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
					if run.Message().ID == "0" {
						<-begin
					}
					note(run.Message().ID)
					return nil
				}})
				tools := c.tool(m, open(t, db, workspace.Options{})) // without Run
				_, err := m.Submit(t.Context(), "ann", text("0"))
				require.NoError(t, err)
				synctest.Wait()
				want := []string{"0"}
				var calls sync.WaitGroup
				for i := range 8 {
					id := fmt.Sprint(i + 1)
					want = append(want, id)
					if i%4 == 0 {
						_, err := m.Submit(t.Context(), "ann", text(id))
						require.NoError(t, err)
						continue
					}
					by := []*workspace.Manager{m, tools}[i%2]
					calls.Go(func() {
						err := by.Do(t.Context(), "ann", func(context.Context, *workspace.Run) error {
							note(id)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				v := view(t, m, "ann")
				require.Len(t, v.Queue, 2, "tickets are no messages")
				require.Equal(t, 6, v.Tickets)
				began := time.Now()
				close(begin)
				calls.Wait()
				require.NoError(t, m.Wait(t.Context()))
				require.Less(t, time.Since(began), c.most)
				require.Equal(t, want, order)
				v = view(t, m, "ann")
				require.Nil(t, v.Run)
				require.Zero(t, v.Tickets)
				require.Len(t, v.Ended, 3)
			})
		})
	}
}

// A call whose context ends, before or after its turn, leaves nothing behind.
func TestDoContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		why := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- m.Do(ctx, "ann", visit) }()
		synctest.Wait()
		require.Equal(t, 1, view(t, m, "ann").Tickets)
		cancel(why)
		require.ErrorIs(t, <-result, why)
		require.Zero(t, view(t, m, "ann").Tickets)
		require.ErrorIs(t, m.Do(ctx, "ann", visit), context.Canceled)
		run.Finish(t)

		ctx, cancel = context.WithCancelCause(t.Context())
		require.ErrorIs(t, m.Do(ctx, "ann", func(ctx context.Context, run *workspace.Run) error {
			require.NoError(t, visits.Set(run.State(), 1))
			cancel(why)
			<-ctx.Done()
			return context.Cause(ctx)
		}), why)
		v := view(t, m, "ann")
		require.Nil(t, v.Run)
		require.Zero(t, visits.GetOr(v.State(), 0))
	})
}

// The ticket of a process that has died is discarded after 1.5 TTL, whether its
// turn had come or not.
func TestDoOfDeadProcess(t *testing.T) {
	for name, live := range map[string]func(*testing.T, *workspace.Manager){
		"Do": func(t *testing.T, m *workspace.Manager) {
			require.NoError(t, m.Do(t.Context(), "ann", visit))
		},
		"Handle": func(t *testing.T, m *workspace.Manager) {
			_, err := m.Submit(t.Context(), "ann", text("9"))
			require.NoError(t, err)
			time.Sleep(16 * time.Second)
			require.NoError(t, m.Wait(t.Context()))
		},
		"Recover": func(t *testing.T, m *workspace.Manager) {
			require.NoError(t, settle(t.Context(), m))
			require.NoError(t, m.Do(t.Context(), "ann", visit))
		},
	} {
		for _, died := range []string{"before", "after"} {
			t.Run(name+" "+died, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db := store.NewMemory()
					process, kill := asProcess(db)
					opts := workspace.Options{TTL: 10 * time.Second}
					blocker, runs := hold(t, db, opts)
					dead := open(t, process, opts)
					run := runs.Begin(t, "ann", text("1"))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					called, done := make(chan bool), make(chan bool)
					go func() {
						defer close(done)
						_ = dead.Do(ctx, "ann", func(ctx context.Context, _ *workspace.Run) error {
							kill()
							close(called)
							<-ctx.Done()
							return ctx.Err()
						})
					}()
					synctest.Wait()
					if died == "before" {
						kill()
					}
					run.Finish(t)
					if died == "after" {
						<-called
					}
					require.NoError(t, blocker.Close())

					opts.Run = visit
					m, begun := open(t, db, opts), time.Now()
					live(t, m)
					require.LessOrEqual(t, time.Since(begun), 20*time.Second)
					v := view(t, m, "ann")
					require.Nil(t, v.Run)
					require.Equal(t, 1, visits.GetOr(v.State(), 0))
					require.Empty(t, v.DeadLetters)
					cancel()
					_ = dead.Close()
					<-done
				})
			})
		}
	}
}

// However the store fails, a function is called at most once, and what it has
// done is stored if Do returns nil, and is not stored if Do returns an error,
// unless that is ErrUnknownOutcome.
func TestDoUnderFaults(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			db := store.NewMemory()
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 0))
			faulty := withFaults(db, func(writes []store.Write) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				switch n := random.IntN(20); {
				case n < 2:
					return false, errors.New("connection refused")
				case n < 4 && writes != nil:
					return n == 2, store.ErrUnknownOutcome
				}
				return false, nil
			})
			var wg sync.WaitGroup
			called, stored, unknown := map[int]int{}, 0, 0
			for i := range 12 {
				m := open(t, faulty, workspace.Options{TTL: time.Second})
				wg.Go(func() {
					err := m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
						mu.Lock()
						defer mu.Unlock()
						called[i]++
						return visits.Set(run.State(), 1)
					})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						stored++
					case errors.Is(err, store.ErrUnknownOutcome):
						unknown++
					}
				})
			}
			wg.Wait()
			time.Sleep(2 * time.Second)
			m := open(t, db, workspace.Options{TTL: time.Second, Run: visit})
			require.NoError(t, settle(t.Context(), m))
			v := view(t, m, "ann")
			require.Nil(t, v.Run)
			require.Zero(t, v.Tickets)
			n := visits.GetOr(v.State(), 0)
			require.True(t, stored <= n && n <= stored+unknown, "seed %d: %d stored, %d unknown, found %d", seed, stored, unknown, n)
			for i, times := range called {
				require.Equal(t, 1, times, "seed %d, call %d", seed, i)
			}
		})
	}
}

// The run of a call is ended as every other run.
func TestDoIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, m *workspace.Manager, runID string)
		want error
	}{
		"Cancel": {func(t *testing.T, m *workspace.Manager, runID string) {
			require.NoError(t, m.Cancel(t.Context(), "ann", runID, "why"))
		}, workspace.ErrRunCancelled},
		"Reset": {func(t *testing.T, m *workspace.Manager, _ string) {
			_, err := m.Reset(t.Context(), "ann")
			require.NoError(t, err)
		}, workspace.ErrInterrupted},
		"Interrupt": {func(t *testing.T, m *workspace.Manager, _ string) {
			_, err := m.Submit(t.Context(), "ann", whenBusy(workspace.BusyInterrupt, text("1")))
			require.NoError(t, err)
		}, workspace.ErrInterrupted},
		"Close": {func(_ *testing.T, m *workspace.Manager, _ string) {
			go func() { _ = m.Close() }()
		}, workspace.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, store.NewMemory(), workspace.Options{TTL: 10 * time.Second, Run: nothing})
				started, result := make(chan string, 1), make(chan error, 1)
				go func() {
					result <- m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
						started <- run.ID()
						<-ctx.Done()
						return context.Cause(ctx)
					})
				}()
				began := time.Now()
				ended := make(chan bool)
				go func() {
					defer close(ended)
					c.end(t, m, <-started)
				}()
				require.ErrorIs(t, <-result, c.want)
				require.Less(t, time.Since(began), 100*time.Millisecond)
				<-ended
			})
		})
	}
}

// A call that waits is told when its ticket is gone.
func TestDoIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		runs.Begin(t, "ann", text("1"))
		result := make(chan error, 1)
		go func() { result <- m.Do(t.Context(), "ann", visit) }()
		synctest.Wait()
		ids, err := m.Reset(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, ids)
		require.ErrorIs(t, <-result, workspace.ErrInterrupted)
	})
}

func TestDoInvalid(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{Queue: 1})
	require.ErrorIs(t, m.Do(t.Context(), "ann", nil), workspace.ErrInvalid)
	require.ErrorIs(t, m.Do(t.Context(), "", visit), workspace.ErrInvalid)
	runs.Begin(t, "ann", text("1"))
	_, err := m.Submit(t.Context(), "ann", text("2"))
	require.NoError(t, err)
	require.ErrorIs(t, m.Do(t.Context(), "ann", visit), workspace.ErrQueueFull)
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Do(t.Context(), "ann", visit), workspace.ErrClosed)
}
