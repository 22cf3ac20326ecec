package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/store"
)

// Postgres is the dialect of PostgreSQL. The errors of the driver must have a
// method SQLState() string, as those of github.com/jackc/pgx and
// github.com/lib/pq have. The pool must connect to a server that accepts
// writes: the reads of a standby may be stale.
//
// A program that shares its pool with the store needs pgx 5.13.0 or later, as
// this module requires it. Earlier ones report a statement whose answer was lost
// as one that was not sent: each one in the simple protocol, and in all other
// modes each one without arguments. For such an error database/sql executes a
// statement outside of a transaction again, and returns nil: an insert of the
// program is made twice. The store's own writes are safe from that: it holds a
// connection for each, on which database/sql repeats nothing, takes a commit
// with such an error for one with an unknown outcome, and so it takes a condition
// that does not hold after it.
func Postgres() Dialect { return Dialect{"postgres", inspectPostgres} }

func inspectPostgres(ctx context.Context, db *sql.DB, o Options) (*database, error) {
	durability, err := readPostgresSettings(ctx, db)
	if err != nil {
		return nil, err
	}
	table := `"` + o.Table + `"`
	if err := setupPostgres(ctx, db, table, o.Existing); err != nil {
		return nil, err
	}
	base := &database{
		statements: newStatements(table, onConflictReplace, onConflictKeep),
		durability: durability,
		maxValue:   1<<30 - 1<<16, // a message is smaller than 1 GiB
		begin:      "begin",
		code:       sqlState,
		refuses:    refusesPostgres,
		answers: answers{
			retryable: []string{"40001", "40P01"},
			// A server that is read-only is not meant: it may be one that a failover
			// has replaced.
			lasting: []string{
				"28000", "28P01", "42501", // wrong user, wrong password, no permission
				"3D000", "3F000", "42P01", "42703", // no such database, schema, table, column
			},
			tooLarge:     []string{"54000"},
			exists:       []string{"23505"},
			batchRefused: []string{"23505", "22012"}, // 22012: division by zero
			aborted:      []string{"25P02"},
		},
	}
	base.numberParameters()
	base.getInTx = base.get
	base.batch = func(writes []store.Write, revs []store.Revision) *batchStatement {
		return postgresBatch(table, writes, revs)
	}
	base.writer = &serverWriter{database: base, db: db}
	return base, nil
}

// postgresBatch returns a statement that replaces rows under conditions, inserts
// rows, and deletes rows, which takes one round trip; a transaction takes one
// for each write and two more. The rows that it replaces are locked first: if a
// condition does not hold, it does nothing else. If a row to be deleted is
// missing, or has another revision, it fails with a division by zero. Thus all
// rows of a statement that succeeds were locked by it, as in a transaction.
func postgresBatch(table string, writes []store.Write, revs []store.Revision) *batchStatement {
	b := &batchStatement{}
	var updates, rows, upserts, deletes []string
	parameter := func(value []byte) string {
		b.args = append(b.args, value)
		return "$" + strconv.Itoa(len(b.args)) + "::bytea"
	}
	for _, i := range keyOrder(writes) {
		w := writes[i]
		old, ifRevision := w.Cond.Revision()
		key := parameter([]byte(w.Key))
		switch {
		case w.Delete && ifRevision:
			deletes = append(deletes, "(k = "+key+" and rev = "+parameter([]byte(old))+")")
		case w.Delete:
			deletes = append(deletes, "k = "+key)
		case ifRevision:
			updates = append(updates, "update "+table+" set v = "+parameter(append([]byte{}, w.Value...))+
				", rev = "+parameter([]byte(revs[i]))+" where k = "+key+" and rev = "+parameter([]byte(old)))
			b.conditional = w.Key
		case w.Cond.Absent():
			rows = append(rows, "("+key+", "+parameter(append([]byte{}, w.Value...))+", "+parameter([]byte(revs[i]))+")")
		default:
			upserts = append(upserts, "("+key+", "+parameter(append([]byte{}, w.Value...))+", "+parameter([]byte(revs[i]))+")")
		}
	}
	if len(updates) > 1 || len(b.args) > maxPostgresParameters {
		return nil // a transaction tells which condition does not hold
	}
	// The condition of a step is that those before it were made.
	var with []string
	where := "true"
	if len(updates) > 0 {
		with = append(with, "updated as ("+updates[0]+" returning 1)")
		where = "exists (select from updated)"
	}
	if len(rows) > 0 {
		with = append(with, "inserted as (insert into "+table+" (k, v, rev) select * from (values "+
			strings.Join(rows, ", ")+") as added where "+where+" returning 1)")
		where = "(select count(*) from inserted) = " + strconv.Itoa(len(rows))
	}
	if len(upserts) > 0 {
		with = append(with, "upserted as (insert into "+table+" (k, v, rev) select * from (values "+
			strings.Join(upserts, ", ")+") as put where "+where+" "+onConflictReplace+" returning 1)")
		where = "(select count(*) from upserted) = " + strconv.Itoa(len(upserts))
	}
	made := "select 1 where " + where
	if len(deletes) > 0 {
		with = append(with, "deleted as (delete from "+table+" where ("+strings.Join(deletes, " or ")+
			") and "+where+" returning 1)")
		made += " and 1 / (select (count(*) = " + strconv.Itoa(len(deletes)) + ")::int from deleted) = 1"
	}
	b.text = "with " + strings.Join(with, ", ") + " " + made
	return b
}

