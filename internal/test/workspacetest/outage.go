package workspacetest

import (
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
	"end":     func(context.Context, *workspace.Run, time.Duration) error { return nil },
	"failure": func(context.Context, *workspace.Run, time.Duration) error { return errBroken },
}

// outageRow is what is going on when an outage begins: how a run was begun, and
// what it does.
type outageRow struct{ how, what string }

var outageRows = []outageRow{
	{"Handle", "heartbeat"},
	{"Handle", "Commit"},
	{"Handle", "end"},
	{"Handle", "failure"},
	{"Do", "heartbeat"},
	{"Do", "end"},
}

// begun lets a Manager make a run that does work, and waits for its end.
var begun = map[string]func(ctx context.Context, m *workspace.Manager, work func(context.Context, *workspace.Run) error) error{
	"Handle": func(ctx context.Context, m *workspace.Manager, _ func(context.Context, *workspace.Run) error) error {
		_, err := m.Handle(ctx, "ann", Text("1")) // work is its Options.Run
		return err
	},
	"Do": func(ctx context.Context, m *workspace.Manager, work func(context.Context, *workspace.Run) error) error {
		return m.Do(ctx, "ann", work)
	},
}

// A run waits for a store that is away, however long: its function is called once,
// and its changes are stored once. Nobody takes it over when the store is back,
// and the message behind it is handled.
func (s *suite) Outage(t *testing.T) {
	for _, row := range outageRows {
		for reply, lost := range map[string]bool{"refused": false, "reply lost": true} {
			lengths := []float64{0.01, 0.5, 2.5, 15} // with the default TTL, 10 and 60 seconds
			if s.real {
				lengths = lengths[1:3]
			}
			for _, ttls := range lengths {
				t.Run(fmt.Sprint(row.how, "/", row.what, "/", reply, "/", ttls, " TTL"), func(t *testing.T) {
					s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) { row.test(t, db, ttl, lost, ttls) })
				})
			}
		}
	}
}

func (row outageRow) test(t testing.TB, db store.Store, ttl time.Duration, lost bool, ttls float64) {
	first := "1"
	if row.how == "Do" {
		first = "" // it has no message
	}
	notes, dead := []string{first + " 0", "2 0"}, 0
	if row.what == "failure" {
		notes, dead = notes[1:], 1
	}
	unreliable, away := awayForHead(db, lost)
	o, w := &outage{away: away, length: InTTLs(ttls, ttl)}, &WhichRun{}
	var running atomic.Int32
	var m *workspace.Manager
	work := func(ctx context.Context, run *workspace.Run) error {
		require.EqualValues(t, 1, running.Add(1))
		defer running.Add(-1)
		w.Called(run)
		require.NoError(t, Notes.Set(run.State(), []string{fmt.Sprint(run.Message().ID, " ", run.Attempt())}))
		if run.Message().ID == "2" {
			return nil
		}
		_, err := m.Submit(ctx, "ann", Text("2"))
		require.NoError(t, err)
		time.Sleep(ttl/3 - ttl/100) // the next heartbeat is due
		o.begin()
		err = whileAway[row.what](ctx, run, ttl)
		require.NoError(t, ctx.Err())
		return err
	}
	m = Open(t, unreliable, workspace.Options{TTL: ttl, Run: work})
	alsoAway := WithFaults(db, func([]store.Write) (bool, error) {
		if away.Load() {
			return false, errors.New("connection refused")
		}
		return false, nil
	})
	other := Open(t, alsoAway, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
		w.Called(run)
		return nil
	}})
	began := time.Now()
	err := begun[row.how](t.Context(), m, work)
	if dead > 0 {
		require.ErrorIs(t, err, errBroken)
	} else {
		require.NoError(t, err)
	}
	took := o.length
	if row.what == "heartbeat" {
		took = max(took, 2*ttl)
	}
	RequireAbout(t, ttl, ttl/3+took, time.Since(began))
	require.NoError(t, m.Wait(t.Context()))
	require.NoError(t, other.Close())
	v := View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann")
	require.Nil(t, v.Run)
	require.Equal(t, []string{first + " attempt 0", "2 attempt 0"}, w.Calls)
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
					RequireWithin(t, began, 3*ttl/4)
				})
			})
		}
	}
}
