package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
)

// Store is a store in a table. It is a [store.Batcher].
type Store struct {
	dialect
	db     *sql.DB
	reads  struct{ get, scan *sql.Stmt }
	writer writer

	life   context.Context // ends with Close
	end    context.CancelCauseFunc
	mu     sync.Mutex // for closed, and so that no call begins while Close waits
	closed bool
	calls  sync.WaitGroup
}

var _ store.Batcher = (*Store)(nil)

// writer makes writes, all or none. Its error wraps store.ErrConflict,
// store.ErrUnknownOutcome or what prevented the writes; it is a keyError if it is
// about one of them.
type writer interface {
	write(ctx context.Context, writes []store.Write, revs []store.Revision) error
	close() error
}

// keyError is an error about one of several writes, whose text does not name it.
type keyError struct {
	key string
	error
}

func (e keyError) Unwrap() error { return e.error }

// newStore sets a database up. It closes the database if that fails.
func newStore(ctx context.Context, db *sql.DB, d dialect) (*Store, error) {
	if err := d.setup(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	s := &Store{dialect: d, db: db}
	err := s.retry(ctx, func() (err error) {
		if s.reads.get, err = db.PrepareContext(ctx, d.get); err == nil {
			s.reads.scan, err = db.PrepareContext(ctx, d.scan)
		}
		return err
	})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.writer = &server{dialect: &s.dialect, db: db}
	return s, nil
}

// Durability says what an acknowledged write has survived.
func (s *Store) Durability() store.Durability { return s.durability }

// Close ends the calls that are under way and closes the database.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.end(store.ErrClosed)
	s.calls.Wait()
	if err := errors.Join(s.writer.close(), s.reads.get.Close(), s.reads.scan.Close(), s.db.Close()); err != nil {
		return &store.Error{Store: s.name, Op: "close", Err: err}
	}
	return nil
}

// enter begins a call, which ends when ctx does or the store is closed. The
// returned function says that the call is over.
func (s *Store) enter(ctx context.Context) (context.Context, func(), error) {
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
	stop := context.AfterFunc(s.life, func() { cancel(store.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.calls.Done()
	}, nil
}

// fail returns the error of an operation.
func (s *Store) fail(op, key string, err error) error {
	var about keyError
	if errors.As(err, &about) {
		key = about.key
	}
	if s.tooLarge(err) {
		err = fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return &store.Error{Store: s.name, Op: op, Key: key, Err: err}
}

// ended returns the error of a call that has begun. One whose context has ended
// says why, whatever the driver made of that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(err, store.ErrUnknownOutcome) {
		cause = ctx.Err() // ErrClosed would say that it was not made
	}
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Get returns the entry of a key, or [store.ErrNotFound].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, s.fail("get", key, err)
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return store.Entry{}, s.fail("get", key, err)
	}
	defer leave()
	e := store.Entry{Key: key}
	err = s.retry(ctx, func() error {
		return s.reads.get.QueryRowContext(ctx, []byte(key)).Scan(&e.Value, &e.Revision)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, s.fail("get", key, ended(ctx, err))
	}
	return e, nil
}

// Put writes a value if the condition holds.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	revs, err := s.apply(ctx, "put", key, []store.Write{{Key: key, Value: value, Cond: cond}})
	if err != nil {
		return "", err
	}
	return revs[0], nil
}

// Delete removes a key if the condition holds.
func (s *Store) Delete(ctx context.Context, key string, cond store.Condition) error {
	_, err := s.apply(ctx, "delete", key, []store.Write{{Key: key, Delete: true, Cond: cond}})
	return err
}

// Batch makes all writes or none, in one transaction.
func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return s.apply(ctx, "batch", "", writes)
}

func (s *Store) apply(ctx context.Context, op, key string, writes []store.Write) ([]store.Revision, error) {
	if err := s.check(writes); err != nil {
		return nil, s.fail(op, key, err)
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, s.fail(op, key, err)
	}
	defer leave()
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
		return nil, s.fail(op, key, ended(ctx, err))
	}
	return revs, nil
}