// maxPostgresParameters is the number of parameters up to which a batch is made
// in one statement. The protocol allows 65535.
const maxPostgresParameters = 2000

// readPostgresSettings returns the durability of an acknowledged commit. It fails
// on a server that takes no writes.
func readPostgresSettings(ctx context.Context, db *sql.DB) (store.Durability, error) {
	var readOnly, fsync, commit, standbys string
	err := db.QueryRowContext(ctx, `select current_setting('transaction_read_only'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`).Scan(&readOnly, &fsync, &commit, &standbys)
	if err != nil {
		return 0, err
	}
	if readOnly == "on" {
		return 0, fmt.Errorf("%w: the server is read only: the pool must connect to the primary, for example with target_session_attrs=read-write", store.ErrInvalid)
	}
	return postgresDurability(fsync, commit, standbys), nil
}

// postgresDurability returns the durability of a commit that a server with these
// settings has acknowledged.
func postgresDurability(fsync, commit, standbys string) store.Durability {
	switch {
	case fsync == "off" || commit == "off":
		return store.DurabilityServer
	case standbys != "" && (commit == "on" || commit == "remote_apply"):
		return store.DurabilityFailover
	}
	return store.DurabilityPower
}

// setupPostgres creates the table, or fails if a table of that name has other
// columns. It looks first, because creating a table needs a privilege even if
// the table exists.
func setupPostgres(ctx context.Context, db *sql.DB, table string, existing bool) error {
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
		case errors.Is(err, sql.ErrNoRows) && existing:
			return errNoTable(table)
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
		if err != nil && !slices.Contains([]string{"23505", "42P07", "42710"}, sqlState(err)) {
			return err
		}
	}
}

// refusesPostgres reports whether a code means that a statement was not made. The
// server aborts the transaction after an ERROR. After a FATAL or a PANIC, which
// end the connection, the commit may have been made; and a pooler between
// client and server may report a lost connection as an ERROR. So only the
// classes count whose codes are always an ERROR.
func refusesPostgres(state string) bool {
	if len(state) != 5 || state == "40003" || state == "25P03" {
		return false
	}
	return state == "57014" || strings.Contains(" 0A 21 22 23 25 26 28 2B 34 3D 3F 40 42 44 54 55 P0 ", " "+state[:2]+" ")
}

// sqlState returns the code of an answer of the server, or "".
func sqlState(err error) string {
	var answer interface{ SQLState() string }
	if errors.As(err, &answer) {
		return answer.SQLState()
	}
	return ""
}
