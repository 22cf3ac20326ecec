package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Do calls fn with a run that handles no message: for tool servers, scheduled
// jobs, webhooks and approvals. The call waits in the queue of the workspace
// until its turn comes. Then nothing else changes the workspace until fn
// returns, and fn is called once. If fn returns nil, the changes are stored. If
// fn returns an error, Do returns it, and what fn has not committed is lost.
//
// The conversation does not change, unless fn changes it. The Message of the run
// is the zero Message. OnRunStart and OnRunComplete are not called.
// fn is called in the goroutine of the caller, and must end when its context
// does: when ctx ends, the Manager is closed, or the run is ended as every other
// run, by Cancel, Reset, or a message with BusyInterrupt or BusyRollback. Within
// a run of the same user, Do returns ErrBusy.
//
// If ctx ends before its turn, Do returns the cause, and nothing has happened.
// If the process dies, nobody calls fn again: after 1.5 × Options.TTL another
// Manager ends the run, and keeps or undoes what fn has committed, depending on
// Options.Takeover.
//
// Do needs no Options.Run. If there is none, messages that wait after fn are
// left to other Managers. Do returns ErrQueueFull if Options.Queue messages and
// calls wait. Its runs count as those of Options.Runs, but do not wait for
// others to end: the caller limits how many there are.
func (m *Manager) Do(ctx context.Context, userID string, fn func(ctx context.Context, run *Run) error) error {
	return m.operate(ctx, work.Operation{Kind: opDo, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		if fn == nil {
			return fmt.Errorf("%w: no function", ErrInvalid)
		}
		if m.inRunOf(ctx, userID) {
			return fmt.Errorf("%w: it is that of the caller", ErrBusy)
		}
		if err := cmp.Or(checkRuns(userID), m.checkAccepting()); err != nil {
			return err
		}
		run, err := m.beginTicket(ctx, l)
		if err != nil {
			return err
		}
		return run.do(fn)
	})
}

// do calls fn and ends the run.
func (r *Run) do(fn func(context.Context, *Run) error) (err error) {
	err = errors.New("workspace: the function has not returned")
	defer func() { err = r.endTicket(err) }() // also if fn panics or ends its goroutine
	if err := r.awaitEarlier(); err != nil {
		return err
	}
	c := &userCode{what: "function of Do", done: make(chan struct{})}
	defer close(c.done)
	r.m.background(func() { r.leaveInGrace(c) })
	return usable(fn(r.ctx, r))
}

// endTicket ends the run of a ticket, whose function has returned an error or nil. It
// returns the error of the call.
func (r *Run) endTicket(err error) error {
	ctx := context.WithoutCancel(r.ctx) // the run is ended even if its context has
	var next *Run
	if err == nil {
		next, err = r.conclude(ctx, nil)
	}
	if err != nil && r.canEnd() {
		var failed error
		if next, failed = r.conclude(ctx, err); failed != nil {
			r.lease.abandon(fmt.Errorf("%w: %v", errEndNotStored, failed))
		}
	}
	if r.lease.lost() == nil { // what is stored is in doubt
		r.leaveTicket(ctx, err)
	}
	if cause := r.lease.lost(); err != nil && cause != nil && cause != ErrRunEnded && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	r.markReturned()
	r.done()
	if next != nil {
		r.m.drainInBackground(next)
	}
	return err
}

// leaveInGrace gives the lease of the run back if its function does not return
// within the grace after the end of its context. The caller of Do waits for the
// function all the same: it is the caller that calls it.
func (r *Run) leaveInGrace(c *userCode) {
	if r.m.waitInGrace(r.ctx, c.done) {
		return
	}
	r.leaveFunction(r.ctx, c)
	if r.lease.lost() == nil {
		r.leaveTicket(context.WithoutCancel(r.ctx), errLeftBehind)
	}
	r.markReturned()
	r.done()
}

// beginTicket queues a ticket, and returns its run when its turn has come.
func (m *Manager) beginTicket(ctx context.Context, l *ledger.Ledger) (*Run, error) {
	waiting, cancel := m.withManager(ctx)
	defer cancel()
	i, err := m.holder.join(waiting)
	if err != nil {
		return nil, err
	}
	defer i.leave()
	t := &ticket{
		m: m, ledger: l, id: ledger.NewID(), lease: l.NewLease().HeldBy(i.id), began: time.Now(),
		seen: observation{by: m.holder},
	}
	h, err := t.submit(waiting)
	if err == nil && !t.holds(h) {
		h, err = t.wait(waiting)
	}
	var run *Run
	if err == nil {
		m.slots.Squeeze(l.User(), t.lease.ID)
		run, err = m.newRun(ctx, l, h, t.began, nil)
		m.slots.Drop(t.lease.ID) // unless the run has it
	}
	if err != nil {
		if errors.Is(err, store.ErrUnknownOutcome) {
			i.abandon(t.lease.ID)
		}
		t.withdraw(context.WithoutCancel(ctx), err)
	}
	return run, err
}

