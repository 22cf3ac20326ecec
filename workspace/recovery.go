package workspace

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// watchRun watches the run of a workspace in the background until there is
// none, and takes it over if its lease is vacant or its holder dies. It makes a
// goroutine that does so already look at once.
func (m *Manager) watchRun(user string, l *ledger.Ledger) {
	if m.opts.Run == nil {
		return
	}
	look, first := m.markWatched(user)
	if !first {
		return
	}
	started := m.background(func() {
		ctx, cancel := context.WithCancel(m.accepting)
		defer cancel()
		m.background(func() { m.watchVacancy(ctx, l, look) })
		o := &observation{m: m}
		delay := backoff.Backoff{Min: m.opts.TTL / 4, Max: 10 * m.opts.TTL}
		for {
			found, err := m.takeOverIfExpired(ctx, l, o, look)
			ended := err == nil && !found || ctx.Err() != nil
			if ended && (m.unmarkWatched(user) || ctx.Err() != nil) {
				return
			}
			switch {
			case ended:
			case err != nil && !mayPass(err): // nobody can load the run, and each try writes the head
				_ = delay.Wait(ctx)
			default:
				delay.Reset()
				_ = waitOrWake(ctx, m.opts.TTL/4, look)
			}
		}
	})
	if !started {
		m.unmarkWatched(user)
	}
}

// watchVacancy wakes look when the run of a workspace has ended or its lease is
// vacant.
func (m *Manager) watchVacancy(ctx context.Context, l *ledger.Ledger, look chan<- struct{}) {
	m.watchHead(ctx, l, func(h *ledger.Head) {
		if h.Run == nil || h.Run.Vacant() {
			wake(look)
		}
	})
}

// takeOverIfExpired observes the run of a workspace until its lease is renewed
// or it ends. If its holder is gone, or its lease is vacant, it takes the run
// over and handles it in the background. It looks at the run when look is woken,
// and from time to time. found reports whether there was a run.
func (m *Manager) takeOverIfExpired(
	ctx context.Context, l *ledger.Ledger, o *observation, look <-chan struct{},
) (found bool, err error) {
	for {
		var h *ledger.Head
		result := holderGone
		err := persist(ctx, m.patience(), func(ctx context.Context) (err error) {
			if h, err = l.ReadHead(ctx); err == nil && h.Run != nil && !isFree(h) {
				result, err = o.look(ctx, h)
			}
			return err
		})
		if err == nil && h.Run != nil {
			l, err = m.keepLedger(l.User(), l)
		}
		switch {
		case err != nil || h.Run == nil:
			return false, err
		case result == holderGone:
			return true, m.takeOver(ctx, l, h.LeaseState())
		case result == holderRenewed:
			return true, nil
		}
		ttl := h.Run.LeaseTTL()
		if err := waitOrWake(ctx, min(ttl/4, max(ttl/64, o.untilExpired(h))), look); err != nil {
			return true, err
		}
	}
}

// isFree reports whether a run has a vacant lease, so that any Manager may take
// it at once. The run of a ticket is left to the Manager that has queued it.
func isFree(h *ledger.Head) bool { return h.Run != nil && h.Run.Vacant() && !h.Run.Message.Ticket }

