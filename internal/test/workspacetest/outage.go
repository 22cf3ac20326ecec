package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// While the store is away for at most half of the TTL, a run waits for it:
// Options.Run is called once, and its changes are stored once.
func (s *suite) OutageOfTheStore(t *testing.T) {
	broken := errors.New("broken")
	for _, ttls := range []float64{0.01, 0.5} {
		for name, outage := range map[string]func(ctx context.Context, run *workspace.Run, begin func(), ttl time.Duration) error{
			"Commit": func(ctx context.Context, run *workspace.Run, begin func(), ttl time.Duration) error {
				begin()
				return run.Commit(ctx)
			},
			"Finish": func(_ context.Context, _ *workspace.Run, begin func(), _ time.Duration) error {
				begin()
				return nil
			},
			"Fail": func(ctx context.Context, run *workspace.Run, begin func(), ttl time.Duration) error {
				if err := run.Commit(ctx); err != nil {
					return err
				}
				begin()
				return broken
			},
			"heartbeat": func(ctx context.Context, run *workspace.Run, begin func(), ttl time.Duration) error {
				begin()
				select {
				case <-ctx.Done():
				case <-time.After(2 * ttl):
				}
				return ctx.Err()
			},
		} {
			for reply, lost := range map[string]bool{"refused": false, "reply lost": true} {
				t.Run(fmt.Sprint(name, "/", ttls, " TTL/", reply), func(t *testing.T) {
					s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
						unreliable, away := WithOutages(db, lost)
						length := InTTLs(ttls, ttl)
						var calls atomic.Int32
						m := Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
							calls.Add(1)
							require.NoError(t, Visits.Set(run.State(), 1))
							time.Sleep(ttl/3 - ttl/100) // the next heartbeat is due
							return outage(ctx, run, func() {
								away.Store(true)
								time.AfterFunc(length, func() { away.Store(false) })
							}, ttl)
						}})
						began := time.Now()
						out, err := m.Handle(t.Context(), "ann", Text("1"))
						if name == "Fail" {
							require.ErrorIs(t, err, broken)
							require.Equal(t, workspace.StatusFailed, out.Status)
						} else {
							require.NoError(t, err)
							require.Equal(t, workspace.StatusDone, out.Status)
						}
						if name != "heartbeat" {
							requireAbout(t, ttl, ttl/3+length, time.Since(began))
						}
						time.Sleep(3 * ttl)
						require.EqualValues(t, 1, calls.Load())
						v := View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann")
						require.Equal(t, 1, Visits.Or(v.State(), 0))
						require.Nil(t, v.Run)
					})
				})
			}
		}
	}
}

// A message that is sent while the store is away is accepted when it is back,
// unless the sender's context or Options.StoreTimeout ends before.
func (s *suite) OutageWhenAMessageArrives(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		m := Open(t, unreliable, workspace.Options{TTL: ttl, StoreTimeout: 10 * ttl, Run: Nothing})
		away.Store(true)
		time.AfterFunc(5*ttl, func() { away.Store(false) })
		ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		_, err := m.Handle(ctx, "ann", Text("1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, err, new(*store.Error), "it also says what was wrong")
		out, err := m.Handle(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
	})
}

// A message that the store refuses, for a reason that may pass, does not keep
// others of the user waiting.
func (s *suite) OutageForOneMessage(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		picky := WithFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if bytes.Contains(w.Value, []byte("text of bad")) {
					return false, errors.New("this one not")
				}
			}
			return false, nil
		})
		m := Open(t, picky, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error { return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := m.Submit(ctx, "ann", Text("bad"))
			refused <- err
		}()
		time.Sleep(ttl / 10)
		began := time.Now()
		for _, id := range []string{"1", "2", "3"} {
			out, err := m.Handle(t.Context(), "ann", Text(id))
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
func (s *suite) OutageDuringATakeover(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		process, kill := AsProcess(db)
		run, _, err := Open(t, process, workspace.Options{TTL: ttl}).Begin(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		require.NoError(t, Notes.Set(run.State(), []string{"committed"}))
		require.NoError(t, run.Commit(t.Context()))
		kill()
		unreliable, away := WithOutages(db, true)
		var attempts []int
		m := Open(t, unreliable, workspace.Options{TTL: ttl, StoreTimeout: 10 * ttl, Run: func(_ context.Context, run *workspace.Run) error {
			attempts = append(attempts, run.Attempt())
			require.Equal(t, []string{"committed"}, Notes.Or(run.State(), nil))
			return nil
		}})
		time.AfterFunc(ttl, func() { away.Store(true) })
		time.AfterFunc(3*ttl, func() { away.Store(false) })
		require.NoError(t, m.Recover(t.Context()))
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, []int{1}, attempts)
	})
}

// What can never be stored fails the run at once, and only once.
func (s *suite) ValueThatIsTooLarge(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, run *workspace.Run) error{
		"Finish":           func(context.Context, *workspace.Run) error { return nil },
		"Commit":           func(ctx context.Context, run *workspace.Run) error { return run.Commit(ctx) },
		"Commit, ignored":  func(ctx context.Context, run *workspace.Run) error { _ = run.Commit(ctx); return nil },
		"Commit, repeated": func(ctx context.Context, run *workspace.Run) error { _ = run.Commit(ctx); return run.Commit(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				large := bytes.Repeat([]byte("x"), 2<<20)
				limited := WithFaults(db, func(writes []store.Write) (bool, error) {
					for _, w := range writes {
						if bytes.Contains(w.Value, large[:1<<10]) { // also of a part of the value
							return false, store.ErrTooLarge
						}
					}
					return false, nil
				})
				var heard []string
				hear := func(what string) { heard = append(heard, what) }
				m := Open(t, limited, workspace.Options{
					TTL: ttl,
					Run: func(ctx context.Context, r *workspace.Run) error {
						hear("run " + r.Message().ID)
						if r.Message().ID != "1" {
							return nil
						}
						require.NoError(t, Notes.Set(r.State(), []string{string(large)}))
						return run(ctx, r)
					},
					Hooks: workspace.Hooks{
						OnRunStart:    func(context.Context, *workspace.Run) { hear("start") },
						OnRunComplete: func(context.Context, *workspace.Run, error) { hear("complete") },
						OnRunFailed: func(_ context.Context, _ *workspace.Run, err error) {
							require.ErrorIs(t, err, store.ErrTooLarge)
							hear("failed")
						},
						OnMessageDead: func(context.Context, string, workspace.Message) { hear("dead") },
					},
				})
				began := time.Now()
				out, err := m.Handle(t.Context(), "ann", Text("1"))
				require.ErrorIs(t, err, store.ErrTooLarge)
				require.Equal(t, workspace.StatusFailed, out.Status)
				out, err = m.Handle(t.Context(), "ann", Text("2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				requireWithin(t, began, ttl/2)
				require.Equal(t, []string{"start", "run 1", "complete", "failed", "start", "run 2", "complete"}, heard)
				v := View(t, m, "ann")
				require.Len(t, v.DeadLetters, 1)
				require.Contains(t, v.DeadLetters[0].Reason, "too large")
				require.Equal(t, 1, v.DeadLetters[0].Attempts)
			})
		})
	}
}
