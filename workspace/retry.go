package workspace

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// finalErrors are the errors of operations that would fail again: because of
// their arguments, of what is stored, or of what others have done.
var finalErrors = []error{
	ErrExists, ErrUserDeleted, ErrInvalid, ErrInvalidKey, ErrSchema, ErrCorrupt, ErrNewerFormat, ErrRolledBack, ErrFenced, ErrBusy, ErrQueueFull, ErrClosed, ErrHolder,
	ledger.ErrNotFound, ledger.ErrAttempts, ledger.ErrLeaseRenewed, ledger.ErrContentChanged,
	store.ErrInvalid, store.ErrTooLarge, store.ErrClosed, store.ErrReadOnly, store.ErrRefused,
	// The ledger returns it only if it can no longer find out.
	store.ErrUnknownOutcome,
}

// mayPass reports whether an operation that has failed with err may succeed
// later, for example because the store was away.
func mayPass(err error) bool {
	if errors.As(err, new(*answerError)) {
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

// persist calls fn until it succeeds, fails with an error for which again is
// false, or ctx ends. The context of a call ends after the patience of the
// Manager, and that of the next then after twice as long.
func (c *core) persist(ctx context.Context, user string, again func(error) bool, fn func(context.Context) error) error {
	delay := backoff.Backoff{Min: time.Millisecond, Max: 256 * time.Millisecond}
	patience := c.patience()
	for {
		inTime, cancel := context.WithTimeout(ctx, patience)
		err := fn(inTime)
		if inTime.Err() != nil {
			patience *= 2
		}
		cancel()
		if err == nil || !again(err) {
			return err
		}
		c.noteStoreError(ctx, user, err)
		if delay.Wait(ctx) != nil {
			return err
		}
	}
}

// RetryAfter returns an error for which Options.Run is called again after d, for
// example because a service was not available. Until then the run stays under
// way: its lease is renewed, and Busy determines what happens to messages that
// arrive. The next call gets a new Run, with the same ID, the next Attempt and
// the committed changes. Uncommitted changes are lost. After Options.Attempts,
// the run fails with err.
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
