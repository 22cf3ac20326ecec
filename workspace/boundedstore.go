package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state/store"
)

// boundedStore is a store whose calls end after a time, also if their contexts
// do not, so that nobody waits without end for a store that does not answer. It
// does not limit the calls that end soon anyway.
type boundedStore struct {
	store.Store
	limit time.Duration
}

func (s boundedStore) Unwrap() store.Store { return s.Store }

// bound returns a context that ends with ctx, or after the limit.
func (s boundedStore) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Deadline(); ok && time.Until(d) <= s.limit {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.limit)
}

func (s boundedStore) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Get(ctx, keys...)
}

func (s boundedStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Batch(ctx, writes)
}

// List limits the time until the store yields each entry. The time that the loop
// takes for an entry does not count.
func (s boundedStore) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		slow := time.AfterFunc(s.limit, func() { cancel(context.DeadlineExceeded) })
		defer slow.Stop()
		for e, err := range s.Store.List(ctx, prefix, after, values) {
			slow.Stop()
			if err != nil && context.Cause(ctx) == context.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
			}
			if !yield(e, err) {
				return
			}
			slow.Reset(s.limit)
		}
	}
}

// errUnsupported is returned by the methods of interfaces that the store does not
// have. Nobody calls them: see [store.As].
func errUnsupported(op string) error {
	return &store.Error{Store: "bounded", Op: op, Err: errors.ErrUnsupported}
}

// Watch has no limit: it waits for changes.
func (s boundedStore) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	w, ok := store.As[store.Watcher](s.Store)
	if !ok {
		return func(yield func(store.Event, error) bool) { yield(store.Event{}, errUnsupported("watch")) }
	}
	return w.Watch(ctx, prefix)
}

func (s boundedStore) Transact(ctx context.Context, writes []store.Write, fn func(*sql.Tx) error) ([]store.Revision, error) {
	t, ok := store.As[store.Transactor](s.Store)
	if !ok {
		return nil, errUnsupported("transact")
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return t.Transact(ctx, writes, fn)
}

// In returns a store that ends with the transaction of the program, and has no
// limit. The caller has found out that the store is a Transactor.
func (s boundedStore) In(tx *sql.Tx) store.Store {
	t, _ := store.As[store.Transactor](s.Store)
	return t.In(tx)
}
