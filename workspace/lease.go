package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// lease is the lease of a run, as its holder sees it.
type lease struct {
	id          string
	token       uint64 // grows with each lease of the workspace
	ttl         time.Duration
	messageID   string
	incarnation *incarnation // whose heartbeats renew it

	held   context.Context // ends when the lease is given up or lost; its cause says why
	giveUp context.CancelCauseFunc
	check  chan struct{} // wakes keepLease, which then renews the lease
	// abandoned says that the head of the run may still name the lease.
	abandoned atomic.Bool

	mu        sync.Mutex
	renewedAt time.Time // when the last commit of the run that succeeded began
	renewals  uint64    // by commits of the run
}

func newLease(r *ledger.Run, i *incarnation, began time.Time) *lease {
	l := &lease{
		id: r.LeaseID, token: r.Token, ttl: r.LeaseTTL(), messageID: r.Message.ID, incarnation: i,
		check: make(chan struct{}, 1), renewedAt: began,
	}
	l.held, l.giveUp = context.WithCancelCause(context.Background())
	return l
}

func (l *lease) holder() ledger.Holder { return ledger.Holder{LeaseID: l.id, MessageID: l.messageID} }

// lost returns why the lease is no longer held, or nil.
func (l *lease) lost() error { return context.Cause(l.held) }

// abandon gives the lease up although the head of the run may still name it. The
// Manager vacates the run as soon as it can. If it cannot, another holder takes
// the run over 1.5 × TTL later.
func (l *lease) abandon(cause error) {
	l.abandoned.Store(true)
	l.incarnation.abandon(l.id)
	l.giveUp(cause)
}

// left returns the time for which the lease is held without a renewal, by a
// commit of the run or by a heartbeat of the Manager. Another
// holder takes the run over 1.5 × TTL after the last renewal, not 1 × TTL, so
// that clocks may differ in speed.
func (l *lease) left() time.Duration {
	renewedAt, _ := l.incarnation.lastRenewed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewedAt.After(renewedAt) {
		renewedAt = l.renewedAt
	}
	return l.ttl - time.Since(renewedAt)
}

var errExpired = errors.New("the lease was not renewed for too long")

// expired returns an error if no time is left.
func (l *lease) expired() error {
	if l.left() > 0 {
		return nil
	}
	_, err := l.incarnation.lastRenewed()
	if err == nil { // nothing has failed, but it took too long
		return fmt.Errorf("%w: %w", ErrFenced, errExpired)
	}
	return fmt.Errorf("%w: %w: %v", ErrFenced, errExpired, err)
}

func (l *lease) noteRenewed(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewedAt = began
	l.renewals++
}

// heartbeats returns the number of renewals, by commits of the run and by
// heartbeats of the Manager.
func (l *lease) heartbeats() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewals + l.incarnation.heartbeats()
}

// maxWriteTime is the longest time that a run tries to read or write, in TTLs. It
// ends before if the lease is not renewed.
const maxWriteTime = 3

// whileHeld returns a context that ends with ctx and with the lease. If what it
// is for takes longer than maxWriteTime, although the Manager can renew its
// leases, the run is left to another holder.
func (l *lease) whileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.held, func() { cancel(l.lost()) })
	timeout := time.AfterFunc(maxWriteTime*l.ttl, func() { l.abandon(fmt.Errorf("%w: the workspace could not be written", ErrFenced)) })
	return ctx, func() {
		stop()
		timeout.Stop()
		cancel(nil)
	}
}

// watchDelay returns the age from which on a lease is watched in the store. A
// watch costs a store as much as some messages, and a run that ends earlier does
// not need it. A busy store makes all runs longer, so that watches of short runs
// would make it busier.
func (l *lease) watchDelay() time.Duration { return l.ttl / 32 }

