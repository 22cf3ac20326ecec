package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A call that begins while the store is away is made when it is back, unless its
// context ends or the Manager is closed before.
func TestCallsDuringAnOutage(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, m *workspace.Manager) error{
		"Handle": func(ctx context.Context, m *workspace.Manager) error {
			out, err := m.Handle(ctx, "ann", text("1"))
			if err == nil && out.Status != workspace.StatusDone {
				err = errors.New(string(out.Status))
			}
			return err
		},
		"Submit": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Submit(ctx, "ann", text("1"))
			return err
		},
		"Do": func(ctx context.Context, m *workspace.Manager) error { return m.Do(ctx, "ann", visit) },
	} {
		for end, row := range map[string]struct {
			after time.Duration // in hundredths of a TTL
			end   func(m *workspace.Manager, away *atomic.Bool, cancel func())
			want  error
		}{
			"the store is back": {500, func(_ *workspace.Manager, away *atomic.Bool, _ func()) { away.Store(false) }, nil},
			"its context ends":  {10, func(_ *workspace.Manager, _ *atomic.Bool, cancel func()) { cancel() }, context.Canceled},
			"Close":             {10, func(m *workspace.Manager, _ *atomic.Bool, _ func()) { _ = m.Close() }, workspace.ErrClosed},
		} {
			t.Run(name+"/"+end, func(t *testing.T) {
				onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
					faulty, away := withOutages(db, false)
					m := open(t, faulty, workspace.Options{TTL: ttl, StoreTimeout: 10 * ttl, Run: visit})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					away.Store(true)
					began := time.Now()
					time.AfterFunc(row.after*ttl/100, func() { row.end(m, away, cancel) })
					err := call(ctx, m)
					require.ErrorIs(t, err, row.want)
					requireAbout(t, ttl, row.after*ttl/100, time.Since(began))
					if row.want == context.Canceled {
						require.ErrorAs(t, err, new(*store.Error), "it also says what was wrong")
					}
					away.Store(false)
				})
			})
		}
	}
}

// A process that is cut off does not disturb the one that has taken its run over
// meanwhile.
func TestLongOutageOfOneProcess(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		unreliable, away := withOutages(db, false)
		w := &whichRun{}
		cutOff := open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.Called(run)
			away.Store(true)
			time.AfterFunc(4*ttl, func() { away.Store(false) })
			<-ctx.Done()
			return ctx.Err()
		}})
		other := open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.Called(run)
			select {
			case <-ctx.Done(): // somebody has taken its lease
			case <-time.After(5 * ttl): // past the end of the outage
			}
			return ctx.Err()
		}})
		_, err := cutOff.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.NoError(t, settle(t.Context(), other))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.Calls)
		require.Nil(t, view(t, other, "ann").Run)
		require.NoError(t, cutOff.Wait(t.Context()))
		require.EqualValues(t, 0, cutOff.Stats().TakenOver)
	})
}

// Close does not wait for the end of an outage.
func TestCloseDuringLongOutage(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		unreliable, away := withOutages(db, false)
		w := &whichRun{}
		m := open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.Called(run)
			away.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		time.Sleep(2 * ttl)
		began := time.Now()
		require.NoError(t, m.Close())
		requireWithin(t, began, ttl)
		away.Store(false)
		began = time.Now()
		other := open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			w.Called(run)
			return nil
		}})
		require.NoError(t, settle(t.Context(), other))
		requireAbout(t, ttl, 3*ttl/2, time.Since(began))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.Calls)
	})
}

// A message that the store refuses, for a reason that may pass, does not keep
// others of the user waiting.
func TestOutageForOneMessage(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		picky := withFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if bytes.Contains(w.Value, []byte("text of bad")) {
					return false, errors.New("this one not")
				}
			}
			return false, nil
		})
		m := open(t, picky, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error { return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := m.Submit(ctx, "ann", text("bad"))
			refused <- err
		}()
		time.Sleep(ttl / 10)
		began := time.Now()
		for _, id := range []string{"1", "2", "3"} {
			out, err := m.Handle(t.Context(), "ann", text(id))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
		}
		requireWithin(t, began, ttl/2)
		cancel()
		require.ErrorIs(t, <-refused, context.Canceled)
	})
}

