package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// newPool returns a connection pool for a server. It is small enough that many
// processes can share the server, and keeps idle connections for a minute.
func newPool(c driver.Connector) *sql.DB {
	const maxConns = 16
	db := sql.OpenDB(connector{c})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(time.Minute)
	return db
}

// newSessions returns a pool of connections that are used once.
func newSessions(c driver.Connector) *sql.DB {
	db := sql.OpenDB(connector{c})
	db.SetMaxIdleConns(-1)
	return db
}

// connector opens connections and repairs two kinds of errors. The error of pgx
// contains its configuration, including the password. A network timeout that is
// derived from the deadline of the context can expire a moment before the
// context, and its error does not match context.DeadlineExceeded.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		err = fmt.Errorf("cannot connect: %w", failed.Unwrap())
	}
	if deadline, ok := ctx.Deadline(); err != nil && ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return conn, err
}
