package workspacetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// longOutage is the length of an outage that is longer than any lease, in TTLs.
const longOutage = 4

// outage is an outage of a store that begins when the test says so.
type outage struct {
	away   *atomic.Bool
	length time.Duration
}

func (o *outage) begin() {
	o.away.Store(true)
	time.AfterFunc(o.length, func() { o.away.Store(false) })
}

var errBroken = errors.New("broken")

// whileAway is what a run does when an outage has begun. Each has changed Notes.
var whileAway = map[string]func(ctx context.Context, run *workspace.Run, ttl time.Duration) error{
	"heartbeat": func(ctx context.Context, _ *workspace.Run, ttl time.Duration) error {
		select {
		case <-ctx.Done():
		case <-time.After(2 * ttl):
		}
		return ctx.Err()
	},
	"Commit": func(ctx context.Context, run *workspace.Run, _ time.Duration) error {
		if err := run.Commit(ctx); err != nil {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	},
	"Finish": func(context.Context, *workspace.Run, time.Duration) error { return nil },
	"Fail":   func(context.Context, *workspace.Run, time.Duration) error { return errBroken },
}

// A run waits for a store that is away, however long: Options.Run is called once
// for it, and its changes are stored once. Nobody takes it over when the store is
// back.
func (s *suite) Outage(t *testing.T) {
	for name := range whileAway {
		for reply, lost := range map[string]bool{"refused": false, "reply lost": true} {
			lengths := []float64{0.01, 0.5, 2.5, 15} // with the default TTL, 10 and 60 seconds
			if s.real {
				lengths = lengths[1:3]
			}
			for _, ttls := range lengths {
				t.Run(fmt.Sprint(name, "/", reply, "/", ttls, " TTL"), func(t *testing.T) {
					s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
						s.outage(t, db, ttl, name, lost, ttls)
					})
				})
			}
		}
	}
}

func (s *suite) outage(t testing.TB, db store.Store, ttl time.Duration, name string, lost bool, ttls float64) {
	notes, dead := []string{"1 0", "2 0"}, 0
	if name == "Fail" {
		notes, dead = []string{"2 0"}, 1
	}
	unreliable, away := awayForHead(db, lost)
	o, w := &outage{away: away, length: InTTLs(ttls, ttl)}, &whichRun{}
	var running atomic.Int32
	var m *workspace.Manager
	m = Open(t, unreliable, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
		require.EqualValues(t, 1, running.Add(1))
		defer running.Add(-1)
		w.called(run)
		require.NoError(t, Notes.Set(run.State(), []string{fmt.Sprint(run.Message().ID, " ", run.Attempt())}))
		if run.Message().ID != "1" {
			return nil
		}
		_, err := m.Submit(ctx, "ann", Text("2"))
		require.NoError(t, err)
		time.Sleep(ttl/3 - ttl/100) // the next heartbeat is due
		o.begin()
		err = whileAway[name](ctx, run, ttl)
		require.NoError(t, ctx.Err())
		return err
	}})
	alsoAway := WithFaults(db, func([]store.Write) (bool, error) {
		if away.Load() {
			return false, errors.New("connection refused")
		}
		return false, nil
	})
	other := Open(t, alsoAway, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
		w.called(run)
		return nil
	}})
	began := time.Now()
	_, err := m.Handle(t.Context(), "ann", Text("1"))
	if dead > 0 {
		require.ErrorIs(t, err, errBroken)
	} else {
		require.NoError(t, err)
	}
	took := o.length
	if name == "heartbeat" {
		took = max(took, 2*ttl)
	}
	requireAbout(t, ttl, ttl/3+took, time.Since(began))
	require.NoError(t, m.Wait(t.Context()))
	require.NoError(t, other.Close())
	v := View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann")
	require.Nil(t, v.Run)
	require.Equal(t, []string{"1 attempt 0", "2 attempt 0"}, w.calls)
	require.Equal(t, notes, Notes.Or(v.State(), nil))
	require.Len(t, v.DeadLetters, dead)
	require.Zero(t, m.Stats().Fenced)
}

// awayForHead is WithOutages for a user whose head is written. If replyLost is
// set, the first write of the head is made, and only its reply is lost.
func awayForHead(db store.Store, replyLost bool) (store.Store, *atomic.Bool) {
	const head = "agent:workspace:ann"
	var away, again atomic.Bool
	return WithFaults(db, func(writes []store.Write) (bool, error) {
		writesHead := slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == head })
		switch made := replyLost && !again.Load(); {
		case !away.Load():
			return false, nil
		case made && writesHead:
			again.Store(true)
			return true, store.ErrUnknownOutcome
		case made && writes == nil: // a read, before the head is written
			return false, nil
		}
		return false, errors.New("connection refused")
	}), &away
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
		require.NoError(t, Settle(t.Context(), other))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.calls)
		require.Nil(t, View(t, other, "ann").Run)
		require.NoError(t, cutOff.Wait(t.Context()))
		require.EqualValues(t, 0, cutOff.Stats().TakenOver)
	})
}

// A run without Options.Run waits for the store, too.
func (s *suite) LongOutageWithoutOptionsRun(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		unreliable, away := WithOutages(db, false)
		o := &outage{away: away, length: longOutage * ttl}
		run, _, err := Open(t, unreliable, workspace.Options{TTL: ttl}).Begin(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		o.begin()
		time.Sleep(2 * ttl)
		require.NoError(t, run.Context().Err())
		_, err = run.Finish(t.Context())
		require.NoError(t, err)
		require.Nil(t, View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann").Run)
	})
}

// Do waits for the store, too, and messages behind it are handled when it is back.
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
			time.Sleep(2 * ttl)
			return ctx.Err()
		})
		require.NoError(t, err)
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, 1, calls)
		require.Equal(t, []string{"1 attempt 0"}, w.calls)
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
		_, err := m.Submit(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		time.Sleep(2 * ttl)
		began := time.Now()
		require.NoError(t, m.Close())
		requireWithin(t, began, ttl)
		away.Store(false)
		began = time.Now()
		other := Open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			w.called(run)
			return nil
		}})
		require.NoError(t, Settle(t.Context(), other))
		requireAbout(t, ttl, 3*ttl/2, time.Since(began))
		require.Equal(t, []string{"1 attempt 0", "1 attempt 1"}, w.calls)
	})
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
		require.NoError(t, Settle(t.Context(), Open(t, db, workspace.Options{})))
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
				out, err := m.Handle(t.Context(), "ann", Text("1"))
				require.ErrorIs(t, err, store.ErrTooLarge)
				require.Equal(t, workspace.StatusFailed, out.Status)
				out, err = m.Handle(t.Context(), "ann", Text("2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				requireWithin(t, began, ttl/2)
				require.Equal(t, []string{"start", "run 1", "complete", "start", "run 2", "complete"}, heard)
				v := View(t, m, "ann")
				require.Len(t, v.DeadLetters, 1)
				require.Contains(t, v.DeadLetters[0].Reason, "too large")
				require.Equal(t, 1, v.DeadLetters[0].Attempts)
			})
		})
	}
}
