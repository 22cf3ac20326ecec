// Package postgresstore opens stores on PostgreSQL servers with the driver
// github.com/jackc/pgx.
package postgresstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/internal/pool"
)

// Open opens a store on a server. The dsn is a URL such as
// "postgres://user:password@host:port/database", or has the key=value format of
// PostgreSQL. Options may be nil. [sqlstore.Store.Close] closes the connections.
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
		// In this mode the driver reports a lost answer as a statement not
		// sent.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return pool.OpenStore(ctx, connector{stdlib.GetConnector(*config)}, sqlstore.Postgres(), opts)
}

// connector opens connections. The error of the driver contains its
// configuration, including the password; that of connector does not.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		err = fmt.Errorf("cannot connect: %w", failed.Unwrap())
	}
	return conn, err
}
