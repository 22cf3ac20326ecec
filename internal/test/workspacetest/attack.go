package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// nilError is an error that can only be used if it is not nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// An error that panics when it is used counts as a panic of the function that
// has returned it.
func (s *suite) ErrorThatPanics(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var fine atomic.Bool
		m := Open(t, db, workspace.Options{TTL: ttl, Run: func(context.Context, *workspace.Run) error {
			if fine.Load() {
				return nil
			}
			var err *nilError
			return err
		}})
		_, err := m.Submit(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		out, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Contains(t, out.Reason, "nil pointer")
		require.Panics(t, func() {
			_ = m.Do(t.Context(), "ann", func(context.Context, *workspace.Run) error {
				var err *nilError
				return err
			})
		})
		fine.Store(true)
		began := time.Now()
		out, err = m.Handle(t.Context(), "ann", Text("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		requireSoon(t, ttl, began)
	})
}

// A run whose holder has died blocks its user no longer than 1.5 TTL, even if
// all messages that arrive are refused or are duplicates.
func (s *suite) RefusedMessagesFindDeadHolder(t *testing.T) {
	for name, send := range map[string]func(m *workspace.Manager) (workspace.Outcome, error){
		"rejected": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", WhenBusy(workspace.BusyReject, Text("2")))
		},
		"duplicate": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", Text("1"))
		},
		"queue is full": func(m *workspace.Manager) (workspace.Outcome, error) {
			return m.Handle(context.Background(), "ann", Text("3"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				process, kill := AsProcess(db)
				dying := Open(t, process, workspace.Options{TTL: ttl, Queue: 1, Run: func(ctx context.Context, _ *workspace.Run) error {
					<-ctx.Done()
					return ctx.Err()
				}})
				for _, id := range []string{"1", "queued"} {
					_, err := dying.Submit(t.Context(), "ann", Text(id))
					require.NoError(t, err)
				}
				kill()
				m := Open(t, db, workspace.Options{TTL: ttl, Queue: 1, Run: Visit})
				_, _ = send(m)
				time.Sleep(2 * ttl)
				require.Equal(t, 2, Visits.Or(View(t, m, "ann").State(), 0))
			})
		})
	}
}

// A run that waits for another user's message does not hold the slot that the
// message needs.
func (s *suite) WaitingRunLendsSlot(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, m *workspace.Manager) error{
		"Handle": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Handle(ctx, "bob", Text("2"))
			return err
		},
		"Await": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Await(ctx, "bob", "1")
			return err
		},
		"Do": func(ctx context.Context, m *workspace.Manager) error { return m.Do(ctx, "bob", Visit) },
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				var m *workspace.Manager
				var running, most atomic.Int32
				m = Open(t, db, workspace.Options{TTL: ttl, Runs: 1, Run: func(ctx context.Context, run *workspace.Run) error {
					if run.Message().ID == "first" {
						if _, err := m.Submit(ctx, "bob", Text("1")); err != nil {
							return err
						}
						return wait(ctx, m)
					}
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(ttl / 10)
					running.Add(-1)
					return nil
				}})
				ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
				defer cancel()
				out, err := m.Handle(ctx, "ann", Text("first"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				for _, user := range []string{"eve", "kim", "joe"} {
					_, err := m.Submit(t.Context(), user, Text("1"))
					require.NoError(t, err)
				}
				require.NoError(t, m.Wait(t.Context()))
				require.EqualValues(t, 1, most.Load(), "the slot is taken back")
			})
		})
	}
}

// A call of Do whose commit is in doubt does not block its user.
func (s *suite) DoInDoubt(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var lost atomic.Bool
		faulty := WithFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if lost.Load() && w.Key == "agent:workspace:ann" { // the head
					return false, store.ErrUnknownOutcome
				}
			}
			return false, nil
		})
		m := Open(t, faulty, workspace.Options{TTL: ttl, Run: Visit})
		err := m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
			if err := Visits.Set(run.State(), 1); err != nil {
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
		out, err := m.Handle(ctx, "ann", Text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		requireSoon(t, ttl, began)
	})
}

