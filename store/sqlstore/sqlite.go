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
		return nil, fmt.Errorf("%w: the dsn of sqlite is the path of a file", store.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	// SQLite waits for locks without looking at a context, so that it gets little
	// time to; see retry. A sync is one that survives a loss of power, on macOS too.
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
	s.writer = &group{dialect: &s.dialect, db: writer}
	return s, nil
}

// creating is held while a file is made: closing any descriptor of a file gives up
// all locks that the process has on it, so that nobody may have it open meanwhile.
var creating sync.Mutex

// create makes the file, for its owner only, if it is not there.
func create(path string) error {
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
		return nil // directories cannot be synced there
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sqliteDialect puts rev before v, so that comparing it does not read a large
// value, and keeps v out of the index of k, whose pages would hold few keys.
func sqliteDialect(table string, writer *sql.DB) dialect {
	d := dialect{
		name:       "sqlite",
		durability: store.DurabilityPower,
		maxValue:   1_000_000_000 - 4096, // that is a row without the rest of it
		get:        `select v, rev from T where k = ?1`,
		scan:       `select k, v, rev from T where k >= ?1 and k < ?2 order by k limit ?3`,
		upsert:     `insert into T (k, v, rev) values (?1, ?2, ?3) on conflict (k) do update set v = excluded.v, rev = excluded.rev`,
		insert:     `insert into T (k, v, rev) values (?1, ?2, ?3) on conflict (k) do nothing`,
		update:     `update T set v = ?1, rev = ?2 where k = ?3 and rev = ?4`,
		remove:     `delete from T where k = ?1`,
		removeIf:   `delete from T where k = ?1 and rev = ?2`,
		begin:      `begin immediate`,
		refused: func(err error) bool {
			// Not so an input or output error: the sync may have failed after the
			// commit was written, and a recovery may find it.
			code := sqliteCode(err)
			return code == codes.SQLITE_BUSY || code == codes.SQLITE_FULL
		},
		again:    func(err error) bool { return sqliteCode(err) == codes.SQLITE_BUSY },
		tooLarge: func(err error) bool { return sqliteCode(err) == codes.SQLITE_TOOBIG },
	}
	for _, text := range []*string{&d.get, &d.scan, &d.upsert, &d.insert, &d.update, &d.remove, &d.removeIf} {
		*text = strings.Replace(*text, " T ", ` "`+table+`" `, 1)
	}
	d.setup = func(ctx context.Context, _ *sql.DB) error {
		// Several processes may do this at the same time, and then have to wait.
		return d.retry(ctx, func() error { return setupSQLite(ctx, writer, table) })
	}
	return d
}

// setupSQLite makes the table. A pragma that does not take is no error to SQLite,
// so that each is asked what it is.
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
			return fmt.Errorf("%s is %s here, not %s", pragma.text, got, pragma.want)
		}
	}
	_, err := db.ExecContext(ctx, `create table if not exists "`+table+`" (k blob not null primary key, rev blob not null, v blob not null)`)
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
