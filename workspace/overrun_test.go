package workspace_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A function that never returns holds nobody up: each call comes back and says
// why, the user is served, and what the function does later is not stored.
func TestCallsComeBackFromAFunctionThatNeverReturns(t *testing.T) {
	const ttl = 10 * time.Second
	background := context.Background()
	for name, row := range map[string]struct {
		timeout time.Duration // Options.RunTimeout
		call    func(m *workspace.Manager) error
		want    error
		within  time.Duration
		calls   int32 // of the function for the message that it does not return for
		dead    bool  // the message becomes a dead letter
		closed  bool  // the call closes the Manager
	}{
		"Handle": {
			timeout: time.Minute, want: workspace.ErrRunTimeout, within: 3*(time.Minute+ttl) + 3*time.Second, calls: 3, dead: true,
			call: func(m *workspace.Manager) error {
				_, err := m.Handle(background, "ann", text("stuck"))
				return err
			},
		},
		"Handle, whose context ends": {
			timeout: time.Minute, want: context.DeadlineExceeded, within: time.Second + ttl/20, calls: 3, dead: true,
			call: func(m *workspace.Manager) error {
				ctx, cancel := context.WithTimeout(background, time.Second)
				defer cancel()
				_, err := m.Handle(ctx, "ann", text("stuck"))
				return err
			},
		},
		"Await": {
			timeout: time.Minute, want: workspace.ErrRunFailed, within: 3*(time.Minute+ttl) + 4*time.Second, calls: 3, dead: true,
			call: func(m *workspace.Manager) error {
				if _, err := m.Submit(background, "ann", text("stuck")); err != nil {
					return err
				}
				out, err := m.Await(background, "ann", "stuck")
				if err == nil && out.Status == workspace.StatusFailed {
					err = workspace.ErrRunFailed
				}
				return err
			},
		},
		"Cancel": {
			within: time.Second, calls: 1,
			call: func(m *workspace.Manager) error {
				if _, err := m.Submit(background, "ann", text("stuck")); err != nil {
					return err
				}
				time.Sleep(time.Second)
				v, err := m.View(background, "ann")
				if err != nil {
					return err
				}
				return m.Cancel(background, "ann", v.Run.ID, "stuck")
			},
		},
		"a message that interrupts": {
			within: time.Second + ttl, calls: 1,
			call: func(m *workspace.Manager) error {
				if _, err := m.Submit(background, "ann", text("stuck")); err != nil {
					return err
				}
				time.Sleep(time.Second)
				_, err := m.Handle(background, "ann", whenBusy(workspace.BusyInterrupt, text("other")))
				return err
			},
		},
		"Close": {
			want: workspace.ErrBusy, within: time.Second + ttl, calls: 1, closed: true,
			call: func(m *workspace.Manager) error {
				if _, err := m.Submit(background, "ann", text("stuck")); err != nil {
					return err
				}
				time.Sleep(time.Second)
				return m.Close()
			},
		},
		"Shutdown": {
			want: context.DeadlineExceeded, within: 2*time.Second + ttl, calls: 1, closed: true,
			call: func(m *workspace.Manager) error {
				if _, err := m.Submit(background, "ann", text("stuck")); err != nil {
					return err
				}
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(background, time.Second)
				defer cancel()
				return m.Shutdown(ctx)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log testkit.Buffer
				var calls atomic.Int32
				never, later := make(chan struct{}), make(chan error, 3)
				release := sync.OnceFunc(func() { close(never) })
				defer release()
				db := store.NewMemory()
				m := open(t, db, workspace.Options{
					TTL: ttl, RunTimeout: row.timeout, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Run: func(ctx context.Context, run *workspace.Run) error {
						if run.Message().ID != "stuck" {
							return nil
						}
						calls.Add(1)
						if err := visits.Set(run.State(), 1); err != nil {
							return err
						}
						if err := run.Commit(ctx); err != nil {
							return err
						}
						<-never
						_ = notes.Set(run.State(), []string{"too late"})
						later <- run.Commit(background)
						return run.Memory().Set("a", "b")
					},
				})
				began := time.Now()
				err := row.call(m)
				require.ErrorIs(t, err, row.want)
				require.LessOrEqual(t, time.Since(began), row.within)

				next := m
				if row.closed {
					next = open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
						if run.Message().ID == "stuck" {
							require.Equal(t, 1, run.Attempt())
						}
						return nil
					}})
					require.NoError(t, settle(background, next))
				}
				began = time.Now()
				_, err = next.Handle(background, "bob", text("1"))
				require.NoError(t, err)
				require.Zero(t, time.Since(began))
				_, err = next.Handle(background, "ann", text("next"))
				require.NoError(t, err)
				require.NoError(t, next.Wait(background))
				v := view(t, next, "ann")
				require.Equal(t, int(row.calls), visits.GetOr(v.State(), 0), "what was committed stands")
				require.Equal(t, row.calls, calls.Load())
				require.Equal(t, row.dead, len(v.DeadLetters) == 1)
				require.EqualValues(t, row.calls, m.Stats().Abandoned)
				require.Contains(t, log.String(), "run was left behind")
				require.Contains(t, log.String(), "TestCallsComeBackFromAFunctionThatNeverReturns", "the stack")

				release()
				for range row.calls {
					require.ErrorIs(t, <-later, workspace.ErrFenced)
				}
				synctest.Wait()
				require.NoError(t, m.Close())
				require.NoError(t, next.Close())
				require.Empty(t, notes.GetOr(view(t, open(t, db, workspace.Options{}), "ann").State(), nil))
			})
		})
	}
}