// keepLease looks after the lease until it is given up or lost, and ends the run
// then. It ends the context of the run when the Manager is closed. When the
// context of a manual run has ended, it releases the run. The holder record stays
// until a lease that was abandoned is vacated, so that others do not have to end
// it.
func (r *Run) keepLease(ctx context.Context) {
	defer r.lease.incarnation.leave()
	defer context.AfterFunc(r.m.ctx, func() { r.cancel(context.Cause(r.m.ctx)) })()
	expiry, watch := time.NewTimer(r.lease.left()), time.NewTimer(r.lease.watchDelay())
	defer expiry.Stop()
	defer watch.Stop()
	var toRelease <-chan struct{}
	if r.manual {
		toRelease = ctx.Done()
	}
	var storeTrace <-chan time.Time
	if r.m.opts.Tracer != nil { // the next holder is to know of this one
		storeTrace = time.After(r.lease.ttl / 3)
	}
	for r.lease.lost() == nil {
		select {
		case <-r.lease.held.Done():
		case <-r.lease.incarnation.held.Done():
			r.lease.giveUp(context.Cause(r.lease.incarnation.held))
		case <-toRelease:
			r.release(context.Cause(ctx))
		case <-watch.C:
			r.m.background(r.watchLease)
		case <-storeTrace:
			if !r.op.isStored.Load() {
				wake(r.lease.check)
			}
		case <-r.lease.check:
			switch err := r.renew(r.lease.left()); {
			case err == nil || r.ending.Load():
			case errors.Is(err, errExpired), errors.Is(err, ErrRolledBack):
				r.lease.abandon(err)
			default: // the head does not name it
				r.lease.giveUp(err)
			}
		case <-expiry.C:
			if err := r.lease.expired(); err != nil {
				r.lease.abandon(err)
			}
			expiry.Reset(r.lease.left())
		}
	}
	r.cancel(r.lease.lost())
	r.mu.Lock()
	r.end(r.lease.lost())
	r.mu.Unlock()
	if r.manual {
		r.markReturned()
		r.done()
	}
	if r.lease.abandoned.Load() {
		r.vacate()
	}
}

// renew renews the lease by itself within a time, and so finds out whether it is
// lost. It returns an error then.
func (r *Run) renew(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(r.lease.held, timeout)
	defer cancel()
	began := time.Now()
	ctx, op := r.beginRenewal(ctx)
	_, err := r.ledger.Renew(ctx, r.heartbeat())
	op.end(err)
	switch {
	case err == nil:
		r.lease.noteRenewed(began)
		return nil
	case errors.Is(err, ErrFenced), errors.Is(err, ErrRolledBack):
		return err
	}
	return r.lease.expired()
}

// watchLease wakes keepLease when the head shows that another caller has ended
// the run or taken it over, so that its function hears of it before it commits.
// If the store reports no changes, it looks at the head every third of the TTL.
func (r *Run) watchLease() {
	seen := func(h *ledger.Head) {
		if h == nil || h.Run == nil || h.Run.LeaseID != r.lease.id {
			wake(r.lease.check)
		}
	}
	r.m.watchHead(r.lease.held, r.ledger, seen)
	r.m.pollHead(r.lease.held, r.ledger, r.lease.ttl/3, seen)
}

// release gives the lease back, unless it is lost, so that any Manager may
// continue the run at once. It ends the run here. cause says why.
func (r *Run) release(cause error) {
	ctx, op := r.m.begin(r.within(r.lease.held), r.operationOf(opRelease))
	op.end(r.giveBack(ctx, cause)) // without mu
}

func (r *Run) giveBack(ctx context.Context, cause error) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease.lost() == nil {
		ctx, cancel := context.WithTimeout(ctx, r.lease.left())
		_, err = r.ledger.Release(ctx, r.lease.holder())
		cancel()
		cause = fmt.Errorf("%w: %w", errGivenBack, cause)
		if err != nil && !errors.Is(err, ErrFenced) && r.lease.lost() == nil { // else the run may have ended meanwhile
			r.lease.abandon(cause)
		}
		r.lease.giveUp(cause)
	}
	r.end(r.lease.lost())
	return err
}
