package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentstate/state/store"
)

// newPostgres opens a store in a table of a PostgreSQL server.
func newPostgres(ctx context.Context, dsn, table string) (*Store, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The error contains the dsn, which may contain a password.
		return nil, fmt.Errorf("%w: the dsn is not a URL of a PostgreSQL server", store.ErrInvalid)
	}
	// A standby accepts no writes, and its reads may be stale.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		// In this mode the driver reports a lost answer as a statement not
		// sent.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	connector := stdlib.GetConnector(*config)
	db := newPool(connector)
	durability, err := postgresDurability(ctx, db)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	table = pgx.Identifier{table}.Sanitize()
	d := dialect{
		statements: newStatements(table, onConflictReplace, onConflictKeep),
		name:       "postgres",
		durability: durability,
		maxValue:   1<<30 - 1<<16, // a message is smaller than 1 GiB
		begin:      "begin",
		setup:      func(ctx context.Context, db *sql.DB) error { return setupPostgres(ctx, db, table) },
		refused:    postgresRefused,
		retryable:  func(err error) bool { return hasPostgresCode(err, "40001", "40P01") },
		tooLarge:   func(err error) bool { return hasPostgresCode(err, "54000") },
	}
	d.numberParameters()
	s, err := newStore(ctx, db, d)
	if err != nil {
		return nil, err
	}
	s.presence = newPostgresPresence(s.db, newSessions(connector), table)
	return s, nil
}

// newPostgresPresence returns the presence of a table, whose name is quoted. A
// lock is identified by the hash of a name and the number of the table. That
// pg_locks shows a lock costs more than trying it, but does not keep others
// from taking it.
func newPostgresPresence(db, sessions *sql.DB, table string) presence {
	const lock = `($1::int8 # to_regclass($2)::oid::int8)`
	return &sessionPresence{
		db:       db,
		sessions: sessions,
		sessionStatements: sessionStatements{
			limit:  `select set_config(name, '20s', false) from pg_settings where name = 'idle_session_timeout'`,
			lock:   `select pg_try_advisory_lock(` + lock + `)`,
			unlock: `select pg_advisory_unlock(` + lock + `)`,
			isTaken: `select exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
				and database = (select oid from pg_database where datname = current_database())
				and ((classid::int8 << 32) | objid::int8) = ` + lock + `)`,
			session: `select pg_backend_pid()`,
		},
		args: func(name string) []any {
			hash := newNameHash(table, name)
			return []any{int64(binary.BigEndian.Uint64(hash[:])), table}
		},
		isDirect: func(driverConn any, session int64) bool {
			conn, ok := driverConn.(*stdlib.Conn)
			return ok && int64(conn.Conn().PgConn().PID()) == session
		},
	}
}

// postgresDurability returns the durability of an acknowledged commit.
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

// setupPostgres creates the table, or fails if a table of that name has other
// columns. It looks first, because creating a table needs a privilege even if
// the table exists.
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
			return fmt.Errorf("%w: a table of this name has other columns: %s", store.ErrInvalid, found)
		case persistence != "p":
			return fmt.Errorf("%w: the table is unlogged: a crash empties it", store.ErrInvalid)
		default:
			return nil
		}
		// These codes mean that another session created the table at the same
		// time.
		_, err = db.ExecContext(ctx, fmt.Sprintf(create, table))
		if err != nil && !hasPostgresCode(err, "23505", "42P07", "42710") {
			return err
		}
	}
}

// postgresRefused reports whether err means that a statement was not made. The
// server aborts the transaction after an ERROR. An error that is too late for
// that is a PANIC. FATAL and PANIC end the connection. A pooler between client
// and server may report a lost connection as an ERROR; its codes are excluded.
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

// hasPostgresCode reports whether err is an answer of the server with one of
// the codes.
func hasPostgresCode(err error, codes ...string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && slices.Contains(codes, answer.Code)
}
