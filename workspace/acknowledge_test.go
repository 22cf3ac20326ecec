package workspace_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// standby is a store that acknowledges nothing while its standbys are away, and shows
// what was written all the same.
type standby struct {
	store.Store
	away atomic.Bool
	puts atomic.Int64
}

func (s *standby) Durability() store.Durability { return store.DurabilityFailover }

func (s *standby) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	s.puts.Add(1)
	revs, err := s.Store.Batch(ctx, writes)
	if err == nil && s.away.Load() {
		return nil, store.ErrUnknownOutcome
	}
	return revs, err
}

// Nothing is called accepted, done or a duplicate because it can be read.
func TestWhatIsShownIsNotTold(t *testing.T) {
	const gap = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		db := &standby{Store: store.NewMemory()}
		m := open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }, TTL: time.Minute})
		other := open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }, TTL: time.Minute})
		msg := workspace.Message{ID: "1", Content: state.UserText("pay")}
		outage := func() {
			db.away.Store(true)
			time.AfterFunc(gap, func() { db.away.Store(false) })
		}
		for name, call := range map[string]func() (workspace.Outcome, error){
			"Submit": func() (workspace.Outcome, error) { return m.Submit(t.Context(), "ann", msg) },
			"Handle": func() (workspace.Outcome, error) { return m.Handle(t.Context(), "bob", msg) },
		} {
			outage()
			began := time.Now()
			out, err := call()
			require.NoError(t, err, name)
			require.Contains(t, []workspace.Status{workspace.StatusStarted, workspace.StatusDone}, out.Status)
			require.GreaterOrEqual(t, time.Since(began), gap, name)
			require.NoError(t, m.Wait(t.Context()))
		}
		for name, call := range map[string]func() (workspace.Outcome, error){
			"Await":       func() (workspace.Outcome, error) { return other.Await(t.Context(), "ann", "1") },
			"a duplicate": func() (workspace.Outcome, error) { return other.Submit(t.Context(), "bob", msg) },
		} {
			outage()
			began := time.Now()
			_, err := call()
			require.NoError(t, err, name)
			require.GreaterOrEqual(t, time.Since(began), gap, name)
			before := db.puts.Load()
			_, err = call() // the process remembers it
			require.NoError(t, err, name)
			require.Equal(t, before, db.puts.Load(), name)
		}
		db.away.Store(true)
		_, err := m.Submit(t.Context(), "eve", msg)
		require.ErrorIs(t, err, store.ErrUnknownOutcome)
	})
}
