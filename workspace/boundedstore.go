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

func (s boundedStore) Get(ctx context.Context, key string) (store.Entry, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Get(ctx, key)
}

func (s boundedStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Put(ctx, key, value, cond)
}

func (s boundedStore) Delete(ctx context.Context, key string, cond store.Condition) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Delete(ctx, key, cond)
}

func (s boundedStore) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return boundSteps(ctx, s.limit, func(ctx context.Context) iter.Seq2[store.Entry, error] {
		return s.Store.Scan(ctx, prefix, after)
	})
}

// boundSteps limits the time until the store yields each entry. The time that
// the loop takes for an entry does not count.
func boundSteps[T any](
	ctx context.Context, limit time.Duration, scan func(context.Context) iter.Seq2[T, error],
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		slow := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
		defer slow.Stop()
		for item, err := range scan(ctx) {
			slow.Stop()
			if err != nil && context.Cause(ctx) == context.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
			}
			if !yield(item, err) {
				return
			}
			slow.Reset(limit)
		}
	}
}

// errUnsupported is returned by the methods of interfaces that the store does not
// have. Nobody calls them: see [store.As].
func errUnsupported(op string) error {
	return &store.Error{Store: "bounded", Op: op, Err: errors.ErrUnsupported}
}

func (s boundedStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return s.Store.Batch(ctx, writes)
}

func (s boundedStore) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	g, ok := store.As[store.MultiGetter](s.Store)
	if !ok {
		return nil, errUnsupported("get multi")
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return g.GetMulti(ctx, keys...)
}

func (s boundedStore) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	l, ok := store.As[store.Lister](s.Store)
	if !ok {
		return func(yield func(string, error) bool) { yield("", errUnsupported("list")) }
	}
	return boundSteps(ctx, s.limit, func(ctx context.Context) iter.Seq2[string, error] {
		return l.List(ctx, prefix, after)
	})
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