// A function that returns with its context, after Options.RunTimeout, has used up
// an attempt; what it has left is stored if it returns nil.
func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		began := time.Now()
		m := open(t, store.NewMemory(), workspace.Options{RunTimeout: time.Minute, Run: func(ctx context.Context, run *workspace.Run) error {
			took = append(took, time.Since(began))
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), workspace.ErrRunTimeout)
			if run.Message().ID == "finishes" {
				return visits.Set(run.State(), 1)
			}
			return ctx.Err()
		}})
		out, err := m.Handle(context.Background(), "ann", text("1"))
		require.ErrorIs(t, err, workspace.ErrRunTimeout)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Contains(t, out.Reason, "RunTimeout")
		require.Equal(t, []time.Duration{0, time.Minute + time.Second, 2*time.Minute + 3*time.Second}, took)
		require.EqualValues(t, 3, view(t, m, "ann").DeadLetters[0].Attempts)
		out, err = m.Handle(context.Background(), "ann", text("finishes"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.Equal(t, 1, visits.GetOr(view(t, m, "ann").State(), 0))
		require.Zero(t, m.Stats().Abandoned)
		require.NoError(t, m.Close())
	})
}

// A function that returns within the grace, because the caller has gone away,
// uses up no attempt.
func TestGraceCountsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		m := open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			if attempts = append(attempts, run.Attempt()); len(attempts) > 1 {
				return nil
			}
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := m.Handle(ctx, "ann", text("1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), 2*time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []int{0, 0}, attempts, "it is handled although nobody asks")
		out, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.NoError(t, m.Close())
	})
}

// The function of Do holds its caller, and nobody else.
func TestFunctionOfDoThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: nothing})
		never, done := make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			done <- m.Do(ctx, "ann", func(_ context.Context, run *workspace.Run) error {
				<-never
				return run.Commit(context.Background())
			})
		}()
		time.Sleep(time.Second / 2)
		began := time.Now()
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Less(t, time.Since(began), 11*time.Second)
		require.EqualValues(t, 1, m.Stats().Abandoned)
		close(never)
		require.ErrorIs(t, <-done, workspace.ErrFenced)
		require.NoError(t, m.Close())
	})
}

// A hook that never returns holds neither its run nor the next one.
func TestHookThatNeverReturns(t *testing.T) {
	for _, name := range []string{"OnRunStart", "OnRunComplete"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never := make(chan struct{})
				stuck := func(hook string, run *workspace.Run) {
					if hook == name && run.Message().ID == "stuck" {
						<-never
					}
				}
				m := open(t, store.NewMemory(), workspace.Options{Run: nothing, Hooks: workspace.Hooks{
					OnRunStart:    func(_ context.Context, run *workspace.Run) { stuck("OnRunStart", run) },
					OnRunComplete: func(_ context.Context, run *workspace.Run, _ error) { stuck("OnRunComplete", run) },
				}})
				began := time.Now()
				_, err := m.Handle(context.Background(), "ann", text("stuck"))
				require.NoError(t, err)
				_, err = m.Handle(context.Background(), "ann", text("next"))
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), 31*time.Second)
				require.EqualValues(t, 1, m.Stats().Abandoned)
				require.ErrorIs(t, m.Close(), workspace.ErrBusy)
				close(never)
				synctest.Wait()
				require.NoError(t, m.Close())
			})
		})
	}
}
