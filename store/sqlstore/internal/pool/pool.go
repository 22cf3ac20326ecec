// Package pool opens pools of connections to servers, for stores that own them.
package pool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/agentstate/state/store/sqlstore"
)

// maxConns is small enough that many processes can share the server.
const maxConns = 16

// OpenStore opens a store on a pool of its own, which keeps idle connections
// for a minute.
func OpenStore(
	ctx context.Context, c driver.Connector, d sqlstore.Dialect, opts *sqlstore.Options,
) (*sqlstore.Store, error) {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(time.Minute)
	own := sqlstore.Options{CloseDB: true}
	if opts != nil {
		own.Table, own.Existing = opts.Table, opts.Existing
	}
	return sqlstore.New(ctx, db, d, &own)
}