// A run is taken over although the store is away meanwhile, and the new holder
// keeps it although the store is away when it reads the content.
func TestOutageDuringATakeover(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		process, kill := asProcess(db)
		_, runs := hold(t, process, workspace.Options{TTL: ttl})
		run := runs.Begin(t, "ann", text("1"))
		require.NoError(t, notes.Set(run.State(), []string{"committed"}))
		require.NoError(t, run.Commit(t.Context()))
		kill()
		unreliable, away := withOutages(db, true)
		var attempts []int
		m := open(t, unreliable, workspace.Options{TTL: ttl, StoreTimeout: 10 * ttl, Run: func(_ context.Context, run *workspace.Run) error {
			attempts = append(attempts, run.Attempt())
			require.Equal(t, []string{"committed"}, notes.GetOr(run.State(), nil))
			return nil
		}})
		time.AfterFunc(ttl, func() { away.Store(true) })
		time.AfterFunc(3*ttl, func() { away.Store(false) })
		require.NoError(t, settle(t.Context(), open(t, db, workspace.Options{})))
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, []int{1}, attempts)
	})
}

// What can never be stored fails the run at once, and only once.
func TestValueThatIsTooLarge(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, run *workspace.Run) error{
		"Finish":           func(context.Context, *workspace.Run) error { return nil },
		"Commit":           func(ctx context.Context, run *workspace.Run) error { return run.Commit(ctx) },
		"Commit, ignored":  func(ctx context.Context, run *workspace.Run) error { _ = run.Commit(ctx); return nil },
		"Commit, repeated": func(ctx context.Context, run *workspace.Run) error { _ = run.Commit(ctx); return run.Commit(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				large := bytes.Repeat([]byte("x"), 2<<20)
				limited := withFaults(db, func(writes []store.Write) (bool, error) {
					for _, w := range writes {
						if bytes.Contains(w.Value, large[:1<<10]) { // also of a part of the value
							return false, store.ErrTooLarge
						}
					}
					return false, nil
				})
				var heard []string
				hear := func(what string) { heard = append(heard, what) }
				m := open(t, limited, workspace.Options{
					TTL: ttl,
					Run: func(ctx context.Context, r *workspace.Run) error {
						hear("run " + r.Message().ID)
						if r.Message().ID != "1" {
							return nil
						}
						require.NoError(t, notes.Set(r.State(), []string{string(large)}))
						return run(ctx, r)
					},
					Hooks: workspace.Hooks{
						OnRunStart: func(context.Context, *workspace.Run) { hear("start") },
						OnRunComplete: func(_ context.Context, r *workspace.Run, err error) {
							if r.Message().ID == "1" {
								require.ErrorIs(t, err, store.ErrTooLarge)
							}
							hear("complete")
						},
					},
				})
				began := time.Now()
				out, err := m.Handle(t.Context(), "ann", text("1"))
				require.ErrorIs(t, err, store.ErrTooLarge)
				require.Equal(t, workspace.StatusFailed, out.Status)
				out, err = m.Handle(t.Context(), "ann", text("2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				requireWithin(t, began, ttl/2)
				require.Equal(t, []string{"start", "run 1", "complete", "start", "run 2", "complete"}, heard)
				v := view(t, m, "ann")
				require.Len(t, v.DeadLetters, 1)
				require.Contains(t, v.DeadLetters[0].Reason, "too large")
				require.Equal(t, 1, v.DeadLetters[0].Attempts)
			})
		})
	}
}

// A call of Do whose commit is in doubt does not block its user.
func TestDoInDoubt(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var lost atomic.Bool
		faulty := withFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if lost.Load() && w.Key == "agent:workspace:ann" { // the head
					return false, store.ErrUnknownOutcome
				}
			}
			return false, nil
		})
		m := open(t, faulty, workspace.Options{TTL: ttl, Run: visit})
		err := m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
			if err := visits.Set(run.State(), 1); err != nil {
				return err
			}
			lost.Store(true)
			defer lost.Store(false)
			ctx, cancel := context.WithTimeout(ctx, ttl/10)
			defer cancel()
			return run.Commit(ctx)
		})
		require.ErrorIs(t, err, store.ErrUnknownOutcome)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		out, err := m.Handle(ctx, "ann", text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		requireSoon(t, ttl, began)
	})
}
