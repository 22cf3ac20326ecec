package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
	"github.com/agentstate/state/workspace/work"
)

// recoverRuns takes over the runs whose holders have died, until the Manager
// accepts no more messages. It looks for them at once, and then every TTL: a
// holder that nobody waits for is found dead 2.5 × TTL after its last heartbeat,
// when it is looked at again 1.5 × TTL after it was seen first, also if somebody
// begins to wait meanwhile. What it reads depends on the number of runs that
// others hold, and not on that of workspaces. Each time it also calls expire.
func (m *Manager) recoverRuns(expire func(context.Context) error) {
	for {
		wait := m.opts.TTL - rand.N(m.opts.TTL/4+1) // Managers that were opened together do not look together
		due, err := m.lookAtRuns(m.accepting)
		if err == nil {
			err = expire(m.accepting)
		}
		switch {
		case errors.Is(err, store.ErrClosed):
			return
		case err != nil:
			m.holder.noteBlind()
			m.noteStoreError(m.accepting, "", err)
			wait /= 4
		case due < wait:
			wait = max(due, m.opts.TTL/64)
		}
		if backoff.Sleep(m.accepting, wait) != nil {
			return
		}
	}
}

// lookAtRuns looks at all runs that others hold and this Manager does not watch.
// It returns the time until the first of them counts as free if it is not
// renewed.
func (m *Manager) lookAtRuns(ctx context.Context) (due time.Duration, err error) {
	due = math.MaxInt64
	own, seen := m.ownUsers(), map[string]bool{}
	for heads, err := range ledger.Running.Heads(ctx, m.db, m.sealer, func(user string) bool { return own[user] }) {
		if err != nil {
			return 0, err
		}
		for _, u := range heads {
			if h := u.Head; h != nil && h.Sweeping && ledger.CurrentTime().Sub(h.Deleted) > 2*m.opts.TTL {
				m.sweepLater(u.User)
			}
		}
		heads = slices.DeleteFunc(heads, func(u ledger.UserHead) bool { return u.Head == nil || u.Head.Run == nil })
		runs := make([]*ledger.Run, len(heads))
		for i, u := range heads {
			runs[i] = u.Head.Run
		}
		states, err := m.holder.records.States(ctx, runs...)
		if err != nil {
			return 0, err
		}
		for i, u := range heads {
			seen[u.User] = true
			o, free := m.holder.observationOf(u.User), isFree(u.Head)
			if !free {
				if free, err = o.see(ctx, u.Head, states[i]); err != nil {
					m.noteStoreError(ctx, u.User, err)
				}
			}
			if !free {
				due = min(due, o.untilExpired(u.Head))
			} else if l, err := m.glimpseLedger(u.User); err == nil {
				m.watchRun(u.User, l)
			}
		}
	}
	m.holder.keepObservations(own, seen)
	return due, nil
}

// ownUsers returns the users whose runs this Manager holds, or watches.
func (m *Manager) ownUsers() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := map[string]bool{}
	for r := range m.localRuns {
		if r.lease.lost() == nil {
			own[r.ledger.User()] = true
		}
	}
	for user := range m.watched {
		own[user] = true
	}
	return own
}

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
		delay := backoff.Backoff{Min: m.opts.TTL / 4, Max: 10 * m.opts.TTL}
		for {
			next, err := m.takeOverIfFree(ctx, l)
			ended := err == nil && next == 0 || ctx.Err() != nil
			if ended && (m.unmarkWatched(user) || ctx.Err() != nil) {
				return
			}
			if mayPass(err) {
				delay.Reset()
				_ = turns.Wait(ctx, next, look)
			} else { // nobody can load the run, and each try writes the head
				_ = delay.Wait(ctx)
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
			turns.Wake(look)
		}
	}, func() {})
}

