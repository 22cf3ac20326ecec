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

// pool returns a database of a server, with few enough connections that many
// processes can share it, which are kept between calls that come in a row.
func pool(c driver.Connector) *sql.DB {
	const most = 16
	db := sql.OpenDB(connector{c})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(time.Minute)
	return db
}

// connector opens connections. The network's own clock may end the opening a
// moment before the context does, and then the error does not say why. That of
// PostgreSQL's driver holds all of its configuration, with the password.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		err = fmt.Errorf("no connection: %w", failed.Unwrap())
	}
	if deadline, ok := ctx.Deadline(); err != nil && ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return conn, err
}