// takeVacantRun begins the run of a head in the background if its lease is
// vacant.
func (m *Manager) takeVacantRun(l *ledger.Ledger, h *ledger.Head) {
	if m.opts.Run == nil || h == nil || h.Run == nil || !h.Run.Vacant() || h.Run.Message.Ticket {
		return
	}
	done := m.trackRun()
	started := m.background(func() {
		defer done()
		if m.takeOver(m.ctx, l, h.LeaseState()) != nil {
			m.watchRun(l.User(), l)
		}
	})
	if !started {
		done()
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
	defer m.trackRun()()
	next := l.NewLease()
	if m.trySlot(next.ID) {
		return m.takeOverWith(ctx, l, observed, next)
	}
	if !m.markWaiting(l.User()) {
		return nil
	}
	done := m.trackRun()
	started := m.background(func() {
		defer done()
		err := m.waitForSlot(m.accepting, next.ID)
		m.unmarkWaiting(l.User()) // a run that waits from now on may not be seen below
		if err == nil && m.takeOverLate(l, observed, next) != nil {
			m.watchRun(l.User(), l)
		}
	})
	if !started {
		done()
		m.unmarkWaiting(l.User())
	}
	return nil
}

// takeOverLate takes over a run that was observed some time ago, or one that
// waits meanwhile.
func (m *Manager) takeOverLate(l *ledger.Ledger, observed ledger.LeaseState, next ledger.Lease) error {
	h, err := l.ReadHead(m.accepting)
	if err != nil {
		m.freeSlot(next.ID)
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
	defer m.freeSlot(next.ID) // unless a run has it
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
	h, taken, err := l.TakeOver(ctx, c)
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
		How: ledger.Takeover(m.opts.Takeover), MaxAttempts: m.opts.Attempts, Lease: next, LeavePending: m.opts.Pending == PendingLeave,
	}
}

// noteTaken reports the message that a takeover has given up.
func (m *Manager) noteTaken(ctx context.Context, l *ledger.Ledger, taken ledger.Taken) {
	if taken.Dead == nil {
		return
	}
	m.noteDeadLetter(ctx, l.User(), taken.Dead.Message.ID, taken.Dead.RunID)
	m.logDropped(ctx, l.User(), taken.Dropped)
	m.reportDeadLetters(ctx, l, append(taken.Dropped, *taken.Dead))
}

// logDropped logs the dead letters that had to go.
func (m *Manager) logDropped(ctx context.Context, user string, dropped []ledger.DeadLetter) {
	for _, d := range dropped {
		m.logEvent(ctx, slog.LevelWarn, "dead letter dropped", user,
			slog.String("message", d.Message.ID), slog.String("run", d.RunID))
	}
}

// reportDeadLetters calls OnMessageDead.
func (m *Manager) reportDeadLetters(ctx context.Context, l *ledger.Ledger, list []ledger.DeadLetter) {
	if m.opts.Hooks.OnMessageDead == nil {
		return
	}
	for _, d := range list {
		if msg, err := readMessage(ctx, l, d.Message); err == nil {
			m.messageDead(ctx, l.User(), msg)
		}
	}
}

// Recover finds the runs whose holder has died, takes them over and drains
// their queues in the background; see Wait. It returns when every run that it
// has found has renewed its lease, has ended or was taken over, which takes
// more than 1.5 × TTL if a holder has died. Call it when a process starts, and
// from time to time in a process that runs permanently: nothing else finds a
// message whose sender and whose holder have both died.
func (m *Manager) Recover(ctx context.Context) error {
	leave, err := m.enter()
	if err != nil {
		return wrapError("recover", "", err)
	}
	defer leave()
	if m.readOnly {
		return wrapError("recover", "", store.ErrReadOnly)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.accepting, func() { cancel(context.Cause(m.accepting)) })()
	began := time.Now()
	var workspaces, runs atomic.Int64
	failed, err := m.forEachUser(ctx, "recover", func(user string) error {
		l, err := m.glimpseLedger(user)
		if err != nil {
			return err
		}
		found, err := m.takeOverIfExpired(ctx, l, &observation{m: m}, nil)
		workspaces.Add(1)
		if found {
			runs.Add(1)
		}
		return err
	})
	count := recoveryCounts{workspaces: int(workspaces.Load()), runs: int(runs.Load()), failed: failed}
	m.logRecovery(ctx, count, time.Since(began))
	return err
}

// maxGlimpses is the number of workspaces at which forEachUser looks
// concurrently.
const maxGlimpses = 64

// forEachUser calls fn for each user that may have a workspace, for many of them
// concurrently. It goes on after an error, unless the listing fails or ctx ends,
// and returns all errors and their number.
func (m *Manager) forEachUser(ctx context.Context, op string, fn func(user string) error) (failed int, err error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		free = make(chan struct{}, maxGlimpses)
	)
	fail := func(user string, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, wrapError(op, user, err))
	}
	for user, err := range ledger.Names(ctx, m.db, "") {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the store has read the names before
		}
		if err != nil {
			fail(user, err)
			break
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if err := fn(user); err != nil {
				fail(user, err)
			}
		})
	}
	wg.Wait()
	return len(errs), errors.Join(errs...)
}

// List yields the users that have a workspace, in the order of the keys in the
// store. It leaves out workspaces that were deleted.
func (m *Manager) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for u, err := range ledger.Heads(ctx, m.db, m.sealer, "") {
			if !yield(u.User, wrapError("list", u.User, err)) {
				return
			}
		}
	}
}