// Close ends calls that wait for a store that is away.
func (s *suite) CloseDuringOutage(t *testing.T) {
	for name, call := range map[string]func(m *workspace.Manager) error{
		"Handle": func(m *workspace.Manager) error {
			_, err := m.Handle(context.Background(), "ann", Text("1"))
			return err
		},
		"Submit": func(m *workspace.Manager) error {
			_, err := m.Submit(context.Background(), "ann", Text("1"))
			return err
		},
		"Begin": func(m *workspace.Manager) error {
			_, _, err := m.Begin(context.Background(), "ann", Text("1"))
			return err
		},
		"Do": func(m *workspace.Manager) error { return m.Do(context.Background(), "ann", Visit) },
	} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				faulty, away := WithOutages(db, false)
				m := Open(t, faulty, workspace.Options{TTL: ttl, Run: Visit})
				away.Store(true)
				result := make(chan error, 1)
				go func() { result <- call(m) }()
				time.Sleep(ttl / 10)
				require.NoError(t, m.Close())
				select {
				case err := <-result:
					require.ErrorIs(t, err, workspace.ErrClosed)
				case <-time.After(ttl / 4):
					away.Store(false)
					t.Fatal("the call does not end")
				}
			})
		})
	}
}

// A hook of a run cannot wait for the message of the next run, which waits for
// the hook.
func (s *suite) HandleInHook(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var m *workspace.Manager
		var hookErr error
		m = Open(t, db, workspace.Options{
			TTL: ttl,
			Run: func(context.Context, *workspace.Run) error { time.Sleep(ttl / 30); return nil },
			Hooks: workspace.Hooks{OnRunComplete: func(ctx context.Context, run *workspace.Run, _ error) {
				if run.Message().ID == "1" {
					_, hookErr = m.Handle(ctx, "ann", Text("3"))
				}
			}},
		})
		for _, id := range []string{"1", "2"} {
			_, err := m.Submit(t.Context(), "ann", Text(id))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		require.NoError(t, m.Wait(ctx))
		require.ErrorIs(t, hookErr, workspace.ErrBusy)
	})
}

// A call whose context ends while its first write is in doubt leaves no lease
// that nobody renews.
func (s *suite) SubmitInDoubt(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, m *workspace.Manager) error{
		"Handle": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Handle(ctx, "ann", Text("1"))
			return err
		},
		"Do": func(ctx context.Context, m *workspace.Manager) error { return m.Do(ctx, "ann", Visit) },
	} {
		for _, ttls := range []int{0, longOutage} {
			t.Run(fmt.Sprint(name, "/", ttls, " TTL"), func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					var lossy, away atomic.Bool
					m := Open(t, WithFaults(db, func(writes []store.Write) (bool, error) {
						switch {
						case away.Load():
							return false, errors.New("connection refused")
						case lossy.Load() && writes != nil:
							away.Store(true)
							return true, store.ErrUnknownOutcome
						}
						return false, nil
					}), workspace.Options{TTL: ttl, Run: Nothing})
					require.NoError(t, m.Do(t.Context(), "bob", Visit)) // the Manager has a holder record
					lossy.Store(true)
					ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
					defer cancel()
					require.ErrorIs(t, call(ctx, m), store.ErrUnknownOutcome)
					lossy.Store(false)
					time.Sleep(time.Duration(ttls) * ttl)
					away.Store(false)
					began := time.Now()
					ctx, cancel = context.WithTimeout(t.Context(), 10*ttl)
					defer cancel()
					out, err := m.Handle(ctx, "ann", Text("2"))
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDone, out.Status)
					requireWithin(t, began, 3*ttl/4)
				})
			})
		}
	}
}

// A Convert of a field that panics refuses the content, and does not end the
// process.
func (s *suite) SchemaThatPanics(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		good := Open(t, db, workspace.Options{TTL: ttl, Run: Visit})
		panics := &state.Field[string]{Name: "visits", Convert: func(state.JSON) (string, error) { panic("no") }}
		bad := Open(t, db, workspace.Options{TTL: ttl, Run: Nothing, Schema: state.MustSchema(panics)})
		_, err := good.Handle(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		_, err = bad.Submit(t.Context(), "ann", Text("2"))
		require.ErrorIs(t, err, workspace.ErrSchema)
	})
}
