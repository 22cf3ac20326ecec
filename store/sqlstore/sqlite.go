package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/agentstate/state/store"
)

func newSQLite(ctx context.Context, path, table string) (*Store, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("%w: the dsn of sqlite must be the path of a file", store.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	// Processes may open the file under different names. Its lock file has one.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	// The busy timeout is short because SQLite ignores contexts while it waits
	// for a lock; dialect.retry waits for longer. On macOS, only a full fsync
	// survives a loss of power.
	pragmas := url.Values{
		"mode":    {"rw"},
		"_pragma": {"busy_timeout(10)", "synchronous(full)", "fullfsync(1)", "checkpoint_fullfsync(1)"},
	}
	dsn := func() string {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: pragmas.Encode()}).String()
	}
	writer, err := sql.Open("sqlite", dsn())
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	pragmas.Add("_pragma", "query_only(1)")
	readers, err := sql.Open("sqlite", dsn())
	if err != nil {
		return nil, err
	}
	n := max(4, runtime.GOMAXPROCS(0))
	readers.SetMaxOpenConns(n)
	readers.SetMaxIdleConns(n)
	s, err := newStore(ctx, readers, sqliteDialect(table, writer))
	if err != nil {
		_ = writer.Close()
		return nil, err
	}
	s.writer = &groupWriter{dialect: &s.dialect, db: writer}
	s.presence = &filePresence{path: real + "-presence", database: real, table: table}
	return s, nil
}

// creating serializes createFile. Closing any descriptor of a file releases all
// locks that the process has on the file, so that no other handle may open it
// in the meantime.
var creating sync.Mutex

// createFile creates the file, readable only by its owner, if it does not
// exist.
func createFile(path string) error {
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // cannot sync directories
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func sqliteDialect(table string, writer *sql.DB) dialect {
	table = `"` + table + `"`
	d := dialect{
		statements: newStatements(table, onConflictReplace, onConflictKeep),
		name:       "sqlite",
		durability: store.DurabilityPower,
		maxValue:   1_000_000_000 - 4096, // the maximum of a row, minus the other columns
		begin:      "begin immediate",
		refused: func(err error) bool {
			// An I/O error is not definite: the sync may have failed after the
			// commit was written, and a recovery may find the commit.
			code := sqliteCode(err)
			return code == codes.SQLITE_BUSY || code == codes.SQLITE_FULL
		},
		retryable: func(err error) bool { return sqliteCode(err) == codes.SQLITE_BUSY },
		tooLarge:  func(err error) bool { return sqliteCode(err) == codes.SQLITE_TOOBIG },
	}
	d.setup = func(ctx context.Context, _ *sql.DB) error {
		// Another process that sets up the same file at the same time locks it.
		return d.retry(ctx, func() error { return setupSQLite(ctx, writer, table) })
	}
	return d
}

// setupSQLite creates the table. SQLite reports no error if it does not apply a
// pragma, so that setupSQLite reads each one back.
//
// Column rev precedes v, so that a comparison of revisions does not read a
// large value. The primary key is a separate index: without v, its pages hold
// more keys.
func setupSQLite(ctx context.Context, db *sql.DB, table string) error {
	for _, pragma := range []struct{ text, want string }{
		{"pragma journal_mode = wal", "wal"},
		{"pragma synchronous", "2"},
	} {
		var got string
		if err := db.QueryRowContext(ctx, pragma.text).Scan(&got); err != nil {
			return err
		}
		if got != pragma.want {
			return fmt.Errorf("%s is %s, not %s", pragma.text, got, pragma.want)
		}
	}
	_, err := db.ExecContext(ctx, `create table if not exists `+table+` (k blob not null primary key, rev blob not null, v blob not null)`)
	return err
}

// sqliteCode returns the primary result code of an error, or 0.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
