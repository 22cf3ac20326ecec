// Package sqlstore implements [store.Store] on a table of a SQL database:
// PostgreSQL, MariaDB, MySQL, or SQLite in one file.
//
// New takes a pool of connections that the program has opened, with any driver
// of package database/sql. This package imports none. The packages
// postgresstore and mysqlstore below it open a pool for a URL, and package
// sqlitestore, which is a separate module, opens a file:
//
//	s, err := postgresstore.Open(ctx, "postgres://user@host/database", nil)
//	s, err := mysqlstore.Open(ctx, "mysql://user@host/database", nil)
//	s, err := sqlitestore.Open(ctx, "state.db", nil)
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/agentstate/state/store"
)

// Options are the settings of [New].
type Options struct {
	// Table is the name of the table (default "state_entries"): up to 63
	// lower-case letters, digits and underscores, not beginning with a digit.
	Table string
	// CloseDB says that [Store.Close] closes the pool, too.
	CloseDB bool
	// Existing opens what is there and creates nothing. If the table is missing,
	// the error wraps fs.ErrNotExist. It is enough that the user may read, as
	// long as the program only reads: see [store.ReadOnly].
	Existing bool
}

// Dialect is a kind of database: [Postgres], [MySQL] or [SQLite].
type Dialect struct {
	name string
	// inspect returns the database behind a pool. It fails on a server that
	// cannot keep the guarantees of a store.
	inspect func(ctx context.Context, db *sql.DB, o Options) (*database, error)
}

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// New returns a store in a table of a database, and creates the table if it
// does not exist, unless [Options.Existing] says otherwise. Options may be nil.
// The pool stays usable for the program, and must be open until the store is
// closed.
func New(ctx context.Context, db *sql.DB, d Dialect, opts *Options) (*Store, error) {
	o := Options{Table: "state_entries"}
	if opts != nil {
		o.CloseDB, o.Existing = opts.CloseDB, opts.Existing
		if opts.Table != "" {
			o.Table = opts.Table
		}
	}
	s, err := newStore(ctx, db, d, o)
	if err != nil {
		if o.CloseDB && db != nil {
			_ = db.Close()
		}
		return nil, &store.Error{Store: d.name, Op: "open", Err: err}
	}
	return s, nil
}

// errNoTable is the error for a table that is missing although it should exist.
func errNoTable(table string) error {
	return fmt.Errorf("the table %s: %w", table, fs.ErrNotExist)
}

func newStore(ctx context.Context, db *sql.DB, d Dialect, o Options) (*Store, error) {
	switch {
	case d.inspect == nil:
		return nil, fmt.Errorf("%w: unknown dialect", store.ErrInvalid)
	case db == nil:
		return nil, fmt.Errorf("%w: the pool is nil", store.ErrInvalid)
	case !tableName.MatchString(o.Table):
		return nil, fmt.Errorf("%w: the name of the table", store.ErrInvalid)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, slowError(callTime))
	defer cancel()
	base, err := d.inspect(ctx, db, o)
	if err != nil {
		return nil, withCause(ctx, err)
	}
	base.name = d.name
	s := &Store{database: base, db: db, closeDB: o.CloseDB}
	err = s.retry(ctx, func() error { return s.prepare(ctx) })
	if err != nil {
		return nil, withCause(ctx, errors.Join(err, base.writer.close()))
	}
	s.open, s.close = context.WithCancelCause(context.Background())
	return s, nil
}
