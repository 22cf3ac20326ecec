package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"

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
	err = s.retry(ctx, func() (err error) {
		for range maxBroken {
			if err = s.transact(ctx, writes, revs, fn); !errors.Is(err, driver.ErrBadConn) {
				break
			}
		}
		return err
	})
	if err != nil {
		return nil, s.newError("transact", "", withCause(ctx, err))
	}
	return revs, nil
}

func (s *Store) transact(ctx context.Context, writes []store.Write, revs []store.Revision, fn func(*sql.Tx) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.setup != nil {
		if err := s.setup(ctx, conn); err != nil {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after a commit
	if err := s.makeWrites(ctx, tx, writes, revs); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if s.probe != "" {
		if _, err := tx.ExecContext(ctx, s.probe); err != nil {
			return err
		}
	}
	err = s.classifyCommit(tx.Commit())
	if err == nil && s.check != nil {
		if err = s.check(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
		}
	}
	return err
}

// In implements [store.Transactor]. On SQLite, the transaction should be one
// that writes from its beginning ("begin immediate"): one that has read before
// cannot write after others have.
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
			err = w.tx.QueryRowContext(ctx, w.s.getInTx, []byte(key)).Scan(&e.Value, &e.Revision)
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
