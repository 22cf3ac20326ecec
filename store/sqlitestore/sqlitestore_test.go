package sqlitestore_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/storetest"
)

func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(path string) (store.Store, error) {
		return sqlitestore.Open(context.Background(), path, nil)
	}))
}

func open(t testing.TB, path string) *sqlstore.Store { return openTable(t, path, "") }

func openTable(t testing.TB, path, table string) *sqlstore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Table: table})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// address is the path of a file that does not exist, which is what
// [storetest.Main] opens.
func address(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		path := address(t)
		return func() store.Store { return open(t, path) }
	})
}

func TestProcesses(t *testing.T) { storetest.Processes(t, address(t)) }

func TestKill(t *testing.T) { storetest.Kill(t, address(t), effort.Runs(8)) }

func TestOpenInvalidArguments(t *testing.T) {
	path := address(t)
	for name, test := range map[string]struct{ path, table string }{
		"memory":           {":memory:", ""},
		"no path":          {"", ""},
		"URI":              {"file:x?mode=memory", ""},
		"quote in table":   {path, `x"; drop table y`},
		"dot in table":     {path, "main.x"},
		"capital in table": {path, "Entries"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqlitestore.Open(t.Context(), test.path, &sqlitestore.Options{Table: test.table})
			require.ErrorIs(t, err, store.ErrInvalid)
		})
	}
}

func TestOpenFailures(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	require.NoError(t, os.WriteFile(text, []byte("This is not a database."), 0o600))
	for name, path := range map[string]string{
		"missing folder": filepath.Join(folder, "missing", "state.db"),
		"folder":         folder,
		"not a database": text,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqlitestore.Open(t.Context(), path, nil)
			var about *store.Error
			require.ErrorAs(t, err, &about)
			require.Equal(t, "open", about.Op)
		})
	}
	content, err := os.ReadFile(text)
	require.NoError(t, err)
	require.Equal(t, "This is not a database.", string(content))
}

// TestFile checks that only the owner can read the file, that its name is taken
// literally, and that its durability is that of synced writes.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a file?mode=memory#1%20.db")
	s := open(t, path)
	require.Equal(t, store.DurabilityPower, s.Durability())
	_, err := store.Put(t.Context(), s, "k", []byte("v"), store.Always)
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, os.FileMode(0o600), info.Mode(), suffix)
		}
	}
	require.NoError(t, s.Close())
	entry, err := store.Get(t.Context(), open(t, path), "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(entry.Value))
}

func TestTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	one := open(t, path)
	two, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Table: "two"})
	require.NoError(t, err)
	defer two.Close()
	_, err = store.Put(t.Context(), one, "k", nil, store.Always)
	require.NoError(t, err)
	_, err = store.Get(t.Context(), two, "k")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestConcurrentOpen opens a file that does not exist from many handles at once.
func TestConcurrentOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() {
			s, err := sqlitestore.Open(t.Context(), path, nil)
			if err == nil {
				_, err = store.Put(t.Context(), s, strconv.Itoa(i), nil, store.IfAbsent)
				_ = s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	n := 0
	for _, err := range open(t, path).List(t.Context(), "", "", true) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, len(errs), n)
}

// A file that was removed or replaced is noticed before the next write is
// acknowledged: SQLite itself goes on with a file that nobody finds.
func TestFileGone(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"renamed": func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) },
		"replaced": func(t *testing.T, path string) {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".new", content, 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := address(t)
			s := open(t, path)
			_, err := store.Put(t.Context(), s, "k", nil, store.Always)
			require.NoError(t, err)
			spoil(t, path)
			_, err = store.Put(t.Context(), s, "k", nil, store.Always)
			require.ErrorContains(t, err, "the file of the database was removed or replaced")
			require.ErrorIs(t, err, store.ErrRefused)
			require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			_, err = store.Get(t.Context(), s, "k")
			require.ErrorContains(t, err, "removed or replaced")
			for _, err := range s.List(t.Context(), "", "", true) {
				require.ErrorContains(t, err, "removed or replaced")
			}
		})
	}
}

// A table that somebody has dropped stays away.
func TestTableGone(t *testing.T) {
	path := address(t)
	s := open(t, path)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "drop table state_entries")
	require.NoError(t, err)
	_, err = store.Put(t.Context(), s, "k", nil, store.Always)
	require.ErrorIs(t, err, store.ErrRefused)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	_, err = store.Get(t.Context(), s, "k")
	require.ErrorIs(t, err, store.ErrRefused)
}

// The log of writes does not keep the size that one large value needed.
func TestLogIsBounded(t *testing.T) {
	path := address(t)
	s := open(t, path)
	for i := range 3 {
		_, err := store.Put(t.Context(), s, "large", make([]byte, 64<<20), store.Always)
		require.NoError(t, err)
		for range 3 {
			_, err = store.Put(t.Context(), s, "small", []byte{byte(i)}, store.Always)
			require.NoError(t, err)
		}
		info, err := os.Stat(path + "-wal")
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(17<<20))
	}
}

// Each call ends with its context while another program holds a lock, and what was
// not made is not there. The file has no log of writes (WAL), so that those who read
// hold up a commit.
func TestDeadlines(t *testing.T) {
	const reads, writes, excludes = "select count(*) from state_entries", "delete from state_entries where false", "pragma user_version = 7"
	put := func(ctx context.Context, s *sqlstore.Store) error {
		_, err := store.Put(ctx, s, "k", nil, store.Always)
		return err
	}
	transact := func(ctx context.Context, s *sqlstore.Store) error {
		_, err := s.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error { return nil })
		return err
	}
	get := func(ctx context.Context, s *sqlstore.Store) error {
		_, err := store.Get(ctx, s, "k")
		return err
	}
	for name, row := range map[string]struct {
		begin, other string
		call         func(context.Context, *sqlstore.Store) error
	}{
		"get while another commits":        {"begin exclusive", excludes, get},
		"put while another writes":         {"begin immediate", writes, put},
		"transact while another writes":    {"begin immediate", writes, transact},
		"transact while another one reads": {"begin", reads, transact},
	} {
		t.Run(name, func(t *testing.T) {
			path := address(t)
			require.NoError(t, open(t, path).Close())
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			defer db.Close()
			db.SetMaxOpenConns(1)
			execute := func(text string) {
				_, err := db.ExecContext(t.Context(), text)
				require.NoError(t, err)
			}
			execute("pragma journal_mode = delete")
			s, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Existing: true})
			require.NoError(t, err)
			defer s.Close()
			execute(row.begin)
			execute(row.other)

			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, row.call(ctx, s), context.DeadlineExceeded)
			execute("rollback")
			_, err = store.Put(t.Context(), s, "k", nil, store.IfAbsent)
			require.NoError(t, err)
		})
	}
}
