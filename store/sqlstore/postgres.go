package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// newPostgres opens a store in a table of a PostgreSQL server.
func newPostgres(ctx context.Context, dsn, table string) (*Store, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The error would have the dsn in it, and so the password.
		return nil, fmt.Errorf("%w: the dsn is no URL of a PostgreSQL server", store.ErrInvalid)
	}
	// A standby takes no writes, and what it reads may be old.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		// There the driver takes a lost answer for a statement that was not sent.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	db := pool(stdlib.GetConnector(*config))
	durability, err := postgresDurability(ctx, db)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	t := pgx.Identifier{table}.Sanitize()
	return newStore(ctx, db, dialect{
		name:       "postgres",
		durability: durability,
		maxValue:   1<<30 - 1<<16, // a message is less than 1 GiB

		get:      `select v, rev from ` + t + ` where k = $1`,
		scan:     `select k, v, rev from ` + t + ` where k >= $1 and k < $2 order by k limit $3`,
		upsert:   `insert into ` + t + ` (k, v, rev) values ($1, $2, $3) on conflict (k) do update set v = excluded.v, rev = excluded.rev`,
		insert:   `insert into ` + t + ` (k, v, rev) values ($1, $2, $3) on conflict (k) do nothing`,
		update:   `update ` + t + ` set v = $1, rev = $2 where k = $3 and rev = $4`,
		remove:   `delete from ` + t + ` where k = $1`,
		removeIf: `delete from ` + t + ` where k = $1 and rev = $2`,
		begin:    `begin`,

		setup:    func(ctx context.Context, db *sql.DB) error { return setupPostgres(ctx, db, t) },
		refused:  postgresRefused,
		again:    func(err error) bool { return postgresCode(err, "40001", "40P01") },
		tooLarge: func(err error) bool { return postgresCode(err, "54000") },
	})
}

// postgresDurability returns what an acknowledged commit has survived.
func postgresDurability(ctx context.Context, db *sql.DB) (store.Durability, error) {
	var fsync, commit string
	err := db.QueryRowContext(ctx, `select current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&fsync, &commit)
	if err != nil {
		return 0, err
	}
	if fsync == "off" || commit == "off" {
		return store.DurabilityServer, nil
	}
	return store.DurabilityPower, nil
}

// setupPostgres makes the table, or refuses one that is there but not ours. It
// looks first, because that needs no right to make tables.
func setupPostgres(ctx context.Context, db *sql.DB, table string) error {
	const (
		columns = `select c.relpersistence::text, string_agg(a.attname || ' ' || format_type(a.atttypid, null), ', ' order by a.attname)
			from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
			where c.oid = to_regclass($1) group by c.oid`
		create = `create table if not exists %s (k bytea primary key, v bytea not null, rev bytea not null)`
	)
	for {
		var persistence, found string
		err := db.QueryRowContext(ctx, columns, table).Scan(&persistence, &found)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case found != "k bytea, rev bytea, v bytea":
			return fmt.Errorf("%w: the table is another one: %s", store.ErrInvalid, found)
		case persistence != "p":
			return fmt.Errorf("%w: the table is unlogged, and is emptied by a crash", store.ErrInvalid)
		default:
			return nil
		}
		// Two that make the same table at once get in each other's way.
		_, err = db.ExecContext(ctx, fmt.Sprintf(create, table))
		if err != nil && !postgresCode(err, "23505", "42P07", "42710") {
			return err
		}
	}
}

// postgresRefused reports whether err says that a statement was not made. The
// server aborts the transaction of an ERROR, and turns one that comes too late for
// that into a PANIC. After FATAL and PANIC, the connection is gone. A pooler in
// between may tell of a lost connection in an ERROR.
func postgresRefused(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	severity := answer.SeverityUnlocalized
	if severity == "" {
		severity = answer.Severity
	}
	return severity == "ERROR" && answer.Code != "40003" &&
		!strings.HasPrefix(answer.Code, "08") && !strings.HasPrefix(answer.Code, "57P")
}

// postgresCode reports whether err is an answer of the server with one of the
// codes.
func postgresCode(err error, codes ...string) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	return slices.Contains(codes, answer.Code)
}
