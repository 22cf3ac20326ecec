package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
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
	defer conn.Close()
	if s.setup != nil {
		if err := s.setup(ctx, conn); err != nil {
			return nil, err
		}
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // has no effect after a commit
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
	err = s.classifyCommit(tx.Commit())
	if err == nil && s.check != nil {
		if err = s.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
		}
	}
	return nil, err
}

// errEnded is the error of a function that has left no transaction to commit.
var errEnded = fmt.Errorf("%w: the function of the program has ended the transaction,"+
	" or has gone on after an error with which the database has rolled it back", store.ErrInvalid)

// findWrites returns an error if writes are not in the transaction any more after
// the function of the program: errEnded if that is its own doing. A commit would
// not say so on each database.
func (s *Store) findWrites(ctx context.Context, tx *sql.Tx, writes []store.Write, revs []store.Revision) error {
	key, want := "", store.Revision("") // there is no such key
	if i := slices.IndexFunc(writes, func(w store.Write) bool { return !w.Delete }); i >= 0 {
		key, want = writes[i].Key, revs[i]
	}
	find := func(row *sql.Row) (found bool, err error) {
		var rev store.Revision
		if err = row.Scan(&rev); errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return rev == want, err
	}
	found, err := find(tx.QueryRowContext(ctx, s.revision, []byte(key)))
	switch {
	case err == nil && found:
		return nil
	case err == nil || s.is(err, s.answers.aborted):
		return errors.Join(errEnded, err)
	case !errors.Is(err, sql.ErrTxDone) || ctx.Err() != nil:
		return err
	}
	if found, err = find(s.db.QueryRowContext(ctx, s.revision, []byte(key))); err != nil || found {
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, errors.Join(errEnded, err))
	}
	return errEnded
}

// In implements [store.Transactor]. On SQLite, the transaction should be one
// that writes from its beginning ("begin immediate"): one that has read before
// cannot write after others have. The methods return [store.ErrInvalid] if the
// transaction is one of another pool: with the same URL, it may be in another
// database.
func (s *Store) In(tx *sql.Tx) store.Store { return &within{s, tx} }

// within is a store within a transaction.
type within struct {
	s  *Store
	tx *sql.Tx
}

func (w *within) Durability() store.Durability { return w.s.Durability() }

// Close does nothing: the transaction is the program's.
func (w *within) Close() error { return nil }

func (w *within) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		e := store.Entry{Key: key}
		err := store.CheckKey(key)
		if err == nil {
			err = w.tx.StmtContext(ctx, w.s.reads.getInTx).QueryRowContext(ctx, []byte(key)).Scan(&e.Value, &e.Revision)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, w.s.newError("get", key, withCause(ctx, err))
		}
		entries[i] = e
	}
	return entries, nil
}

func (w *within) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	revs, err := w.s.revisions(writes)
	if err == nil {
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
	query := w.s.reads.list
	if !values {
		query = w.s.reads.listKeys
	}
	return w.s.listPages(ctx, w.tx.StmtContext(ctx, query), prefix, after, values)
}
