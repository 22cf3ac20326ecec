package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// longOutage is the length of an outage that no lease outlasts, in TTLs.
const longOutage = 4

// outage is an outage of a store that begins when the test says so.
type outage struct {
	away   *atomic.Bool
	length time.Duration

	mu    sync.Mutex
	ended time.Time
}

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away.Store(true)
	o.ended = time.Now().Add(o.length)
	time.AfterFunc(o.length, func() { o.away.Store(false) })
}

// requireIdle waits until a user has no run, and requires that nobody has waited
// for a lease since the store is back.
func (o *outage) requireIdle(t testing.TB, m *workspace.Manager, ttl time.Duration) *workspace.View {
	t.Helper()
	o.mu.Lock()
	back := o.ended
	o.mu.Unlock()
	time.Sleep(time.Until(back) + ttl/100)
	waitUntil(t, ttl, func() bool { return View(t, m, "ann").Run == nil })
	requireWithin(t, back, 3*ttl/4, "somebody has waited for a lease")
	return View(t, m, "ann")
}

// If the store is away for longer than the TTL, the run is given up before
// another holder can take it over. When the store is back, it is handled again
// at once, with another attempt, and so are the messages behind it.
func (s *suite) LongOutage(t *testing.T) {
	const head = "agent:workspace:ann"
	broken := errors.New("broken")
	untilLost := func(t testing.TB, ctx context.Context, ttl time.Duration) error {
		began := time.Now()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), workspace.ErrFenced) {
			return fmt.Errorf("the run was ended by %w", context.Cause(ctx))
		}
		requireWithin(t, began, ttl+ttl/4+time.Nanosecond)
		return ctx.Err()
	}
	for name, act := range map[string]func(t testing.TB, ctx context.Context, run *workspace.Run, ttl time.Duration) error{
		"heartbeat": func(t testing.TB, ctx context.Context, _ *workspace.Run, ttl time.Duration) error {
			return untilLost(t, ctx, ttl)
		},
		"Commit": func(t testing.TB, ctx context.Context, run *workspace.Run, ttl time.Duration) error {
			if err := run.Commit(ctx); err == nil {
				return errors.New("the commit succeeds")
			}
			return untilLost(t, ctx, ttl)
		},
		"Finish": func(testing.TB, context.Context, *workspace.Run, time.Duration) error { return nil },
		"Fail":   func(testing.TB, context.Context, *workspace.Run, time.Duration) error { return broken },
	} {
		for reply, lost := range map[string]bool{"refused": false, "reply lost": true} {
			t.Run(name+"/"+reply, func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					var away, again atomic.Bool
					unreliable := WithFaults(db, func(writes []store.Write) (bool, error) {
						last := ""
						if len(writes) > 0 {
							last = writes[len(writes)-1].Key
						}
						switch made := lost && !again.Load(); {
						case !away.Load():
							return false, nil
						case made && last == head:
							again.Store(true)
							return true, store.ErrUnknownOutcome
						case made && (writes == nil || strings.HasPrefix(last, head)): // a read or a blob, before the head is written
							return false, nil
						}
						return false, errors.New("connection refused")
					})
					o, w := &outage{away: &away, length: longOutage * ttl}, &whichRun{}
					var running atomic.Int32
					var m *workspace.Manager
					m = Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
						require.EqualValues(t, 1, running.Add(1))
						defer running.Add(-1)
						w.called(run)
						require.NoError(t, Notes.Set(run.State(), []string{fmt.Sprint(run.Message().ID, " ", run.Attempt())}))
						if run.Message().ID != "1" || run.Attempt() > 0 {
							return nil
						}
						_, err := m.Submit(ctx, "ann", Text("2"))
						require.NoError(t, err)
						o.begin()
						return act(t, ctx, run, ttl)
					}})
					_, err := m.Handle(t.Context(), "ann", Text("1"))
					require.ErrorIs(t, err, workspace.ErrFenced)
					v := o.requireIdle(t, Open(t, db, workspace.Options{TTL: ttl}), ttl)
					require.NoError(t, m.Wait(t.Context()))

					calls, notes, dead := []string{"1 attempt 0", "1 attempt 1", "2 attempt 0"}, []string{"1 1", "2 0"}, 0
					switch {
					case !lost:
					case name == "Commit":
						notes = []string{"1 0", "1 1", "2 0"}
					case name == "Finish":
						calls, notes = []string{"1 attempt 0", "2 attempt 0"}, []string{"1 0", "2 0"}
					case name == "Fail":
						calls, notes, dead = []string{"1 attempt 0", "2 attempt 0"}, []string{"2 0"}, 1
					}
					require.Equal(t, calls, w.calls)
					require.Equal(t, notes, Notes.Or(v.State(), nil))
					require.Len(t, v.DeadLetters, dead)
					if len(calls) == 3 {
						require.EqualValues(t, 1, m.Stats().Fenced)
						// A takeover whose reply is lost is known later than its effect.
						waitUntil(t, ttl, func() bool { return m.Stats().TakenOver == 1 })
					}
				})
			})
		}
	}
}

// A process that is cut off does not disturb the one that has taken its run over
// meanwhile.
func (s *suite) LongOutageOfOneProcess(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		o, w := &outage{away: away, length: longOutage * ttl}, &whichRun{}
		cutOff := Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.called(run)
			o.begin()
			<-ctx.Done()
			return ctx.Err()
		}})
		other := Open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.called(run)
			select {
			case <-ctx.Done(): // somebody has taken its lease
			case <-time.After(5 * ttl): // past the end of the outage
			}
			return ctx.Err()
		}})
		_, err := cutOff.Submit(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		require.NoError(t, other.Recover(t.Context()))
		require.NoError(t, other.Wait(t.Context()))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.calls)
		require.Nil(t, View(t, other, "ann").Run)
		require.NoError(t, cutOff.Wait(t.Context()))
		require.EqualValues(t, 0, cutOff.Stats().TakenOver)
	})
}

