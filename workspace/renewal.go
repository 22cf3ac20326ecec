package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
	"github.com/agentstate/state/workspace/work"
)

// keeping is what waits for something to happen to the lease of a run. Most runs are
// over before anything does, so none of it is a goroutine.
type keeping struct {
	closed  func() bool // stops endWithManager
	lost    func() bool // stops endWithLease
	watch   *time.Timer // begins watchLease
	trace   *time.Timer // begins storeTrace; nil without a Tracer
	checker sync.Once   // begins keepChecking
}

func (k *keeping) stop() {
	k.closed()
	k.watch.Stop()
	if k.trace != nil {
		k.trace.Stop()
	}
}

// keepLease looks after the lease until it is given up or lost, and ends the run
// then. It ends the context of the run when the Manager is closed, which waits for
// the end of the lease.
func (r *Run) keepLease() error {
	if err := r.m.enter(); err != nil {
		return err
	}
	l, k := r.lease, &r.keeping
	k.closed = context.AfterFunc(r.m.ctx, r.endWithManager)
	k.watch = time.AfterFunc(l.watchDelay(), func() { r.m.background(r.watchLease) })
	if r.m.opts.Tracer != nil { // the next holder is to know of this one
		k.trace = time.AfterFunc(l.ttl/3, func() { r.m.background(r.storeTrace) })
	}
	k.lost = context.AfterFunc(l.held, func() {
		defer r.m.leave()
		r.m.guard(r.endWithLease)
	})
	return nil
}

// endLease gives the lease of a run up that has ended in the store.
func (r *Run) endLease() {
	if r.keeping.lost() { // else the lease was lost before
		defer r.m.leave()
		defer r.lease.incarnation.leave()
		r.keeping.stop()
	}
	r.lease.giveUp(ErrRunEnded)
	r.cancel(ErrRunEnded)
}

// endWithLease ends the run when its lease is given up or lost. The holder record
// stays until a lease that was abandoned is vacated, so that others do not have to
// end it.
func (r *Run) endWithLease() {
	defer r.lease.incarnation.leave()
	r.keeping.stop()
	r.cancel(r.lease.lost())
	r.mu.Lock()
	r.end(phaseGone, r.lease.lost())
	r.mu.Unlock()
	if errors.Is(r.lease.lost(), ErrFenced) {
		r.lease.incarnation.doubt()
	}
	if r.lease.abandoned.Load() {
		r.vacate()
	}
}

// endWithManager ends the context of the run when the Manager is closed. Close waits
// for the TTL, so the lease is abandoned before if a write is under way.
func (r *Run) endWithManager() {
	r.cancel(context.Cause(r.m.ctx))
	for wait := r.lease.ttl / 4; turns.Wait(r.lease.held, wait, nil) == nil; wait = r.lease.ttl / 16 {
		if r.lease.writing.Load() > 0 {
			r.lease.abandon(fmt.Errorf("%w: %w", ErrFenced, context.Cause(r.m.ctx)))
		}
	}
}

// storeTrace stores the trace of the run, unless a commit has done so.
func (r *Run) storeTrace() {
	for !r.op.isStored.Load() && r.lease.lost() == nil && r.renew(r.lease.ttl/4) != nil {
		r.checkSoon()
		_ = turns.Wait(r.lease.held, r.lease.ttl/4, nil)
	}
}

// checkSoon looks whether the lease is lost, in the background.
func (r *Run) checkSoon() {
	turns.Wake(r.lease.check)
	r.keeping.checker.Do(func() { go r.m.guard(r.keepChecking) })
}

// keepChecking looks whether the lease is lost, whenever checkSoon is called, until
// it has ended.
func (r *Run) keepChecking() {
	var again <-chan time.Time
	for {
		select {
		case <-r.lease.held.Done():
			return
		case <-again:
		case <-r.lease.check:
		}
		again = nil
		switch err := r.checkLease(); {
		case err == nil || r.life.is(phaseEnding, phaseStored, phaseOver): // the end may be the reason
		case errors.Is(err, ErrFenced): // the head does not name it
			r.lease.giveUp(err)
		case errors.Is(err, ErrRolledBack):
			r.lease.abandon(err)
		default: // the store does not say
			again = time.After(r.lease.ttl / 4)
		}
	}
}

// checkLease returns ErrFenced, or ErrRolledBack, if the head shows that the lease
// is lost.
func (r *Run) checkLease() error {
	ctx, cancel := context.WithTimeout(r.lease.held, r.lease.ttl/4)
	defer cancel()
	return r.ledger.CheckLease(ctx, r.lease.holder())
}

// renew renews the lease by itself within a time. If it is lost, it returns
// ErrFenced, or ErrRolledBack.
func (r *Run) renew(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(r.lease.held, timeout)
	defer cancel()
	ctx, op := r.beginRenewal(ctx)
	_, err := r.ledger.Renew(ctx, r.heartbeat())
	op.end(err)
	if err == nil {
		r.lease.renewals.Add(1)
	}
	return err
}

// watchLease looks at the lease when the head shows that another caller has ended
// the run or taken it over, so that its function hears of it before it commits.
// If the store reports no changes, it looks at the head every third of the TTL.
func (r *Run) watchLease() {
	seen := func(h *ledger.Head) {
		if h == nil || h.Run == nil || h.Run.LeaseID != r.lease.id {
			r.checkSoon()
		}
	}
	r.m.watchHead(r.lease.held, r.ledger, seen, func() {})
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
		if r.m.ctx.Err() != nil && errors.Is(cause, ErrClosed) {
			r.noteCutOff() // whatever the lease says when the head has changed
		}
		ctx, cancel := context.WithTimeout(ctx, r.lease.ttl/4)
		_, err = r.ledger.Release(ctx, r.lease.holder())
		cancel()
		cause = fmt.Errorf("%w: %w", errGivenBack, cause)
		if err != nil && !errors.Is(err, ErrFenced) && r.lease.lost() == nil { // else the run may have ended meanwhile
			r.lease.abandon(cause)
		}
		r.lease.giveUp(cause)
	}
	r.end(phaseGone, r.lease.lost())
	return err
}

// vacate makes the lease of the run vacant, if the head still names it, so that
// any Manager continues the run at once. It counts an attempt, as every takeover
// of a lease that is over. It tries again while the store is away, until the
// Manager is closed: the end of the holder record then makes the run free.
//
// First it waits until the function of the run has returned, but not longer than
// the TTL. By then others might have taken the run over all the same.
func (r *Run) vacate() {
	timeout := time.NewTimer(r.lease.ttl)
	defer timeout.Stop()
	select {
	case <-r.returned:
	case <-timeout.C:
	case <-r.m.ctx.Done():
		return
	}
	next := r.ledger.NewLease().Vacant()
	c := r.m.contender(next)
	c.Own = r.lease.id
	about := r.operationOf(work.OpTakeover)
	about.Root = true
	ctx, op := r.m.begin(r.m.ctx, about)
	h, taken, err := r.ledger.TakeOver(ctx, c)
	op.endTakeover(h, taken, next, err)
	if err != nil {
		return
	}
	r.m.takeVacantRun(r.ledger, h)
	r.m.noteTaken(ctx, r.ledger, taken)
}
