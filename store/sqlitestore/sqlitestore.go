// Package sqlitestore opens stores on SQLite databases with the driver
// modernc.org/sqlite, which needs no cgo.
//
//	s, err := sqlitestore.Open(ctx, "state.db", nil)
//
// A program that already has a driver for SQLite, with which this one may not
// get along, gives its pool to [sqlstore.New].
package sqlitestore

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

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
)

// Options are the settings of [Open].
type Options struct {
	// Table is the name of the table, as in [sqlstore.Options].
	Table string
	// Existing opens what is there and creates nothing. If the file or the table
	// is missing, the error wraps fs.ErrNotExist. It is enough that the user may
	// read, as long as the program only reads: see [store.ReadOnly].
	Existing bool
}

// Open opens a store in a file, and creates the file, readable only by its
// owner, if it does not exist and [Options.Existing] is false. Options may be
// nil. What [sqlstore.SQLite] says of the file holds.
func Open(ctx context.Context, path string, opts *Options) (*sqlstore.Store, error) {
	own := sqlstore.Options{CloseDB: true}
	if opts != nil {
		own.Table, own.Existing = opts.Table, opts.Existing
	}
	db, err := openPool(path, own.Existing)
	if err != nil {
		return nil, &store.Error{Store: "sqlite", Op: "open", Err: err}
	}
	return sqlstore.New(ctx, db, sqlstore.SQLite(), &own)
}

func openPool(path string, existing bool) (*sql.DB, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("%w: want the path of a file", store.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	parameters := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(10)"}}
	if existing {
		_, err = os.Stat(path)
	} else {
		err = createFile(path)
		parameters.Add("_pragma", "journal_mode(wal)") // which the file keeps
	}
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: parameters.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	n := max(4, runtime.GOMAXPROCS(0)) + 1 // one writes
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
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
