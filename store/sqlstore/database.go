package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
)

// database is what a store knows of the database behind its pool.
type database struct {
	statements
	name       string // of the dialect, such as "postgres"
	durability store.Durability
	maxValue   int    // maximum size of a value in bytes
	begin      string // begins a transaction that writes
	prepares   bool   // reads are prepared: their texts take the driver longer
	writer     writer

	// batch returns the statement that makes several writes; nil if they need a
	// transaction. It may be nil.
	batch func(writes []store.Write, revs []store.Revision) *batchStatement
	// setup sets up a connection for writes. It may be nil.
	setup func(ctx context.Context, conn *sql.Conn) error
	// getInTx is the text of get in a transaction of the program. It reads the
	// newest row, even if the transaction otherwise sees an older one.
	getInTx string
	// check returns an error if the connections no longer lead to the database.
	// It may be nil.
	check func() error
	// code returns the code of an error with which the database has answered, or "".
	code func(err error) string
	// refuses reports whether such an answer is a definite one: the database did
	// not make a write or a commit. Any other error is an unknown outcome.
	refuses func(code string) bool
	answers answers
}

// answers are the codes of definite answers.
type answers struct {
	retryable []string // the statement can be retried at once, for example after a deadlock
	lasting   []string // until somebody changes the database or the program
	tooLarge  []string // the value is too large
	exists    []string // the key of an insert exists
	// batchRefused says that a condition of a batchStatement did not hold. A
	// transaction then finds out which one.
	batchRefused []string
	aborted      []string // an earlier error has ended the transaction
}

// is reports whether err is an answer with one of the codes.
func (d *database) is(err error, codes []string) bool { return slices.Contains(codes, d.code(err)) }

// refused reports whether err means that a write or a commit was not made.
func (d *database) refused(err error) bool { return d.refuses(d.code(err)) }

// batchStatement makes several writes, or none. If conditional is not "", it
// affects no row if the condition of that key does not hold. It fails if another
// does not.
type batchStatement struct {
	text        string
	args        []any
	conditional string // the key
}

// statements are the SQL of a store. Keys, values and revisions are []byte,
// never nil. The database evaluates the condition of a write within the
// statement; the number of affected rows tells whether it held.
type statements struct {
	get      string // (k): v, rev
	revision string // (k): rev
	getFew   string // (fewKeys times k): k, v, rev of those that exist
	getMany  string // (manyKeys times k): the same
	list     string // (from, to, limit): k, v, rev with from <= k < to by bytes, ordered by k
	listKeys string // (from, to, limit): k, as list
	upsert   string // (k, v, rev): Always
	insert   string // (k, v, rev): IfAbsent; affects one row, or none, or fails if the key exists
	update   string // (v, rev, k, old): IfRevision; affects one row, or none
	remove   string // (k): Always
	removeIf string // (k, old): IfRevision; affects one row, or none
}

// newStatements returns the statements for a quoted table name. The two clauses
// complete an insert of a key that exists: one replaces the row, one keeps it,
// or is "" if the insert is to fail.
func newStatements(table, replaceClause, keepClause string) statements {
	insert := "insert into " + table + " (k, v, rev) values (?, ?, ?) "
	return statements{
		get:      "select v, rev from " + table + " where k = ?",
		revision: "select rev from " + table + " where k = ?",
		getFew:   "select k, v, rev from " + table + " where k in (?" + strings.Repeat(", ?", fewKeys-1) + ")",
		getMany:  "select k, v, rev from " + table + " where k in (?" + strings.Repeat(", ?", manyKeys-1) + ")",
		list:     "select k, v, rev from " + table + " where k >= ? and k < ? order by k limit ?",
		listKeys: "select k from " + table + " where k >= ? and k < ? order by k limit ?",
		upsert:   insert + replaceClause,
		insert:   insert + keepClause,
		update:   "update " + table + " set v = ?, rev = ? where k = ? and rev = ?",
		remove:   "delete from " + table + " where k = ?",
		removeIf: "delete from " + table + " where k = ? and rev = ?",
	}
}

// keyArgs returns keys as arguments of a statement.
func keyArgs(keys []string) []any {
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = []byte(key)
	}
	return args
}

// The clauses of SQLite and PostgreSQL for newStatements.
const (
	onConflictReplace = "on conflict (k) do update set v = excluded.v, rev = excluded.rev"
	onConflictKeep    = "on conflict (k) do nothing"
)

