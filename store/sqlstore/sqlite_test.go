package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/storetest"
)

// openSQLite opens a store on a pool of a program.
func openSQLite(t testing.TB, path string) *sqlstore.Store {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), "pragma journal_mode = wal")
	require.NoError(t, err)
	s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// foreign opens a file as a program would that does not use this package.
func foreign(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	return conn
}

func execute(t *testing.T, conn *sql.Conn, text string) {
	t.Helper()
	_, err := conn.ExecContext(t.Context(), text)
	require.NoError(t, err)
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		path := filepath.Join(t.TempDir(), "state.db")
		return func() store.Store { return openSQLite(t, path) }
	})
}

// TestSQLiteWaitsForLock checks that writes wait for the lock of another program until
// their contexts end. Writes whose context ended are not made and do not block others.
func TestSQLiteWaitsForLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openSQLite(t, path)
	conn := foreign(t, path)
	execute(t, conn, "begin immediate")

	const writers = 12
	var wg sync.WaitGroup
	var ended atomic.Int32
	errs := make([]error, writers)
	for i := range errs {
		wg.Go(func() {
			ctx := t.Context()
			if i%2 == 0 {
				short, cancel := context.WithTimeout(ctx, time.Duration(20+5*i)*time.Millisecond)
				defer cancel()
				ctx = short
			}
			_, errs[i] = store.Put(ctx, s, strconv.Itoa(i), nil, store.Always)
			ended.Add(1)
		})
	}
	_, err := store.Get(t.Context(), s, "k")
	require.ErrorIs(t, err, store.ErrNotFound, "reads do not wait for writes")
	testkit.Until(func() bool { return sqlstore.WaitingWrites(s) == writers/2 && ended.Load() == writers/2 })
	execute(t, conn, "rollback")
	wg.Wait()
	for i, err := range errs {
		_, get := store.Get(t.Context(), s, strconv.Itoa(i))
		if i%2 == 0 {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			require.ErrorIs(t, get, store.ErrNotFound)
		} else {
			require.NoError(t, err)
			require.NoError(t, get)
		}
	}
}

func TestSQLiteCloseEndsWaitingWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openSQLite(t, path)
	execute(t, foreign(t, path), "begin immediate")
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := store.Put(context.Background(), s, "k", nil, store.Always)
			errs <- err
		}()
	}
	testkit.Until(func() bool { return sqlstore.WaitingWrites(s) == 5 })
	require.NoError(t, s.Close())
	for range 5 {
		err := <-errs
		require.ErrorIs(t, err, store.ErrClosed)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	}
}

// TestSQLiteContexts ends contexts at many different moments. No writer may wait
// indefinitely, and no write may be made if its error says that it was not.
func TestSQLiteContexts(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "state.db"))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			key := strconv.Itoa(worker)
			for i := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i%37)*200*time.Microsecond)
				_, err := store.Put(ctx, s, key, []byte{byte(i)}, store.Always)
				cancel()
				entry, get := store.Get(t.Context(), s, key)
				there := get == nil && entry.Value[0] == byte(i)
				switch {
				case err == nil && !there:
					t.Errorf("an acknowledged write is not there: %v", get)
				case err != nil && there && !errors.Is(err, store.ErrUnknownOutcome):
					t.Errorf("a write was made although it failed: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// TestSQLiteRecovers checks that the store works again after the cause of an error is
// removed.
func TestSQLiteRecovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openSQLite(t, path)
	conn := foreign(t, path)
	execute(t, conn, "alter table state_entries rename to away")
	_, err := store.Put(t.Context(), s, "k", []byte("SECRET"), store.Always)
	require.EqualError(t, err, `store: sqlite: write "k": store: refused: SQL logic error: no such table: state_entries (1)`)
	execute(t, conn, "alter table away rename to state_entries")
	_, err = store.Put(t.Context(), s, "k", nil, store.IfAbsent)
	require.NoError(t, err)
}

// TestSQLiteBatchAmongOthers checks that a batch that fails does not affect the writes
// that are committed with it.
func TestSQLiteBatchAmongOthers(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "state.db"))
	ctx := t.Context()
	_, err := store.Put(ctx, s, "taken", nil, store.Always)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			_, err := s.Batch(ctx, []store.Write{
				{Key: "batch" + strconv.Itoa(i)},
				{Key: "taken", Cond: store.IfAbsent},
			})
			var about *store.Error
			if errors.As(err, &about); !errors.Is(err, store.ErrConflict) || about.Key != "taken" {
				t.Errorf("a batch whose condition does not hold: %v", err)
			}
		})
		wg.Go(func() {
			if _, err := store.Put(ctx, s, "put"+strconv.Itoa(i), nil, store.IfAbsent); err != nil {
				t.Errorf("a put in the same commit: %v", err)
			}
		})
	}
	wg.Wait()
	n := 0
	for entry, err := range s.List(ctx, "", "", true) {
		require.NoError(t, err)
		require.NotContains(t, entry.Key, "batch")
		n++
	}
	require.Equal(t, 51, n)
}

// On a pool of the program that waits long for locks, a read ends with its context,
// and so does the commit of a transaction in which the store has written, which is
// not made then. modernc.org/sqlite before 1.61.1 waited for the lock, up to
// busy_timeout, and then committed: this test would not end.
func TestSQLiteLockOutlastsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := openPool(t, "sqlite", path+"?_pragma=busy_timeout(3600000)&_txlock=immediate")
	s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite(), nil)
	require.NoError(t, err)
	other := foreign(t, path)
	short := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 100*time.Millisecond)
	}

	execute(t, other, "begin exclusive")
	ctx, cancel := short()
	defer cancel()
	_, err = store.Get(ctx, s, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	execute(t, other, "rollback")

	execute(t, other, "begin")
	require.NoError(t, other.QueryRowContext(t.Context(), "select count(*) from state_entries").Scan(new(int)))
	ctx, cancel = short()
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = store.Put(ctx, s.In(tx), "k", nil, store.Always)
	require.NoError(t, err)
	require.ErrorIs(t, tx.Commit(), context.DeadlineExceeded)
	execute(t, other, "rollback")
	_, err = store.Get(t.Context(), s, "k")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = store.Put(t.Context(), s, "k", nil, store.IfAbsent)
	require.NoError(t, err)
}
