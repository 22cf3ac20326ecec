package workspace_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Summaries continues after any user, leaves deleted workspaces out, and shows
// damaged ones among the others.
func TestSummaries(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: nothing})
	for i := range 100 {
		_, err := m.Handle(t.Context(), fmt.Sprintf("user%02d", i), text("1"))
		require.NoError(t, err)
	}
	require.NoError(t, m.Delete(t.Context(), "user50"))
	_, err := store.Put(t.Context(), db, "agent:workspace:user60", []byte("{"), store.Always)
	require.NoError(t, err)

	for _, after := range []string{"", "user10", "user49", "user50", "user59", "user99", "zoe"} {
		m := open(t, db, workspace.Options{})
		var users []string
		for s, err := range m.Summaries(t.Context(), after) {
			require.NoError(t, err)
			users = append(users, s.UserID)
			if s.UserID == "user60" {
				require.ErrorIs(t, s.Err, workspace.ErrCorrupt)
				require.Equal(t, workspace.Summary{UserID: "user60", Err: s.Err}, s)
				continue
			}
			want, err := m.Summary(t.Context(), s.UserID)
			require.NoError(t, err)
			require.Equal(t, want, s)
		}
		var want []string
		for i := range 100 {
			if user := fmt.Sprintf("user%02d", i); user > after && user != "user50" {
				want = append(want, user)
			}
		}
		require.Equal(t, want, users, "after %q", after)
	}
}

// An error of the store ends the loop.
func TestSummariesEndWithTheStore(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: nothing})
	for _, user := range []string{"ann", "bob"} {
		_, err := m.Handle(t.Context(), user, text("1"))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	var errs []error
	for _, err := range m.Summaries(t.Context(), "") {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], store.ErrClosed)
}

// A page of a long list costs a page: no value of another workspace is read.
func TestSummariesReadWhatTheyYield(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: nothing})
	for i := range 200 {
		_, err := m.Handle(t.Context(), fmt.Sprintf("user%03d", i), text("1"))
		require.NoError(t, err)
	}
	counted := fakestore.Count(db)
	m = open(t, counted, workspace.Options{})
	opened := counted.Calls("List") // Open tries it
	n := 0
	for _, err := range m.Summaries(t.Context(), "user100") {
		require.NoError(t, err)
		if n++; n == 50 {
			break
		}
	}
	require.Equal(t, 1, counted.Calls("List")-opened)
	require.LessOrEqual(t, counted.Read(), 63)
}

func TestHeld(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	require.Empty(t, m.Held())
	ann := runs.Begin(t, "ann", text("1"))
	_, err := m.Submit(t.Context(), "ann", text("2"))
	require.NoError(t, err)
	bob := runs.Begin(t, "bob", text("3"))

	held := m.Held()
	require.Len(t, held, 2)
	for i, run := range []*heldRun{ann, bob} {
		s, err := m.Summary(t.Context(), held[i].UserID)
		require.NoError(t, err)
		require.Equal(t, run.ID(), held[i].ID)
		require.Equal(t, run.Message(), held[i].Message)
		require.Equal(t, s.Run.Began, held[i].Began)
		require.Equal(t, s.Run.Attempt, held[i].Attempt)
	}

	bob.Finish(t)
	ann.Fail(t, errors.New("no good"))
	next := runs.Next(t)
	held = m.Held()
	require.Len(t, held, 1)
	require.Equal(t, next.ID(), held[0].ID)
	next.Finish(t)
	require.Empty(t, m.Held())
}

// A run that lost its lease is not held.
func TestHeldWithoutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m, runs := hold(t, db, workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		time.Sleep(time.Second) // a short run is not watched
		require.NoError(t, open(t, db, workspace.Options{}).Cancel(t.Context(), "ann", run.ID(), "enough"))
		select {
		case <-run.Context().Done():
		case <-time.After(time.Minute):
			require.Fail(t, "the run goes on without its lease")
		}
		require.Empty(t, m.Held())
	})
}

// A workspace that was deleted does not exist, also before it expires. A new one
// of the same user counts its writes anew, but no revision returns.
func TestRevisionDoesNotReturn(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: nothing})
	seen := map[string]bool{}
	for range 3 {
		for i := range 3 {
			_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(i)))
			require.NoError(t, err)
			s, err := m.Summary(t.Context(), "ann")
			require.NoError(t, err)
			require.EqualValues(t, 2*(i+1), s.Seq)
			require.NotEmpty(t, s.Revision)
			require.False(t, seen[s.Revision])
			seen[s.Revision] = true
		}
		require.NoError(t, m.Delete(t.Context(), "ann"))
		s, err := m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, workspace.Summary{UserID: "ann"}, s)
		n, err := m.Expire(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}
