package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
)

// waiting returns when n calls wait for a commit.
func waiting(s *sqlstore.Store, n int) {
	for sqlstore.Waiting(s) != n {
		time.Sleep(time.Millisecond)
	}
}

// onCommit, if set, is called within each commit to a file named hooked.db, and
// makes the commit fail if it returns true.
var onCommit atomic.Pointer[func() bool]

func init() {
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, dsn string) error {
		if strings.Contains(dsn, "hooked.db") {
			conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 {
				if hook := onCommit.Load(); hook != nil && (*hook)() {
					return 1
				}
				return 0
			})
		}
		return nil
	})
}

// openHooked opens a store whose commits call the function that it may be given.
func openHooked(t *testing.T) (s *sqlstore.Store, path string, hook func(func() bool)) {
	path = filepath.Join(t.TempDir(), "hooked.db")
	t.Cleanup(func() { onCommit.Store(nil) })
	return openSQLite(t, path), path, func(f func() bool) { onCommit.Store(&f) }
}

// What became of a commit that failed is unknown, and said so. The store goes on.
func TestSQLiteCommitFails(t *testing.T) {
	s, _, hook := openHooked(t)
	hook(func() bool { return true })
	_, err := s.Put(t.Context(), "k", nil, store.Always)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	_, err = s.Batch(t.Context(), []store.Write{{Key: "a"}, {Key: "b"}})
	require.ErrorIs(t, err, store.ErrUnknownOutcome)

	hook(func() bool { return false })
	for _, key := range []string{"k", "a", "b"} {
		_, err = s.Put(t.Context(), key, nil, store.IfAbsent)
		require.NoError(t, err)
	}
}

// Two writes are in one commit. A caller who does not wait for its end does not
// know what becomes of his write, and may change his slice; the other is not
// disturbed. One who has not been taken into it knows that his was not made.
func TestSQLiteLeavesCommit(t *testing.T) {
	s, path, hook := openHooked(t)
	conn := foreign(t, path)
	execute(t, conn, "begin immediate")
	began, end := make(chan bool, 10), make(chan bool)
	hook(func() bool {
		began <- true
		<-end
		return false
	})
	put := func(ctx context.Context, key string, value []byte, n int) chan error {
		result := make(chan error, 1)
		go func() {
			_, err := s.Put(ctx, key, value, store.Always)
			result <- err
		}()
		waiting(s, n)
		return result
	}
	ctx, cancel := context.WithCancel(t.Context())
	value := []byte("value")
	leader := put(t.Context(), "leader", nil, 1)
	follower := put(ctx, "follower", value, 2)
	execute(t, conn, "rollback")
	<-began
	late := put(ctx, "late", nil, 1)
	cancel()
	require.ErrorIs(t, <-follower, store.ErrUnknownOutcome)
	err := <-late
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	copy(value, "other")
	close(end)
	require.NoError(t, <-leader)

	entry, err := s.Get(t.Context(), "follower")
	require.NoError(t, err)
	require.Equal(t, "value", string(entry.Value))
	_, err = s.Get(t.Context(), "late")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// A leader that gives up before its turn lets the next one lead.
func TestSQLiteLeaderGivesUp(t *testing.T) {
	s, path, _ := openHooked(t)
	conn := foreign(t, path)
	execute(t, conn, "begin immediate")
	ctx, cancel := context.WithCancel(t.Context())
	leader, follower := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Put(ctx, "leader", nil, store.Always)
		leader <- err
	}()
	waiting(s, 1)
	go func() { follower <- s.Delete(t.Context(), "follower", store.Always) }()
	waiting(s, 2)
	cancel()
	require.ErrorIs(t, <-leader, context.Canceled)
	execute(t, conn, "rollback")
	require.NoError(t, <-follower)
	_, err := s.Get(t.Context(), "leader")
	require.ErrorIs(t, err, store.ErrNotFound)
}
