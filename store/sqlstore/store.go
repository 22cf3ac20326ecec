package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state/internal/bounded"
	"github.com/agentstate/state/store"
)

// Store is a store in a table. It is a [store.Transactor].
type Store struct {
	*database
	db      *sql.DB
	closeDB bool
	reads   struct{ get, getInTx, few, many, list, listKeys query }

	open  context.Context // ends when the store is closed
	close context.CancelCauseFunc

	mu     sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed bool
	calls  sync.WaitGroup // that are under way
}

// call is a call that is under way.
type call struct {
	ctx  *bounded.Context
	slow *slowCall // nil if its context ends soon anyway
}

// slowCall ends a call that has no end of its own.
type slowCall struct {
	end   context.CancelCauseFunc
	timer *time.Timer
}

var _ store.Transactor = (*Store)(nil)

// writer makes all writes of a call or none. An error is ErrConflict,
// ErrUnknownOutcome or the reason why no write was made. It is a writeError if
// it is about one of several writes.
type writer interface {
	write(ctx context.Context, writes []store.Write, revs []store.Revision) error
	close() error
}

// Durability implements [store.Store]. It depends on the settings that the
// server had when the store was opened.
func (s *Store) Durability() store.Durability { return s.durability }

// Close ends running calls. It closes the pool if
// [Options.CloseDB] says so.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.close(store.ErrClosed)
	if closed {
		return nil
	}
	s.calls.Wait()
	// A connection that has gone dark within a call of the driver holds up whoever
	// closes what was prepared on it. That is then closed when the call ends.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := await(ctx, s.release)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return &store.Error{Store: s.name, Op: "close", Err: err}
	}
	return nil
}

// release closes what the store has opened.
func (s *Store) release() error {
	err := s.writer.close()
	for _, q := range s.queries() {
		err = errors.Join(err, q.close())
	}
	if s.closeDB {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// callTime is the time after which a call ends although its context has not: a
// server that does not answer must not hold the program up without an end. It is much
// longer than any lock is held. It is a variable for tests.
var callTime = 30 * time.Second

// slowError is the cause of a call that ends after that time.
type slowError time.Duration

func (e slowError) Error() string {
	return "the database has not answered within " + time.Duration(e).String()
}

// beginCall returns a context that ends with ctx, when the store is closed, or
// after callTime, and the call, for endCall.
func (s *Store) beginCall(ctx context.Context) (context.Context, *call, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if s.check != nil {
		if err := s.check(); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, store.ErrClosed
	}
	s.calls.Add(1)
	c, after := &call{}, callTime
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > after {
		c.slow = &slowCall{}
		ctx, c.slow.end = context.WithCancelCause(ctx)
		c.slow.timer = time.AfterFunc(after, func() { c.slow.end(slowError(after)) })
	}
	c.ctx = bounded.New(ctx, bounded.By{Other: s.open})
	return c.ctx, c, nil
}

// endCall ends what beginCall has begun.
func (s *Store) endCall(c *call) {
	c.ctx.End()
	if c.slow != nil {
		c.slow.timer.Stop()
		c.slow.end(nil)
	}
	s.calls.Done()
}

func (s *Store) newError(op, key string, err error) error {
	var single writeError
	if errors.As(err, &single) {
		key = single.key
	}
	switch {
	case s.is(err, s.answers.tooLarge):
		err = fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case s.is(err, s.answers.lasting) && !errors.Is(err, store.ErrUnknownOutcome):
		err = fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	return &store.Error{Store: s.name, Op: op, Key: key, Err: err}
}

// withCause adds the cause to an error of a call whose context has ended.
// Drivers report it in different ways, and some a moment before: they derive
// network timeouts from the deadline.
func withCause(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	ended, cause := ctx.Err(), context.Cause(ctx)
	if deadline, ok := ctx.Deadline(); ended == nil && ok && !time.Now().Before(deadline) {
		ended, cause = context.DeadlineExceeded, context.DeadlineExceeded
	}
	if cause == store.ErrClosed && errors.Is(err, store.ErrUnknownOutcome) {
		cause = ended // ErrClosed would mean that the write was not made
	}
	switch {
	case ended == nil || errors.Is(err, cause):
		return err
	case !errors.As(cause, new(slowError)):
	case errors.Is(err, store.ErrUnknownOutcome): // the caller has cancelled nothing: the error must not say so
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, cause)
	default:
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Batch implements [store.Store] with a transaction.
func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	key := onlyWrite(writes)
	revs, err := s.revisions(writes)
	if err != nil {
		return nil, s.newError("write", key, err)
	}
	ctx, call, err := s.beginCall(ctx)
	if err != nil {
		return nil, s.newError("write", key, err)
	}
	defer s.endCall(call)
	if len(writes) == 0 {
		return revs, nil
	}
	if err := s.writer.write(ctx, writes, revs); err != nil {
		return nil, s.newError("write", key, withCause(ctx, err))
	}
	return revs, nil
}

// onlyWrite returns the key of a call with one write, or "". It is what an error
// of the whole call names.
func onlyWrite(writes []store.Write) string {
	if len(writes) == 1 {
		return writes[0].Key
	}
	return ""
}

// revisions returns the revisions of writes, and an error if one cannot be made.
func (s *Store) revisions(writes []store.Write) ([]store.Revision, error) {
	if err := s.checkWrites(writes); err != nil {
		return nil, err
	}
	revs := make([]store.Revision, len(writes))
	for i, w := range writes {
		if !w.Delete {
			revs[i] = store.NewRevision()
		}
	}
	return revs, nil
}
