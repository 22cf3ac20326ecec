package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/agentstate/state/store"
)

// Store is a store in a table. It is a [store.Batcher], a [store.Lister] and a
// [store.Presence].
type Store struct {
	dialect
	db     *sql.DB
	reads  struct{ get, scan, list *sql.Stmt }
	writer writer

	presence presence

	lifetime context.Context // ends with Close
	endAll   context.CancelCauseFunc
	mu       sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed   bool
	calls    sync.WaitGroup
}

var (
	_ store.Batcher  = (*Store)(nil)
	_ store.Lister   = (*Store)(nil)
	_ store.Presence = (*Store)(nil)
)

// writer makes all writes of a call or none. An error is ErrConflict,
// ErrUnknownOutcome or the reason why no write was made. It is a writeError if
// it is about one of several writes.
type writer interface {
	write(ctx context.Context, writes []store.Write, revs []store.Revision) error
	close() error
}

// newStore sets up the table and returns a store. If it fails, it closes db.
func newStore(ctx context.Context, db *sql.DB, d dialect) (*Store, error) {
	if err := d.setup(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	s := &Store{dialect: d, db: db}
	err := s.retry(ctx, func() (err error) {
		for _, read := range []struct {
			to   **sql.Stmt
			text string
		}{{&s.reads.get, d.get}, {&s.reads.scan, d.scan}, {&s.reads.list, d.list}} {
			if *read.to, err = db.PrepareContext(ctx, read.text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	s.lifetime, s.endAll = context.WithCancelCause(context.Background())
	s.writer = &serverWriter{dialect: &s.dialect, db: db}
	return s, nil
}

// Durability implements [store.Store]. It depends on the settings that the
// server had when the store was opened.
func (s *Store) Durability() store.Durability { return s.durability }

// Close ends running calls and announcements and closes the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.endAll(store.ErrClosed)
	s.calls.Wait()
	if err := errors.Join(s.presence.close(), s.writer.close(),
		s.reads.get.Close(), s.reads.scan.Close(), s.reads.list.Close(), s.db.Close()); err != nil {
		return &store.Error{Store: s.name, Op: "close", Err: err}
	}
	return nil
}

// beginCall returns a context that ends with ctx or when the store is closed,
// and a function that the caller calls at the end of the call.
func (s *Store) beginCall(ctx context.Context) (context.Context, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, store.ErrClosed
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.lifetime, func() { cancel(store.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.calls.Done()
	}, nil
}

func (s *Store) newError(op, key string, err error) error {
	var single writeError
	if errors.As(err, &single) {
		key = single.key
	}
	if s.tooLarge(err) {
		err = fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return &store.Error{Store: s.name, Op: op, Key: key, Err: err}
}

// withCause adds the cause to an error of a call whose context has ended.
// Drivers report it in different ways.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(err, store.ErrUnknownOutcome) {
		cause = ctx.Err() // ErrClosed would mean that the write was not made
	}
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, s.newError("get", key, err)
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return store.Entry{}, s.newError("get", key, err)
	}
	defer endCall()
	e := store.Entry{Key: key}
	err = s.retry(ctx, func() error {
		return s.reads.get.QueryRowContext(ctx, []byte(key)).Scan(&e.Value, &e.Revision)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, s.newError("get", key, withCause(ctx, err))
	}
	return e, nil
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	revs, err := s.write(ctx, "put", key, []store.Write{{Key: key, Value: value, Cond: cond}})
	if err != nil {
		return "", err
	}
	return revs[0], nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string, cond store.Condition) error {
	_, err := s.write(ctx, "delete", key, []store.Write{{Key: key, Delete: true, Cond: cond}})
	return err
}

// Batch implements [store.Batcher] with a transaction.
func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return s.write(ctx, "batch", "", writes)
}

func (s *Store) write(ctx context.Context, op, key string, writes []store.Write) ([]store.Revision, error) {
	if err := s.checkWrites(writes); err != nil {
		return nil, s.newError(op, key, err)
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return nil, s.newError(op, key, err)
	}
	defer endCall()
	revs := make([]store.Revision, len(writes))
	for i, w := range writes {
		if !w.Delete {
			revs[i] = store.NewRevision()
		}
	}
	if len(writes) == 0 {
		return revs, nil
	}
	if err := s.writer.write(ctx, writes, revs); err != nil {
		return nil, s.newError(op, key, withCause(ctx, err))
	}
	return revs, nil
}
