package workspace_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run that an operator has begun is handled, although nobody knows that it
// has.
func TestRunsOfUnknownOutcomeAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled, fail := "", true
		// The next write is made, but nobody knows, and the context of its caller ends.
		var doubt context.CancelFunc
		db := fakestore.New(store.NewMemory(), func(ctx context.Context, c fakestore.Call, do func() error) error {
			err := do()
			if doubt == nil || err != nil || c.Writes == nil {
				return cmp.Or(ctx.Err(), err)
			}
			doubt()
			doubt = nil
			return store.ErrUnknownOutcome
		})
		m := open(t, db, workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			if fail {
				return errors.New("broken")
			}
			handled += run.UserID() + run.Message().ID + " "
			return nil
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorContains(t, err, "broken")
		synctest.Wait()
		fail = false
		ctx, cancel := context.WithCancel(t.Context())
		doubt = cancel
		require.ErrorIs(t, m.Retry(ctx, "ann", "1"), store.ErrUnknownOutcome)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "ann1 ", handled)

		other, runs := hold(t, store.NewMemory(), workspace.Options{})
		runs.Begin(t, "bob", text("2"))
		data, err := other.Export(t.Context(), "bob")
		require.NoError(t, err)
		ctx, cancel = context.WithCancel(t.Context())
		doubt = cancel
		require.ErrorIs(t, m.ImportWorkspace(ctx, "bob", data), store.ErrUnknownOutcome)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "ann1 bob2 ", handled)
		closeEarly(t, other)
		require.NoError(t, m.Close())
	})
}

// An operator sees when a message was given up or dropped.
func TestEndedMessagesHaveTimes(t *testing.T) {
	for _, wrap := range []func() store.Store{func() store.Store { return store.NewMemory() }, func() store.Store { return plain{Store: store.NewMemory()} }} {
		m, runs := hold(t, wrap(), workspace.Options{DeadLetters: 1})
		runs.Begin(t, "ann", text("running"))
		for _, id := range []string{"discarded", "reset"} {
			out, err := m.Submit(t.Context(), "ann", text(id))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}
		require.NoError(t, m.Discard(t.Context(), "ann", "discarded"))
		_, err := m.Reset(t.Context(), "ann")
		require.NoError(t, err)
		for _, id := range []string{"dropped", "dead"} {
			runs.Begin(t, "ann", text(id)).Fail(t, errors.New("broken"))
		}
		ended := view(t, m, "ann").Ended
		require.Len(t, ended, 4)
		for _, e := range ended {
			require.WithinDuration(t, time.Now(), e.At, time.Minute, e.ID)
		}
		require.NoError(t, m.Close())
	}
}

// A summary says with which key its workspace is sealed, or why it cannot be
// read.
func TestSummaryHasKeyAndError(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: nothing, Keys: []workspace.Key{key("a")}})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	for _, m := range []*workspace.Manager{m, open(t, db, workspace.Options{Keys: []workspace.Key{key("b"), key("a")}})} {
		s, err := m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, "a", s.KeyID)
		require.NoError(t, s.Err)
	}
	s, err := open(t, db, workspace.Options{}).Summary(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrInvalidKey)
	require.Equal(t, workspace.Summary{UserID: "ann", Err: err}, s)
}