// numberParameters replaces each ? by $1, $2 and so on.
func (s *statements) numberParameters() {
	for _, text := range []*string{
		&s.get, &s.revision, &s.getFew, &s.getMany, &s.list, &s.listKeys, &s.upsert, &s.insert, &s.update, &s.remove,
		&s.removeIf,
	} {
		for n := 1; strings.Contains(*text, "?"); n++ {
			*text = strings.Replace(*text, "?", "$"+strconv.Itoa(n), 1)
		}
	}
}

// forWrite returns the statement and the arguments of a write, and whether the
// write has a condition, which did not hold if no row is affected.
func (s *statements) forWrite(w store.Write, rev store.Revision) (text string, args []any, conditional bool) {
	value := w.Value
	if value == nil {
		value = []byte{} // nil is NULL
	}
	oldRev, ifRevision := w.Cond.Revision()
	whole := []byte(w.Key + string(rev) + string(oldRev)) // one allocation for three texts
	key, rest := whole[:len(w.Key)], whole[len(w.Key):]
	next, old := rest[:len(rev)], rest[len(rev):]
	switch {
	case w.Delete && ifRevision:
		return s.removeIf, []any{key, old}, true
	case w.Delete:
		return s.remove, []any{key}, false
	case ifRevision:
		return s.update, []any{value, next, key, old}, true
	case w.Cond.Absent():
		return s.insert, []any{key, value, next}, true
	}
	return s.upsert, []any{key, value, next}, false
}

// execer is a connection that executes statements.
type execer interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// makeWrite makes one write, and reports whether it has changed a row. It returns
// store.ErrConflict if the condition did not hold.
func (d *database) makeWrite(
	ctx context.Context, conn execer, w store.Write, rev store.Revision,
) (made bool, err error) {
	text, args, conditional := d.forWrite(w, rev)
	result, err := conn.ExecContext(ctx, text, args...)
	if err != nil {
		if d.is(err, d.answers.exists) {
			err = store.ErrConflict
		}
		return false, err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 && conditional {
		err = store.ErrConflict
	}
	return n > 0, err
}

// makeWrites makes writes in the order of their keys.
func (d *database) makeWrites(ctx context.Context, conn execer, writes []store.Write, revs []store.Revision) error {
	for _, i := range keyOrder(writes) {
		w := writes[i]
		made, err := d.makeWrite(ctx, conn, w, revs[i])
		if err == nil && !made && w.Delete {
			// A delete locks only a row that exists. If it locked none, another batch
			// could put the key and come both before and after this batch.
			if _, err = d.makeWrite(ctx, conn, store.Write{Key: w.Key}, store.NewRevision()); err == nil {
				_, err = d.makeWrite(ctx, conn, w, "")
			}
		}
		if err != nil {
			return writeError{w.Key, err}
		}
	}
	return nil
}

// keyOrder returns the indexes of writes in the order of their keys, in which all
// batches lock them.
func keyOrder(writes []store.Write) []int {
	order := make([]int, len(writes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(writes[a].Key, writes[b].Key) })
	return order
}

// checkWrites returns the error of the first write that cannot be made.
func (d *database) checkWrites(writes []store.Write) error {
	if key, err := store.CheckWrites(writes); err != nil {
		return writeError{key, err}
	}
	for _, w := range writes {
		if len(w.Value) > d.maxValue {
			return writeError{w.Key, fmt.Errorf("%w: the value has %d bytes, more than %d",
				store.ErrTooLarge, len(w.Value), d.maxValue)}
		}
	}
	return nil
}

// writeError is the error of one of several writes. Its text does not contain
// the key.
type writeError struct {
	key string
	error
}

func (e writeError) Unwrap() error { return e.error }

// classify adds store.ErrUnknownOutcome to the error of a write that may have
// been made.
func (d *database) classify(err error) error {
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, driver.ErrBadConn) || d.refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// classifyCommit is classify for a commit. A driver may return ErrBadConn even if
// the connection broke after it sent the commit, as pgx did before 5.13.0.
func (d *database) classifyCommit(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("%w: %v", store.ErrUnknownOutcome, err)
	}
	return d.classify(err)
}

// retry calls f until it succeeds or returns an error that is not retryable.
func (d *database) retry(ctx context.Context, f func() error) error {
	delay := backoff.Backoff{Min: 500 * time.Microsecond, Max: 10 * time.Millisecond}
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !d.is(err, d.answers.retryable) {
			return err
		}
		if delay.Wait(ctx) != nil {
			return err
		}
	}
}

// rollBack ends the transaction of a connection, even if the context of the
// caller has ended. A connection that cannot roll back is closed.
func rollBack(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		discard(conn)
	}
}

// discard closes a connection instead of returning it to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
