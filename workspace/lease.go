package workspace

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/bounded"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// lease is the lease of a run, as its holder sees it.
type lease struct {
	id          string
	token       uint64 // grows with each lease of the workspace
	ttl         time.Duration
	messageID   string
	incarnation *incarnation // whose heartbeats renew it
	writing     atomic.Int32 // the number of whileHeld that have not ended

	held   context.Context // ends when the lease is given up or lost; its cause says why
	giveUp context.CancelCauseFunc
	check  chan struct{} // wakes keepChecking
	// abandoned says that the head of the run may still name the lease.
	abandoned atomic.Bool

	began    time.Time     // when the write that gave the lease began
	renewals atomic.Uint64 // in the head
}

func newLease(r *ledger.Run, i *incarnation, began time.Time) *lease {
	l := &lease{
		id: r.LeaseID, token: r.Token, ttl: r.LeaseTTL(), messageID: r.Message.ID, incarnation: i,
		check: make(chan struct{}, 1), began: began,
	}
	l.held, l.giveUp = context.WithCancelCause(i.held)
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

// age returns the time since the last heartbeat of the Manager, or since the lease
// was taken. A holder that cannot reach the store, or has stood still, keeps its
// lease and goes on, until the store says that another one has it: nobody can know
// better than the store, and what is written is fenced. Others take the run over
// 1.5 × TTL after the last renewal that they have seen.
func (l *lease) age() time.Duration {
	_, last := l.incarnation.renewals()
	return min(time.Since(l.began), time.Since(last))
}

// heartbeats returns the number of renewals, in the head and by heartbeats of the
// Manager.
func (l *lease) heartbeats() uint64 {
	n, _ := l.incarnation.renewals()
	return n + l.renewals.Load()
}

// maxWriteTime is the longest time that a run tries to read or write, in TTLs,
// while the Manager can renew its leases.
const maxWriteTime = 3

// whileHeld returns a context that ends with ctx and with the lease. If what it
// is for takes longer than maxWriteTime, although the store is there, the run is
// left to another holder.
func (l *lease) whileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	held := bounded.New(ctx, bounded.By{Other: l.held})
	l.writing.Add(1)
	timer := l.limitWrite(held, time.Now(), maxWriteTime*l.ttl)
	return held, func() {
		timer.Stop()
		held.End()
		l.writing.Add(-1)
	}
}

// limitWrite abandons the lease after a time, unless ctx has ended by then, or
// the store was away since a write began.
func (l *lease) limitWrite(ctx context.Context, began time.Time, after time.Duration) *time.Timer {
	return time.AfterFunc(after, func() {
		left := maxWriteTime*l.ttl - min(time.Since(began), l.incarnation.reachable())
		switch {
		case ctx.Err() != nil:
		case left > 0:
			l.limitWrite(ctx, began, left)
		default:
			l.abandon(fmt.Errorf("%w: the workspace could not be written", ErrFenced))
		}
	})
}

// watchDelay returns the age from which on a lease is watched in the store. A
// watch costs a store as much as some messages, and a run that ends earlier does
// not need it. A busy store makes all runs longer, so that watches of short runs
// would make it busier.
func (l *lease) watchDelay() time.Duration { return l.ttl / 32 }

// nextLease returns the lease of the run that begins when this one ends. It is
// vacant if the Manager begins no more runs, if nothing would handle it, or if
// there is no slot for it: because this run is one of Do, which needs none,
// because the Manager holds more runs than it has slots, or because others wait
// for a slot, who come first.
func (r *Run) nextLease() ledger.Lease {
	lease := r.ledger.NewLease().HeldBy(r.lease.incarnation.id)
	switch {
	case r.m.accepting.Err() != nil, r.m.opts.Run == nil:
		return lease.Vacant()
	case r.slot.Has():
		if r.slot.Crowded() {
			return lease.Vacant()
		}
	case !r.m.slots.Try(r.user, lease.ID):
		return lease.Vacant()
	}
	return lease
}