// takeOverIfFree looks at the run of a workspace. If its holder is gone, or its
// lease is vacant, it takes the run over and handles it in the background. It
// returns the time until the next look, or 0 if there was no run.
func (m *Manager) takeOverIfFree(ctx context.Context, l *ledger.Ledger) (next time.Duration, err error) {
	o := m.holder.observationOf(l.User())
	var h *ledger.Head
	var free bool
	looking, cancel := m.withinStoreTimeout(ctx)
	err = m.persist(looking, l.User(), mayPass, func(ctx context.Context) (err error) {
		if h, err = l.ReadHead(ctx); err == nil && h.Run != nil {
			if free = isFree(h); !free {
				free, err = o.look(ctx, h)
			}
		}
		if err != nil {
			o.noteBlind()
		}
		return err
	})
	cancel()
	switch {
	case err != nil:
		return m.opts.TTL / 4, err
	case h.Run == nil:
		return 0, nil
	}
	ttl := h.Run.LeaseTTL()
	if l, err = m.keepLedger(l.User(), l); err == nil && free {
		return ttl / 4, m.takeOver(ctx, l, h.LeaseState())
	}
	return min(ttl/4, max(ttl/64, o.untilExpired(h))), err
}

// isFree reports whether a run has a vacant lease, so that any Manager may take
// it at once. The run of a ticket is left to the Manager that has queued it.
func isFree(h *ledger.Head) bool { return h.Run != nil && h.Run.Vacant() && !h.Run.Message.Ticket }

// takeVacantRun begins the run of a head in the background if its lease is
// vacant.
func (m *Manager) takeVacantRun(l *ledger.Ledger, h *ledger.Head) {
	if m.opts.Run == nil || h == nil || !isFree(h) {
		return
	}
	m.trackInBackground(func() {
		if m.takeOver(m.ctx, l, h.LeaseState()) != nil {
			m.watchRun(l.User(), l)
		}
	})
}

// trackInBackground is runInBackground for what leads to a run, so that Wait waits
// for it.
func (m *Manager) trackInBackground(fn func()) bool {
	m.trackRun()
	started := m.background(func() {
		defer m.untrackRun()
		fn()
	})
	if !started {
		m.untrackRun()
	}
	return started
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
	if m.slots.Try(l.User(), next.ID) {
		return m.takeOverWith(ctx, l, observed, next)
	}
	if !m.slots.MarkWaiting(l.User()) {
		return nil
	}
	started := m.trackInBackground(func() {
		err := m.slots.Enter(m.accepting, l.User(), next.ID)
		m.slots.UnmarkWaiting(l.User()) // a run that waits from now on may not be seen below
		if err == nil && m.takeOverLate(l, observed, next) != nil {
			m.watchRun(l.User(), l)
		}
	})
	if !started {
		m.slots.UnmarkWaiting(l.User())
	}
	return nil
}

// takeOverLate takes over a run that was observed some time ago, or one that
// waits meanwhile.
func (m *Manager) takeOverLate(l *ledger.Ledger, observed ledger.LeaseState, next ledger.Lease) error {
	h, err := l.ReadHead(m.accepting)
	if err != nil {
		m.slots.Drop(next.ID)
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
	defer m.slots.Drop(next.ID) // unless a run has it
	i, err := m.holder.join(ctx)
	if err != nil {
		return err
	}
	defer i.leave()
	next = next.HeldBy(i.id)
	began := time.Now()
	c := m.contender(next)
	c.Observed = observed
	ctx, op := m.begin(ctx, work.Operation{Kind: work.OpTakeover, UserID: l.User(), Root: true})
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
		if errors.Is(err, ErrSchema) { // nobody else says that this build may not take the run
			m.raise(ctx, alarmNotBegun, l.User(), err)
		}
		return err
	}
	var run *Run
	if h.Run != nil && h.Run.LeaseID == next.ID {
		run, err = m.newRun(m.ctx, l, h, began, nil)
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
		How: m.opts.Takeover, MaxAttempts: m.opts.Attempts, Lease: next,
	}
}

