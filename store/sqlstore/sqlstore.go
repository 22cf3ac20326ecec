// Package sqlstore implements [store.Store] on a table of a SQL database:
// SQLite in one file, PostgreSQL, MariaDB and MySQL.
//
//	s, err := sqlstore.Open(ctx, "sqlite", "state.db", nil)
//	s, err := sqlstore.Open(ctx, "postgres", "postgres://user@host/database", nil)
//	s, err := sqlstore.Open(ctx, "mysql", "mysql://user@host/database", nil)
//
// SQLite needs no cgo. Several handles and processes of one machine can have
// the same file open. The file must not be on a network file system.
package sqlstore

import (
	"context"
	"fmt"
	"regexp"

	"github.com/agentstate/state/store"
)

// Options are the settings of [Open].
type Options struct {
	// Table is the name of the table (default "state_entries"): up to 63
	// lower-case letters, digits and underscores, not beginning with a digit.
	Table string
}

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open opens a store in a table of a database, and creates the table if it does
// not exist. The driver is "sqlite", "postgres" or "mysql", which includes
// MariaDB. The dsn of "sqlite" is the path of the file; the other drivers take
// a URL or the driver's own format. Options may be nil.
//
// The store is a [store.Batcher] and a [store.Presence].
func Open(ctx context.Context, driver, dsn string, opts *Options) (*Store, error) {
	table := "state_entries"
	if opts != nil && opts.Table != "" {
		table = opts.Table
	}
	s, err := openTable(ctx, driver, dsn, table)
	if err != nil {
		return nil, &store.Error{Store: driver, Op: "open", Err: err}
	}
	return s, nil
}

func openTable(ctx context.Context, driver, dsn, table string) (*Store, error) {
	if !tableName.MatchString(table) {
		return nil, fmt.Errorf("%w: the name of the table", store.ErrInvalid)
	}
	switch driver {
	case "sqlite":
		return newSQLite(ctx, dsn, table)
	case "postgres":
		return newPostgres(ctx, dsn, table)
	case "mysql":
		return newMySQL(ctx, dsn, table)
	}
	return nil, fmt.Errorf("%w: the driver is not sqlite, postgres or mysql", store.ErrInvalid)
}
