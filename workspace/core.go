package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state/internal/bounded"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// core is what the parts of a Manager need of it. They do not know the Manager.
type core struct {
	telemetry
	db       store.Store
	readOnly bool // the store refuses writes
	sealer   *ledger.Sealer
	ctx      context.Context // of background work

	storeTimeout time.Duration // see Options.StoreTimeout
	live         bool          // see Options.Live
}

// patience is the time after which a call of the store that has not returned is
// made again, if it is one that is tried again. Options.StoreTimeout leaves time
// for another call.
func (c *core) patience() time.Duration { return min(c.ttl/2, c.storeTimeout/3) }

// isReadOnly reports whether db is a store of [store.ReadOnly], or passes calls on
// to one.
func isReadOnly(db store.Store) bool {
	for {
		if _, ok := db.(interface{ IsReadOnly() }); ok {
			return true
		}
		w, ok := db.(store.Wrapper)
		if !ok {
			return false
		}
		db = w.Unwrap()
	}
}

// mayPass reports whether an operation that has failed with err may succeed
// later, for example because the store was away. The ledger returns
// store.ErrUnknownOutcome only if it can no longer find out.
func mayPass(err error) bool { return !fault.IsFinal(err) && !errors.Is(err, store.ErrUnknownOutcome) }

// mayPassInRun is mayPass for what a run depends on. A run that is under way
// waits as long as it has its lease: somebody may give a permission back.
func mayPassInRun(err error) bool { return mayPass(err) || errors.Is(err, store.ErrRefused) }

// errStoreTimeout is the cause of what ends after Options.StoreTimeout.
var errStoreTimeout = errors.New("workspace: Options.StoreTimeout is over")

// withinStoreTimeout returns a context that ends with ctx, or after
// Options.StoreTimeout.
func (c *core) withinStoreTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	inTime := bounded.New(ctx, bounded.By{Timeout: c.storeTimeout, Cause: errStoreTimeout})
	return inTime, inTime.End
}

// persist calls fn until it succeeds, fails with an error for which again is
// false, or ctx ends: see [ledger.Retry].
func (c *core) persist(ctx context.Context, user string, again func(error) bool, fn func(context.Context) error) error {
	r := ledger.NewRetry(again, func(ctx context.Context, err error) { c.noteStoreError(ctx, user, err) }, c.patience())
	return r.Do(ctx, func(ctx context.Context) error { return r.InTime(ctx, fn) })
}

// RetryAfter returns an error for which Options.Run is called again after d,
// for example because a service was not available. Until then the run stays
// under way: its lease is renewed, and WhenBusy determines what happens to
// messages that arrive. The next call gets a new Run, with the same ID, the
// next Attempt and the committed changes. Uncommitted changes are lost. After
// Options.Attempts, the run fails with err.
//
// A d of more than an hour counts as that. RetryAfter returns nil if err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

type retryError struct {
	err   error
	delay time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// maxRetryDelay is the longest delay of RetryAfter.
const maxRetryDelay = time.Hour

// boundedStore is a store whose calls end after a time, also if their contexts
// do not, so that nobody waits without end for a store that does not answer. It
// does not limit the calls that end soon anyway. A panic of the store is its
// error.
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
	inTime := bounded.New(ctx, bounded.By{Timeout: s.limit, Cause: context.DeadlineExceeded})
	return inTime, inTime.End
}

// storePanic returns the error of a call of the store that has panicked with a
// value.
func storePanic(op string, p any) error {
	return &store.Error{Store: "bounded", Op: op, Err: panicOf("the store", p)}
}

func (s boundedStore) Get(ctx context.Context, keys ...string) (_ []store.Entry, err error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = storePanic("get", p)
		}
	}()
	return s.Store.Get(ctx, keys...)
}

func (s boundedStore) Batch(ctx context.Context, writes []store.Write) (_ []store.Revision, err error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the writes may have been made
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, storePanic("batch", p))
		}
	}()
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
		for e, err := range guarded("list", s.Store.List(ctx, prefix, after, values)) {
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
	return guarded("watch", w.Watch(ctx, prefix))
}

// guarded yields what the store yields, and its panic as an error. It does not
// recover those of the loop.
func guarded[T any](op string, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		inLoop, more := false, true
		defer func() {
			if inLoop {
				return
			}
			if p := recover(); p != nil && more {
				var none T
				yield(none, storePanic(op, p))
			}
		}()
		for v, err := range seq {
			inLoop = true
			more = yield(v, err)
			if inLoop = false; !more {
				return
			}
		}
	}
}

func (s boundedStore) Transact(
	ctx context.Context, writes []store.Write, fn func(*sql.Tx) error,
) ([]store.Revision, error) {
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
