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

var errBroken = errors.New("broken")

// handled lets a Manager make a run for a caller, and waits for its end.
var handled = map[string]func(ctx context.Context, m *workspace.Manager, work func(context.Context, *workspace.Run) error) error{
	"Handle": func(ctx context.Context, m *workspace.Manager, _ func(context.Context, *workspace.Run) error) error {
		_, err := m.Handle(ctx, "ann", Text("1")) // work is its Options.Run
		return err
	},
	"Do": func(ctx context.Context, m *workspace.Manager, work func(context.Context, *workspace.Run) error) error {
		return m.Do(ctx, "ann", work)
	},
}

// outageRow is who waits for a store that is away, and for what. Its run has
// changed Notes when the outage begins.
type outageRow struct {
	who, what string
	run       func(ctx context.Context, run *workspace.Run, ttl time.Duration) error
}

var outageRows = []outageRow{
	{"Handle", "heartbeat", waitForHeartbeats},
	{"Do", "heartbeat", waitForHeartbeats},
	{"Handle", "end", func(context.Context, *workspace.Run, time.Duration) error { return nil }},
	{"Do", "end", func(context.Context, *workspace.Run, time.Duration) error { return nil }},
	{"Handle", "failure", func(context.Context, *workspace.Run, time.Duration) error { return errBroken }},
	{"Handle", "Commit", func(ctx context.Context, run *workspace.Run, _ time.Duration) error { return run.Commit(ctx) }},
}

func waitForHeartbeats(ctx context.Context, _ *workspace.Run, ttl time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(2 * ttl):
	}
	return ctx.Err()
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
				t.Run(fmt.Sprint(row.who, "/", row.what, "/", reply, "/", ttls, " TTL"), func(t *testing.T) {
					s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) { row.test(t, db, ttl, lost, InTTLs(ttls, ttl)) })
				})
			}
		}
	}
}

func (row outageRow) test(t testing.TB, db store.Store, ttl time.Duration, lost bool, length time.Duration) {
	first := "1"
	if row.who == "Do" {
		first = "" // it has no message
	}
	mine, away := awayForHead(db, lost)
	others, alsoAway := WithOutages(db, false)
	w := &WhichRun{}
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
		for _, a := range []*atomic.Bool{away, alsoAway} {
			a.Store(true)
			time.AfterFunc(length, func() { a.Store(false) })
		}
		err = row.run(ctx, run, ttl)
		require.NoError(t, ctx.Err())
		return err
	}
	m = Open(t, mine, workspace.Options{TTL: ttl, Run: work})
	other := Open(t, others, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
		w.Called(run)
		return nil
	}})
	began := time.Now()
	err := handled[row.who](t.Context(), m, work)
	if row.what == "heartbeat" {
		length = max(length, 2*ttl)
	}
	RequireAbout(t, ttl, ttl/3+length, time.Since(began))
	require.NoError(t, m.Wait(t.Context()))
	require.NoError(t, other.Close())
	v := View(t, Open(t, db, workspace.Options{TTL: ttl}), "ann")
	require.Nil(t, v.Run)
	require.Equal(t, []string{first + " attempt 0", "2 attempt 0"}, w.Calls)
	if row.what == "failure" {
		require.ErrorIs(t, err, errBroken)
		require.Len(t, v.DeadLetters, 1)
		require.Equal(t, []string{"2 0"}, Notes.GetOr(v.State(), nil))
	} else {
		require.NoError(t, err)
		require.Empty(t, v.DeadLetters)
		require.Equal(t, []string{first + " 0", "2 0"}, Notes.GetOr(v.State(), nil))
	}
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
	for who, call := range handled {
		for _, ttls := range []float64{0, 4} { // longer than any lease
			t.Run(fmt.Sprint(who, "/", ttls, " TTL"), func(t *testing.T) {
				s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
					lossy, away := awayForHead(db, true)
					m := Open(t, lossy, workspace.Options{TTL: ttl, Run: Nothing})
					require.NoError(t, m.Do(t.Context(), "bob", Visit)) // the Manager has a holder record
					away.Store(true)
					ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
					defer cancel()
					require.ErrorIs(t, call(ctx, m, Visit), store.ErrUnknownOutcome)
					time.Sleep(InTTLs(ttls, ttl))
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
