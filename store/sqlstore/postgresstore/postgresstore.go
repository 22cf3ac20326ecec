// Package postgresstore opens stores on PostgreSQL servers with the driver
// github.com/jackc/pgx.
package postgresstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/internal/pool"
)

// Open opens a store on a server. The dsn is a URL such as
// "postgres://user:password@host:port/database", or has the key=value format of
// PostgreSQL. Several hosts are tried in order, for one that takes writes. Options
// may be nil.
//
// Behind a pooler that does not know the parameters of the store, such as
// PgBouncer, statements are not prepared, which takes more time: the parameter
// default_query_exec_mode=cache_statement prepares them, and needs PgBouncer 1.21
// with max_prepared_statements.
//
// [sqlstore.Store.Close] closes the connections.
func Open(ctx context.Context, dsn string, opts *sqlstore.Options) (*sqlstore.Store, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The error contains the dsn, which may contain a password.
		err = fmt.Errorf("%w: the dsn is not a URL of a PostgreSQL server", store.ErrInvalid)
		return nil, &store.Error{Store: "postgres", Op: "open", Err: err}
	}
	// A standby accepts no writes, and its reads may be stale.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		// This mode writes each value into the text of its statement, in
		// hexadecimal: twice the bytes.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return pool.OpenStore(ctx, newConnector(dsn, config), sqlstore.Postgres(), opts)
}
