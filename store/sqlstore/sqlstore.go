// Package sqlstore is a [store.Store] in a table of a SQL database: SQLite in one
// file, PostgreSQL, MariaDB and MySQL.
//
//	s, err := sqlstore.Open(ctx, "sqlite", "state.db", nil)
//	s, err := sqlstore.Open(ctx, "postgres", "postgres://user@host/database", nil)
//	s, err := sqlstore.Open(ctx, "mysql", "mysql://user@host/database", nil)
//
// SQLite needs no cgo, and several handles and processes of one machine may have
// the same file open. The file may not be on a network file system.
package sqlstore

import (
	"context"
	"fmt"
	"regexp"

	"github.com/agentstate/state/store"
)

// Options are the settings of [Open].
type Options struct {
	// Table is the name of the table, which is made if it is not there:
	// "state_entries" if empty. It is made of lower-case letters, digits and
	// underscores, at most 63.
	Table string
}

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open opens a store in a table of a database. The driver is "sqlite", whose dsn
// is the path of the file, "postgres" or "mysql", which is for MariaDB too; their
// dsn is a URL or what the driver takes. Options may be nil.
//
// The store is a [store.Batcher].
func Open(ctx context.Context, driver, dsn string, opts *Options) (*Store, error) {
	table := "state_entries"
	if opts != nil && opts.Table != "" {
		table = opts.Table
	}
	if !tableName.MatchString(table) {
		return nil, &store.Error{Store: driver, Op: "open", Err: fmt.Errorf("%w: the name of the table", store.ErrInvalid)}
	}
	open := map[string]func(ctx context.Context, dsn, table string) (*Store, error){
		"sqlite":   newSQLite,
		"postgres": newPostgres,
		"mysql":    newMySQL,
	}[driver]
	if open == nil {
		return nil, &store.Error{Store: driver, Op: "open", Err: fmt.Errorf("%w: the driver is none of sqlite, postgres and mysql", store.ErrInvalid)}
	}
	s, err := open(ctx, dsn, table)
	if err != nil {
		return nil, &store.Error{Store: driver, Op: "open", Err: err}
	}
	return s, nil
}
