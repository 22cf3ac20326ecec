package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
)

// onCommit, if set, is called within each commit to a file named hooked.db. The commit
// fails if it returns true.
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

// openHooked opens a store. Its commits call the function that the test gives to hook.
func openHooked(t *testing.T) (s *sqlstore.Store, path string, hook func(func() bool)) {
	path = filepath.Join(t.TempDir(), "hooked.db")
	t.Cleanup(func() { onCommit.Store(nil) })
	return openSQLite(t, path), path, func(f func() bool) { onCommit.Store(&f) }
}

// TestSQLiteFailedCommit checks that a failed commit has an unknown outcome and that
// the store remains usable.
func TestSQLiteFailedCommit(t *testing.T) {
	s, _, hook := openHooked(t)
	hook(func() bool { return true })
	_, err := store.Put(t.Context(), s, "k", nil, store.Always)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	_, err = s.Batch(t.Context(), []store.Write{{Key: "a"}, {Key: "b"}})
	require.ErrorIs(t, err, store.ErrUnknownOutcome)

	hook(func() bool { return false })
	for _, key := range []string{"k", "a", "b"} {
		_, err = store.Put(t.Context(), s, key, nil, store.IfAbsent)
		require.NoError(t, err)
	}
}

// TestSQLiteCancelDuringCommit cancels two of three writes. The follower is part of the
// running commit: its outcome is unknown, and its caller may change the value without
// an effect. The late write is not part of the commit: it is certainly not made.
func TestSQLiteCancelDuringCommit(t *testing.T) {
	s, path, hook := openHooked(t)
	conn := foreign(t, path)
	execute(t, conn, "begin immediate")
	began, end := make(chan bool, 10), make(chan bool)
	hook(func() bool {
		began <- true
		<-end
		return false
	})
	put := func(ctx context.Context, key string, value []byte, waiting int) chan error {
		result := make(chan error, 1)
		go func() {
			_, err := store.Put(ctx, s, key, value, store.Always)
			result <- err
		}()
		testkit.Until(func() bool { return sqlstore.WaitingWrites(s) == waiting })
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

	entry, err := store.Get(t.Context(), s, "follower")
	require.NoError(t, err)
	require.Equal(t, "value", string(entry.Value))
	_, err = store.Get(t.Context(), s, "late")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestSQLiteCancelledLeader checks that the next write leads if the context of the
// leader ends.
func TestSQLiteCancelledLeader(t *testing.T) {
	s, path, _ := openHooked(t)
	conn := foreign(t, path)
	execute(t, conn, "begin immediate")
	ctx, cancel := context.WithCancel(t.Context())
	leader, follower := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := store.Put(ctx, s, "leader", nil, store.Always)
		leader <- err
	}()
	testkit.Until(func() bool { return sqlstore.WaitingWrites(s) == 1 })
	go func() { follower <- store.Delete(t.Context(), s, "follower", store.Always) }()
	testkit.Until(func() bool { return sqlstore.WaitingWrites(s) == 2 })
	cancel()
	require.ErrorIs(t, <-leader, context.Canceled)
	execute(t, conn, "rollback")
	require.NoError(t, <-follower)
	_, err := store.Get(t.Context(), s, "leader")
	require.ErrorIs(t, err, store.ErrNotFound)
}