// check returns the error of writes that are wrong whatever is there.
func (d *dialect) check(writes []store.Write) error {
	seen := make(map[string]bool, len(writes))
	for _, w := range writes {
		if err := store.CheckKey(w.Key); err != nil {
			return keyError{w.Key, err}
		}
		if w.Delete && w.Cond.Absent() {
			return keyError{w.Key, fmt.Errorf("%w: nothing is deleted if it is absent", store.ErrInvalid)}
		}
		if len(w.Value) > d.maxValue {
			return keyError{w.Key, fmt.Errorf("%w: the value has %d bytes, more than %d", store.ErrTooLarge, len(w.Value), d.maxValue)}
		}
		if seen[w.Key] {
			return keyError{w.Key, fmt.Errorf("%w: the key is in two writes", store.ErrInvalid)}
		}
		seen[w.Key] = true
	}
	return nil
}

// Scan yields the entries whose keys begin with prefix and come after after. It
// reads them in pages, and holds nothing of the database while it yields.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		const most, enough = 256, 1 << 20 // entries and bytes of a page
		from, to := bounds(prefix, after)
		for limit := 16; ; {
			page, err := s.page(ctx, from, to, limit)
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			size := 0
			for _, e := range page {
				size += len(e.Value)
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
			from = append([]byte(page[len(page)-1].Key), 0)
			if size > enough {
				limit = max(limit/4, 1)
			} else {
				limit = min(limit*4, most)
			}
		}
	}
}

func (s *Store) page(ctx context.Context, from, to []byte, limit int) (page []store.Entry, err error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, s.fail("scan", "", err)
	}
	defer leave()
	err = s.retry(ctx, func() error {
		page = nil
		rows, err := s.reads.scan.QueryContext(ctx, from, to, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e store.Entry
			if err := rows.Scan(&e.Key, &e.Value, &e.Revision); err != nil {
				return err
			}
			page = append(page, e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, s.fail("scan", "", ended(ctx, err))
	}
	return page, nil
}

// retry calls f until it succeeds, or fails for good.
func (d *dialect) retry(ctx context.Context, f func() error) error {
	delay := backoff.Backoff{Min: 500 * time.Microsecond, Max: 10 * time.Millisecond}
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !d.again(err) {
			return err
		}
		if delay.Wait(ctx) != nil {
			return err
		}
	}
}

// server makes writes on a server, which sorts out who comes first.
type server struct {
	*dialect
	db *sql.DB
}

func (s *server) close() error { return nil }

func (s *server) write(ctx context.Context, writes []store.Write, revs []store.Revision) error {
	const stale = 4 // connections of the pool that may turn out to be dead
	bad := 0
	return s.retry(ctx, func() error {
		for {
			// Without a connection nothing is sent, so that this is never unknown.
			conn, err := s.db.Conn(ctx)
			if err != nil {
				return err
			}
			if len(writes) == 1 {
				err = s.classify(s.run(ctx, conn, writes[0], revs[0]))
			} else {
				err = s.transact(ctx, conn, writes, revs)
			}
			_ = conn.Close()
			// The driver says so only of what it did not send.
			if bad++; !errors.Is(err, driver.ErrBadConn) || bad == stale {
				return err
			}
		}
	})
}

// classify returns the error of what may have been made unless the server says
// otherwise.
func (d *dialect) classify(err error) error {
	if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, driver.ErrBadConn) || d.refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// execer is a connection that runs statements.
type execer interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// run makes one write. It returns store.ErrConflict if its condition did not hold.
func (d *dialect) run(ctx context.Context, conn execer, w store.Write, rev store.Revision) error {
	text, args, conditional := d.statement(w, rev)
	result, err := conn.ExecContext(ctx, text, args...)
	if err != nil || !conditional {
		return err
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return store.ErrConflict
	}
	return nil
}
