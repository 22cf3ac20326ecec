package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/agentstate/state/store"
)

// Transact implements [store.Transactor]. On SQLite, it is not made together
// with other writes that wait.
func (s *Store) Transact(ctx context.Context, writes []store.Write, fn func(*sql.Tx) error) ([]store.Revision, error) {
	revs, err := s.revisions(writes)
	if err != nil {
		return nil, s.newError("transact", "", err)
	}
	ctx, call, err := s.beginCall(ctx)
	if err != nil {
		return nil, s.newError("transact", "", err)
	}
	defer s.endCall(call)
	var own error // the program's, and final
	err = s.retry(ctx, func() (err error) {
		for range maxBroken {
			if own, err = s.transact(ctx, writes, revs, fn); !errors.Is(err, driver.ErrBadConn) {
				break
			}
		}
		return err
	})
	if err = cmp.Or(own, err); err != nil {
		return nil, s.newError("transact", "", withCause(ctx, err))
	}
	return revs, nil
}

// transact returns the error of fn as own, unless the database has ended the
// transaction: then fn may be called again.
func (s *Store) transact(
	ctx context.Context, writes []store.Write, revs []store.Revision, fn func(*sql.Tx) error,
) (own, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := s.beginOn(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	end := tx.Rollback
	defer func() {
		ended := await(ctx, func() error {
			defer conn.Close()
			return end()
		})
		if own == nil && err == nil { // else it was rolled back
			err = s.checkCommit(ended)
		}
	}()
	if err := s.makeWrites(ctx, tx, writes, revs); err != nil {
		return nil, err
	}
	own = fn(tx)
	err = s.findWrites(ctx, tx, writes, revs)
	switch {
	case err == nil && own != nil:
		return own, nil
	case err != nil && s.is(own, s.answers.retryable):
		return nil, own
	case errors.Is(err, errEnded) && !errors.Is(err, store.ErrUnknownOutcome):
		return cmp.Or(own, err), nil
	case err != nil && own != nil: // the connection broke, or ctx has ended
		return nil, fmt.Errorf("%w (the function of the program: %v)", err, own)
	case err != nil:
		return nil, err
	}
	end = tx.Commit
	return nil, nil
}

// beginOn begins a transaction that writes.
func (s *Store) beginOn(ctx context.Context, conn *sql.Conn) (*sql.Tx, error) {
	if s.setup != nil {
		if err := s.setup(ctx, conn); err != nil {
			return nil, err
		}
	}
	return conn.BeginTx(ctx, nil)
}

// checkCommit returns the error of a transaction whose commit has returned err.
func (s *Store) checkCommit(err error) error {
	if err = s.classifyCommit(err); err == nil && s.check != nil {
		if err = s.check(); err != nil {
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
		}
	}
	return err
}

// await returns what f returns, or the error of ctx if that ends first. The
// methods of a driver's transaction have no context: over a connection that has
// gone dark, they wait until the operating system gives it up.
func await(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errEnded is the error of a function that has left no transaction to commit.
var errEnded = fmt.Errorf("%w: the function of the program has ended the transaction,"+
	" or has gone on after an error with which the database has rolled it back", store.ErrInvalid)

// findWrites returns an error if writes are not in the transaction any more after
// the function of the program: errEnded if that is its own doing. A commit would
// not say so on each database.
func (s *Store) findWrites(ctx context.Context, tx *sql.Tx, writes []store.Write, revs []store.Revision) error {
	text, args, want := "select ''", []any(nil), store.Revision("")
	if i := slices.IndexFunc(writes, func(w store.Write) bool { return !w.Delete }); i >= 0 {
		text, args, want = s.revision, []any{[]byte(writes[i].Key)}, revs[i]
	}
	find := func(row *sql.Row) (found bool, err error) {
		var rev store.Revision
		if err = row.Scan(&rev); errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return rev == want, err
	}
	found, err := find(tx.QueryRowContext(ctx, text, args...))
	switch {
	case err == nil && found:
		return nil
	case err == nil || s.is(err, s.answers.aborted):
		return errors.Join(errEnded, err)
	case !errors.Is(err, sql.ErrTxDone) || ctx.Err() != nil:
		return err
	}
	if found, err = find(s.db.QueryRowContext(ctx, text, args...)); err != nil || found {
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, errors.Join(errEnded, err))
	}
	return errEnded
}

// In implements [store.Transactor]. On SQLite, the transaction should be one
// that writes from its beginning ("begin immediate"): one that has read before
// cannot write after others have. The methods return [store.ErrInvalid] if the
// transaction is one of another pool: with the same URL, it may be in another
// database.
func (s *Store) In(tx *sql.Tx) store.Store {
	w := &within{s: s, tx: tx}
	// Only a prepared statement would be told of another pool.
	if pool := reflect.ValueOf(tx).Elem().FieldByName("db"); pool.IsValid() &&
		pool.Pointer() != reflect.ValueOf(s.db).Pointer() {
		w.err = fmt.Errorf("%w: the transaction is one of another pool; open the store with sqlstore.New on that pool",
			store.ErrInvalid)
	}
	return w
}

// within is a store within a transaction.
type within struct {
	s   *Store
	tx  *sql.Tx
	err error // of all calls
}

func (w *within) Durability() store.Durability { return w.s.Durability() }

// Close does nothing: the transaction is the program's.
func (w *within) Close() error { return nil }

func (w *within) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		err := cmp.Or(w.err, store.CheckKey(key))
		if err == nil {
			entries[i], err = w.s.getEntry(ctx, w.tx, &w.s.reads.getInTx, key)
		}
		if err != nil {
			return nil, w.s.newError("get", key, withCause(ctx, err))
		}
	}
	return entries, nil
}

func (w *within) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	revs, err := w.s.revisions(writes)
	if err = cmp.Or(w.err, err); err == nil {
		err = w.makeWrites(ctx, writes, revs)
	}
	if err != nil {
		return nil, w.s.newError("write", onlyWrite(writes), withCause(ctx, err))
	}
	return revs, nil
}

// makeWrites makes all writes or none.
func (w *within) makeWrites(ctx context.Context, writes []store.Write, revs []store.Revision) error {
	if _, err := w.tx.ExecContext(ctx, "savepoint state_writes"); err != nil {
		return err
	}
	err := w.s.makeWrites(ctx, w.tx, writes, revs)
	if err != nil {
		if _, undo := w.tx.ExecContext(ctx, "rollback to savepoint state_writes"); undo != nil {
			return err // the transaction has ended
		}
	}
	_, release := w.tx.ExecContext(ctx, "release savepoint state_writes")
	return errors.Join(err, release)
}

func (w *within) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	if w.err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, w.s.newError("list", "", w.err)) }
	}
	return w.s.listPages(ctx, w.tx, prefix, after, values)
}
