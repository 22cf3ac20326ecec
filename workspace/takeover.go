package workspace

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// isFree reports whether a run has a vacant lease, so that any Manager may take
// it at once. The run of a ticket is left to the Manager that has queued it.
func isFree(h *ledger.Head) bool { return h.Run != nil && h.Run.Vacant() && !h.Run.Message.Ticket }

// takeVacantRun begins the run of a head in the background if its lease is
// vacant.
func (m *Manager) takeVacantRun(l *ledger.Ledger, h *ledger.Head) {
	if m.opts.Run == nil || h == nil || h.Run == nil || !h.Run.Vacant() || h.Run.Message.Ticket {
		return
	}
	m.trackRun()
	started := m.background(func() {
		defer m.untrackRun()
		if m.takeOver(m.ctx, l, h.LeaseState()) != nil {
			m.watchRun(l.User(), l)
		}
	})
	if !started {
		m.untrackRun()
	}
}

// takeOver takes a run over, unless its lease was renewed since it was observed,
// and handles it in the background. If all slots are taken, it waits for one in
// the background.
func (m *Manager) takeOver(ctx context.Context, l *ledger.Ledger, observed ledger.LeaseState) error {
	if m.opts.Run == nil {
		return nil
	}
	if err := m.checkAccepting(); err != nil {
		return err
	}
	m.trackRun()
	defer m.untrackRun()
	next := l.NewLease()
	if m.slots.try(l.User(), next.ID) {
		return m.takeOverWith(ctx, l, observed, next)
	}
	if !m.slots.markWaiting(l.User()) {
		return nil
	}
	m.trackRun()
	started := m.background(func() {
		defer m.untrackRun()
		err := m.slots.enter(m.accepting, l.User(), next.ID)
		m.slots.unmarkWaiting(l.User()) // a run that waits from now on may not be seen below
		if err == nil && m.takeOverLate(l, observed, next) != nil {
			m.watchRun(l.User(), l)
		}
	})
	if !started {
		m.untrackRun()
		m.slots.unmarkWaiting(l.User())
	}
	return nil
}

// takeOverLate takes over a run that was observed some time ago, or one that
// waits meanwhile.
func (m *Manager) takeOverLate(l *ledger.Ledger, observed ledger.LeaseState, next ledger.Lease) error {
	h, err := l.ReadHead(m.accepting)
	if err != nil {
		m.slots.drop(next.ID)
		return err
	}
	if isFree(h) {
		observed = h.LeaseState()
	}
	return m.takeOverWith(m.accepting, l, observed, next)
}

// takeOverWith takes a run over with a lease that has a slot.
func (m *Manager) takeOverWith(
	ctx context.Context, l *ledger.Ledger, observed ledger.LeaseState, next ledger.Lease,
) error {
	defer m.slots.drop(next.ID) // unless a run has it
	i, err := m.holder.join(ctx)
	if err != nil {
		return err
	}
	defer i.leave()
	next = next.HeldBy(i.id)
	began := time.Now()
	c := m.contender(next)
	c.Observed = observed
	ctx, op := m.begin(ctx, Operation{Kind: OpTakeover, UserID: l.User(), Root: true})
	op.vacant = observed.Vacant()
	taking, cancel := m.withinStoreTimeout(ctx)
	h, taken, err := l.TakeOver(taking, c)
	cancel()
	op.endTakeover(h, taken, next, err)
	switch {
	case errors.Is(err, ledger.ErrLeaseRenewed):
		return nil
	case err != nil:
		if errors.Is(err, store.ErrUnknownOutcome) {
			m.releaseInDoubt(l, i, next)
		}
		return err
	}
	var run *Run
	if h.Run != nil && h.Run.LeaseID == next.ID {
		run, err = m.newRun(m.ctx, l, h, began, false)
	}
	m.noteTaken(ctx, l, taken) // the next run is held meanwhile
	if run != nil {
		m.drainInBackground(run)
	}
	return err
}

// contender returns this Manager as one that takes a run over with a lease.
func (m *Manager) contender(next ledger.Lease) ledger.Contender {
	return ledger.Contender{
		How: ledger.Takeover(m.opts.Takeover), MaxAttempts: m.opts.Attempts, Lease: next,
	}
}

// noteTaken reports the message that a takeover has given up.
func (m *Manager) noteTaken(ctx context.Context, l *ledger.Ledger, taken ledger.Taken) {
	if taken.Dead == nil {
		return
	}
	m.noteDeadLetter(ctx, l.User(), taken.Dead.Message.ID, taken.Dead.RunID)
	m.logDropped(ctx, l.User(), taken.Dropped)
}

// logDropped logs the dead letters that had to go.
func (m *Manager) logDropped(ctx context.Context, user string, dropped []ledger.DeadLetter) {
	for _, d := range dropped {
		m.logEvent(ctx, slog.LevelWarn, "dead letter dropped", user,
			slog.String("message", d.Message.ID), slog.String("run", d.RunID))
	}
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