// leaveTicket gives the lease of a run back of which it is not known whether its
// end was stored.
func (r *Run) leaveTicket(ctx context.Context, cause error) {
	r.release(cause)
	t := &ticket{m: r.m, ledger: r.ledger, id: r.lease.messageID, lease: r.ledger.NewLease()}
	t.withdraw(ctx, cause)
}

// ticket is a place in the queue of a workspace.
type ticket struct {
	m      *Manager
	ledger *ledger.Ledger
	id     string
	lease  ledger.Lease // of its run
	began  time.Time    // when the write that took the lease began
	seen   observation  // of the run before it
}

// submit queues the ticket, or begins its run if nothing is under way.
func (t *ticket) submit(ctx context.Context) (*ledger.Head, error) {
	ctx, cancel := t.m.withinStoreTimeout(ctx)
	defer cancel()
	h, _, _, err := t.ledger.Submit(ctx, ledger.Submission{
		Message: ledger.Message{ID: t.id, At: ledger.CurrentTime(), Ticket: true},
		Busy:    work.BusyEnqueue, MaxQueue: t.m.opts.Queue, Lease: t.lease,
	})
	return h, err
}

// holds reports whether the run of the ticket has begun here.
func (t *ticket) holds(h *ledger.Head) bool { return h.Run != nil && h.Run.LeaseID == t.lease.ID }

// wait takes the run of the ticket when it has begun. It looks when this Manager
// or the store tells of a head in which the turn of the ticket has come, when
// the feed of the workspace tells of any newer head, and from time to time.
func (t *ticket) wait(ctx context.Context) (*ledger.Head, error) {
	w, leave, err := t.m.feeds.follow(t.ledger, t.id)
	if err != nil {
		return nil, err
	}
	defer leave()
	t.m.watchRun(t.ledger.User(), t.ledger)
	defer t.m.lendSlot(ctx)()
	for {
		h, err := t.look(ctx)
		if err != nil || t.holds(h) {
			return h, err
		}
		if err := t.await(ctx, w); err != nil {
			return nil, err
		}
	}
}

// await waits until the turn of the ticket may have come.
func (t *ticket) await(ctx context.Context, w *follower) error {
	timer := time.NewTimer(t.m.opts.TTL / 6)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	case <-w.wake:
	}
	for { // a head that is looked at says more than the events
		if _, more, err := w.take(); !more || err != nil {
			return err
		}
	}
}

// look takes the run of the ticket if it has begun. It ends the run of another
// ticket that is not under way any more.
func (t *ticket) look(ctx context.Context) (*ledger.Head, error) {
	var h *ledger.Head
	var fate ledger.Fate
	ctx, cancel := t.m.withinStoreTimeout(ctx)
	defer cancel()
	err := t.m.persist(ctx, t.ledger.User(), mayPass, func(ctx context.Context) (err error) {
		h, err = t.ledger.ReadStable(ctx, func(h *ledger.Head) (err error) {
			fate, err = t.ledger.Fate(ctx, h, t.id)
			return err
		})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case fate.Place == ledger.PlaceNone:
		return nil, fmt.Errorf("%w: its turn has passed", ErrInterrupted)
	case h.Run == nil:
		return h, nil
	}
	mine, next := h.Run.Message.ID == t.id, t.lease
	switch {
	case mine && h.Run.Vacant():
	case !mine && h.Run.Message.Ticket:
		if gone, err := t.seen.look(ctx, h); err != nil || !gone {
			if mayPass(err) { // it looks again
				err = nil
			}
			return h, err
		}
		next = next.Vacant()
	default:
		return h, nil
	}
	t.began = time.Now()
	after, _, err := t.ledger.TakeOver(ctx, ledger.Contender{
		Observed: h.LeaseState(), How: t.m.opts.Takeover, MaxAttempts: t.m.opts.Attempts, Lease: next, Ticket: t.id,
	})
	if errors.Is(err, ledger.ErrLeaseRenewed) {
		return h, nil
	}
	if err == nil {
		t.m.takeVacantRun(t.ledger, after)
	}
	return after, err
}

// withdraw gives the ticket up, because of err.
func (t *ticket) withdraw(ctx context.Context, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.m.opts.TTL)
	defer cancel()
	withdrawErr := t.tryWithdraw(ctx)
	if withdrawErr == nil && !errors.Is(err, store.ErrUnknownOutcome) {
		return
	}
	t.m.background(func() { // after a while, others discard it
		ctx := t.m.ctx
		if !errors.Is(err, store.ErrUnknownOutcome) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, t.m.opts.TTL)
			defer cancel()
		}
		// A write of unknown outcome may have begun the run.
		_, _ = t.ledger.Release(ctx, ledger.Holder{LeaseID: t.lease.ID, MessageID: t.id})
		if err := t.tryWithdraw(ctx); err != nil {
			t.m.raise(ctx, alarmGivenUp.of("withdrawal of a call"), t.ledger.User(), err)
		}
	})
}

func (t *ticket) tryWithdraw(ctx context.Context) error {
	h, found, err := t.ledger.Withdraw(ctx, t.id, t.lease.Vacant())
	if found && err == nil {
		t.m.takeVacantRun(t.ledger, h)
	}
	return err
}
