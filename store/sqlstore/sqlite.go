package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/store"
)

// SQLite is the dialect of a SQLite database in a file. The errors of the
// driver must have a method Code() int with the result code of SQLite, as those
// of modernc.org/sqlite and of drivers made from it have.
//
// Several handles and processes of one machine can have the same file open. It
// must not be on a network file system. The store keeps one connection for its
// writes, and makes the writes that wait for each other in one transaction. If
// the file is removed or replaced, every call fails. Reads use the other
// connections of the pool; with "journal_mode = wal", as package sqlitestore
// sets it, they do not wait for writes.
func SQLite() Dialect { return Dialect{"sqlite", inspectSQLite} }

// The primary result codes of SQLite that matter here.
const (
	sqlitePermission  = "3"
	sqliteBusy        = "5"
	sqliteReadOnly    = "8"
	sqliteFull        = "13"
	sqliteTooBig      = "18"
	sqliteNotDatabase = "26"
	// These have no code of their own.
	sqliteNoTable = "no such table"
	sqliteNoFile  = "no such file"
)

func inspectSQLite(ctx context.Context, db *sql.DB, o Options) (*database, error) {
	table := o.Table
	base := &database{
		statements: newStatements(`"`+table+`"`, onConflictReplace, onConflictKeep),
		durability: store.DurabilityPower,
		maxValue:   1_000_000_000 - 4096, // the maximum of a row, minus the other columns
		begin:      "begin immediate",
		prepares:   true,
		code:       sqliteCode,
		answers: answers{
			retryable: []string{sqliteBusy},
			// The file is not the database of the store, or must not be written.
			lasting:  []string{sqlitePermission, sqliteReadOnly, sqliteNotDatabase, sqliteNoTable, sqliteNoFile},
			tooLarge: []string{sqliteTooBig},
		},
	}
	base.refuses = func(code string) bool {
		// An I/O error is not definite: the sync may have failed after the commit was
		// written, and a recovery may find the commit.
		return code == sqliteBusy || code == sqliteFull || slices.Contains(base.answers.lasting, code)
	}
	// Another process that opens the same file for the first time locks it.
	var file databaseFile
	err := base.retry(ctx, func() (err error) {
		file, err = fileOf(ctx, db)
		return err
	})
	if err != nil {
		return nil, err
	}
	g := &groupWriter{database: base, db: db}
	base.writer = g
	base.check, base.setup, base.getInTx = file.check, setupSQLite, base.get
	if o.Existing {
		return base, base.retry(ctx, func() error { return findTable(ctx, db, table) })
	}
	return base, g.createTable(ctx, table)
}

// findTable returns an error if the table does not exist.
func findTable(ctx context.Context, db *sql.DB, table string) error {
	var n int
	err := db.QueryRowContext(ctx, "select count(*) from sqlite_master where type = 'table' and name = ?", table).Scan(&n)
	if err == nil && n == 0 {
		err = errNoTable(table)
	}
	return err
}

// createTable creates the table if it does not exist.
//
// Column rev precedes v, so that a comparison of revisions does not read a
// large value. The primary key is a separate index: without v, its pages hold
// more keys.
func (g *groupWriter) createTable(ctx context.Context, table string) error {
	if err := g.beginTransaction(ctx); err != nil {
		return err
	}
	_, err := g.conn.ExecContext(ctx, `create table if not exists "`+table+
		`" (k blob not null primary key, rev blob not null, v blob not null)`)
	if err == nil {
		_, err = g.conn.ExecContext(ctx, "commit")
	}
	if err != nil {
		g.rollBack()
	}
	return err
}

// setupSQLite sets up a connection for writes. SQLite reports no error if it does
// not apply a pragma, so that setupSQLite reads back what durability depends on.
//
// The busy timeout is short because SQLite ignores contexts while it waits for
// a lock; database.retry waits for longer. On macOS, only a full fsync survives
// a loss of power. A log of writes that has become longer than a value at times
// needs is cut when its content has been moved to the file.
func setupSQLite(ctx context.Context, conn *sql.Conn) error {
	for _, pragma := range []string{"busy_timeout = 10", "synchronous = full", "fullfsync = 1", "checkpoint_fullfsync = 1",
		"journal_size_limit = 16777216", "wal_autocheckpoint = 1000"} {
		if _, err := conn.ExecContext(ctx, "pragma "+pragma); err != nil {
			return err
		}
	}
	var mode, synchronous string
	err := errors.Join(
		conn.QueryRowContext(ctx, "pragma journal_mode").Scan(&mode),
		conn.QueryRowContext(ctx, "pragma synchronous").Scan(&synchronous))
	switch {
	case err != nil:
		return err
	case synchronous != "2":
		return fmt.Errorf("%w: pragma synchronous is %s, not 2", store.ErrInvalid, synchronous)
	case mode == "off" || mode == "memory":
		return fmt.Errorf("%w: pragma journal_mode is %s: a crash damages the database", store.ErrInvalid, mode)
	}
	return nil
}

// databaseFile is the file of a SQLite database.
type databaseFile struct {
	path string // without links: processes may open the file under different names
	info os.FileInfo
}

// fileOf returns the file behind a pool.
func fileOf(ctx context.Context, db *sql.DB) (databaseFile, error) {
	var path string
	err := db.QueryRowContext(ctx, "select file from pragma_database_list where name = 'main'").Scan(&path)
	if err != nil {
		return databaseFile{}, err
	}
	if path == "" {
		return databaseFile{}, fmt.Errorf("%w: the database is not in a file", store.ErrInvalid)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return databaseFile{}, err
	}
	info, err := os.Stat(path)
	return databaseFile{path, info}, err
}

var errFileGone = errors.New("the file of the database was removed or replaced")

// check returns an error if the path does not name the file any more. SQLite
// itself goes on with a file that nobody else finds.
func (f databaseFile) check() error {
	info, err := os.Stat(f.path)
	if err != nil || !os.SameFile(info, f.info) {
		return errFileGone
	}
	return nil
}

// sqliteCode returns the primary result code of an error, or "".
func sqliteCode(err error) string {
	var e interface{ Code() int }
	switch {
	case errors.Is(err, errFileGone):
		return sqliteNoFile
	case !errors.As(err, &e):
		return ""
	case e.Code()&0xff == 1 && strings.Contains(err.Error(), sqliteNoTable):
		return sqliteNoTable
	}
	return strconv.Itoa(e.Code() & 0xff)
}