// noteTaken reports the message that a takeover has given up.
func (m *Manager) noteTaken(ctx context.Context, l *ledger.Ledger, taken ledger.Taken) {
	if taken.Dead == nil {
		return
	}
	m.noteDeadLetter(ctx, l.User(), taken.Dead.Message.ID, taken.Dead.RunID, errors.New(taken.Dead.Reason))
	m.logDropped(ctx, l.User(), taken.Dropped)
}

// logDropped logs the dead letters that had to go.
func (m *Manager) logDropped(ctx context.Context, user string, dropped []ledger.DeadLetter) {
	for _, d := range dropped {
		m.raise(ctx, alarmDropped, user, errors.New(d.Reason), slog.String("message", d.Message.ID),
			slog.String("run", d.RunID))
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

// expirySends is the time after which a call that has expired, and is still not
// answered, is looked at again, in TTLs: the message that answers it may have to
// wait, or have been undone.
const expirySends = 15

// expirer returns a function that lets messages answer the calls that have expired,
// in all workspaces, and tells the program of those of which nobody has. It
// remembers where it has done so, and is for one goroutine.
func (m *Manager) expirer() func(context.Context) error {
	var sent map[ledger.Expiry]time.Time
	arrived := &arrivals{}
	return func(ctx context.Context) error {
		next, before := map[ledger.Expiry]time.Time{}, arrived
		arrived = before.next()
		for e, err := range ledger.Expired(ctx, m.db, m.sealer, ledger.CurrentTime()) {
			if err != nil {
				arrived.looked = time.Time{} // it has not seen all
				return err
			}
			arrived.seen[e] = true
			at, known := sent[e]
			if known && time.Since(at) < expirySends*m.opts.TTL {
				next[e] = at
				continue
			}
			v, err := m.View(ctx, e.User)
			failed := alarmExpired
			if err == nil {
				if odd := arrived.note(e, v, before, clockLeeway*m.opts.TTL); odd != nil {
					m.raise(ctx, alarmClock, e.User, odd)
				}
				if arrived.odd[e] {
					continue
				}
				err = m.expireCalls(ctx, v)
			}
			if err == nil {
				failed, err = alarmNotTold, m.tellLate(ctx, v)
			}
			switch {
			case err == nil, errors.Is(err, ErrNotSuspended): // somebody has decided
				next[e] = time.Now()
			case !errors.Is(err, ErrClosed) && !errors.Is(err, ErrBusy):
				m.raise(ctx, failed, e.User, err)
			}
		}
		sent = next
		return nil
	}
}

// expireCalls sends the message. Its id is that of the calls, so that several
// Managers send one, and an operator can see that it has failed. The program is told
// before, so that it is told also if this process dies.
func (m *Manager) expireCalls(ctx context.Context, v *View) error {
	user, expired := v.UserID(), []Suspended{}
	now, id := ledger.CurrentTime(), sha256.New()
	msg := Message{WhenBusy: BusyEnqueue}
	othersToo := !m.holder.clocks.differs(m.opts.TTL)
	for _, s := range v.Suspended() {
		if !s.Until.IsZero() && !s.Until.After(now) && (othersToo || s.clock == m.cacheSalt) {
			s.Expired = true
			msg.expired, expired = append(msg.expired, s.Key), append(expired, s)
			_, _ = io.WriteString(id, s.Key+"/"+s.Until.String()+"\n")
		}
	}
	msg.ID = "expiry-" + hex.EncodeToString(id.Sum(nil)[:16])
	failed := func(d DeadLetter) bool { return d.Message.ID == msg.ID }
	if len(msg.expired) == 0 || slices.ContainsFunc(v.DeadLetters, failed) {
		return nil
	}
	for _, call := range expired {
		if m.opts.Notify == nil {
			break
		}
		if err := m.notify(ctx, user, call, v.Redact); err != nil {
			return err
		}
	}
	out, err := m.Submit(ctx, user, msg)
	if err == nil && out.Status == StatusDuplicate { // it waits, which refuses another one, or its run was undone
		msg.ID = ""
		_, err = m.Submit(ctx, user, msg)
	}
	return err
}