// A process without Options.Run leaves its run to others when the store is back.
func (s *suite) LongOutageWithoutOptionsRun(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		o, w := &outage{away: away, length: longOutage * ttl}, &whichRun{}
		run, _, err := Open(t, unreliable, workspace.Options{TTL: ttl}).Begin(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		o.begin()
		<-run.Context().Done()
		require.ErrorIs(t, context.Cause(run.Context()), workspace.ErrFenced)
		time.Sleep(time.Until(o.ended) + ttl/2)
		m := Open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			w.called(run)
			return nil
		}})
		began := time.Now()
		out, err := m.Handle(t.Context(), "ann", Text("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		requireWithin(t, began, ttl/2)
		require.Equal(t, []string{"1 attempt 1", "2 attempt 0"}, w.calls)
	})
}

// The function of Do is not called again, and messages behind it are handled
// when the store is back.
func (s *suite) LongOutageDuringDo(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		o, w := &outage{away: away, length: longOutage * ttl}, &whichRun{}
		m := Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			w.called(run)
			return nil
		}})
		calls := 0
		err := m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
			calls++
			_, err := m.Submit(ctx, "ann", Text("1"))
			require.NoError(t, err)
			o.begin()
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, workspace.ErrFenced)
		o.requireIdle(t, Open(t, db, workspace.Options{TTL: ttl}), ttl)
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, 1, calls)
		require.Equal(t, []string{"1 attempt 0"}, w.calls)
	})
}

// The run is not released while its function goes on. If that takes longer than
// the TTL, the function is left behind, as after an interruption.
func (s *suite) LongOutageAndAFunctionThatGoesOn(t *testing.T) {
	for _, test := range []struct{ goesOn, want float64 }{{0, 0.5}, {0.75, 0.75}, {10, 1}} { // in TTLs, since the loss of the lease
		t.Run(fmt.Sprint(test.goesOn), func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				unreliable, away := WithOutages(db, false)
				o := &outage{away: away, length: 3 * ttl / 2}
				var calls, running atomic.Int32
				lost, again := make(chan time.Time, 1), make(chan time.Time, 1)
				m := Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
					n := running.Add(1)
					defer running.Add(-1)
					if calls.Add(1) == 1 {
						o.begin()
						<-ctx.Done()
						lost <- time.Now()
						time.Sleep(InTTLs(test.goesOn, ttl))
						return ctx.Err()
					}
					require.Equal(t, test.goesOn > 1, n > 1)
					again <- time.Now()
					return nil
				}})
				_, err := m.Submit(t.Context(), "ann", Text("1"))
				require.NoError(t, err)
				took := -(<-lost).Sub(<-again)
				noteTime(t, took > InTTLs(test.want-0.25, ttl) && took < InTTLs(test.want+0.5, ttl))
				require.Greater(t, took, InTTLs(test.want-0.25, ttl))
				require.Less(t, took, InTTLs(test.want+0.5, ttl))
				require.NoError(t, m.Wait(t.Context()))
				require.EqualValues(t, 2, calls.Load())
				waitUntil(t, ttl, func() bool { return running.Load() == 0 })
			})
		})
	}
}

// Each long outage counts as an attempt.
func (s *suite) LongOutages(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		o, w := &outage{away: away, length: longOutage * ttl}, &whichRun{}
		var dead []string
		m := Open(t, unreliable, workspace.Options{
			TTL: ttl, StoreTimeout: 10 * ttl, Attempts: 3,
			Run: func(ctx context.Context, run *workspace.Run) error {
				w.called(run)
				o.begin()
				<-ctx.Done()
				return ctx.Err()
			},
			Hooks: workspace.Hooks{OnMessageDead: func(_ context.Context, user string, msg workspace.Message) {
				dead = append(dead, user+" "+msg.ID)
			}},
		})
		began := time.Now()
		out, err := m.Submit(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusStarted, out.Status)
		ctx, cancel := context.WithTimeout(t.Context(), 30*ttl)
		defer cancel()
		out, err = m.Await(ctx, "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusFailed, out.Status)
		requireWithin(t, began, (3*longOutage+2)*ttl)
		require.NoError(t, m.Close())
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1", "1 attempt 2"}, w.calls)
		require.Equal(t, []string{"ann 1"}, dead)
		v := View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann")
		require.Len(t, v.DeadLetters, 1)
		require.Equal(t, 3, v.DeadLetters[0].Attempts)
	})
}

// Close does not wait for the end of an outage.
func (s *suite) CloseDuringLongOutage(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		w := &whichRun{}
		m := Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			w.called(run)
			away.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := m.Handle(t.Context(), "ann", Text("1"))
		require.ErrorIs(t, err, workspace.ErrFenced)
		time.Sleep(ttl)
		began := time.Now()
		require.NoError(t, m.Close())
		requireSoon(t, ttl, began)
		away.Store(false)
		other := Open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			w.called(run)
			return nil
		}})
		require.NoError(t, other.Recover(t.Context()))
		require.NoError(t, other.Wait(t.Context()))
		requireAbout(t, ttl, 3*ttl/2, time.Since(began))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.calls)
	})
}
