package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
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

// finalErrors are the errors of operations that would fail again: because of
// their arguments, of what is stored, or of what others have done.
var finalErrors = []error{
	ErrExists, ErrUserDeleted, ErrInvalid, ErrInvalidKey, ErrSchema, ErrCorrupt, ErrNewerFormat, ErrRolledBack, ErrFenced, ErrBusy, ErrQueueFull, ErrClosed, ErrHolder,
	work.ErrNotFound, ledger.ErrAttempts, ledger.ErrLeaseRenewed, ledger.ErrContentChanged,
	store.ErrInvalid, store.ErrTooLarge, store.ErrClosed, store.ErrReadOnly, store.ErrRefused,
	// The ledger returns it only if it can no longer find out.
	store.ErrUnknownOutcome,
}

// mayPass reports whether an operation that has failed with err may succeed
// later, for example because the store was away.
func mayPass(err error) bool {
	if errors.As(err, new(*decisionError)) {
		return false
	}
	return !slices.ContainsFunc(finalErrors, func(final error) bool { return errors.Is(err, final) })
}

// mayPassInRun is mayPass for what a run depends on. A run that is under way
// waits as long as it has its lease: somebody may give a permission back.
func mayPassInRun(err error) bool { return mayPass(err) || errors.Is(err, store.ErrRefused) }

// errStoreTimeout is the cause of what ends after Options.StoreTimeout.
var errStoreTimeout = errors.New("workspace: Options.StoreTimeout is over")

// withinStoreTimeout returns a context that ends with ctx, or after
// Options.StoreTimeout.
func (c *core) withinStoreTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.storeTimeout, errStoreTimeout)
}

// endWith returns a context that ends with ctx, and also with other, for the reason
// that cause returns then.
func endWith(ctx, other context.Context, cause func() error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(cause()) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
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
