package workspace

import (
	"errors"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// The head of a run may name a lease that its Manager no longer has. What is in
// this file ends that as soon as the store answers, so that nobody has to wait
// until the lease has expired for others.

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
	about := r.operationOf(OpTakeover)
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

// releaseInDoubt releases the run of a lease that a write of unknown outcome may
// have begun. Nothing handles it. It does so in the background, and tries again
// while the store is away, until the Manager is closed.
func (m *Manager) releaseInDoubt(l *ledger.Ledger, i *incarnation, lease ledger.Lease) {
	if lease.ID == "" {
		return
	}
	i.abandon(lease.ID)
	if !i.enter() {
		return // others find that its holder has ended
	}
	if !m.background(func() {
		defer i.leave()
		if h, err := l.Release(m.ctx, ledger.Holder{LeaseID: lease.ID}); err == nil {
			m.takeVacantRun(l, h)
		} else if !errors.Is(err, ErrFenced) {
			m.watchRun(l.User(), l)
		}
	}) {
		i.leave()
	}
}
