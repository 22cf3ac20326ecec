package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// holder is a Manager as the holder of runs. It also observes the holders of other
// runs. It begins an incarnation when the first run begins, or in Open if it
// has a name, and another one when that has ended.
type holder struct {
	m       *core
	records *ledger.Holders
	turn    *turns.Line // of one: begins an incarnation
	current atomic.Pointer[incarnation]

	mu     sync.Mutex
	name   string // "" if there is none, or if another Manager has it now
	clocks clocks
	// seen is what it has seen of the runs that others hold, by user. All that wait
	// for a run share it: a new waiter continues from what was seen before.
	seen map[string]*observation
}

// incarnation is a holder record, which one goroutine, keep, renews as long as
// it has leases.
type incarnation struct {
	holder *holder
	id     string
	record *ledger.Incarnation // after begin, only for keep
	held   context.Context     // ends when the record is lost; its cause says why
	giveUp context.CancelCauseFunc
	wake   chan struct{} // capacity 1

	mu         sync.Mutex
	idle       bool      // keep waits for a lease, and has no timer
	doubted    bool      // a run was lost: the record may be that of another Manager with the name
	leases     int       // of runs that are held, or about to begin
	heldSince  time.Time // since when there are some
	ended      bool
	abandoned  []string  // leases that are not held, although heads may say so
	written    int       // how many of them the record has
	renewedAt  time.Time // when the last heartbeat that succeeded began
	heartbeats uint64    // as the record has them
	retryAt    time.Time // when a heartbeat that has failed is tried again
	reachedAt  time.Time // since when heartbeats have not failed
}

func newHolder(m *core, name string) *holder {
	return &holder{
		m: m, records: ledger.NewHolders(m.db, m.sealer), turn: turns.NewLine(1), name: name,
		seen: map[string]*observation{},
	}
}

// newIncarnation returns an incarnation that has one lease and is not written yet.
func (h *holder) newIncarnation() *incarnation {
	h.mu.Lock()
	defer h.mu.Unlock()
	record, now := h.records.NewIncarnation(h.name, h.m.ttl), time.Now()
	i := &incarnation{
		holder: h, id: record.ID(), record: record, wake: make(chan struct{}, 1), leases: 1, heldSince: now, renewedAt: now,
		reachedAt: now,
	}
	i.held, i.giveUp = context.WithCancelCause(context.Background())
	return i
}

// claim begins the incarnation of a holder that has a name. It ends the one
// before, also if that is the one of a Manager that is still there.
func (h *holder) claim(ctx context.Context) error {
	if h.name == "" || h.m.readOnly {
		return nil
	}
	i, err := h.begin(ctx)
	if err == nil {
		i.leave()
	}
	return err
}

// join returns the present incarnation, which has one more lease until leave is
// called. If there is none, it begins one, and tries that again while the store
// is away, until ctx ends or Options.StoreTimeout is over.
func (h *holder) join(ctx context.Context) (*incarnation, error) {
	if i := h.current.Load(); i != nil && i.enter() {
		return i, nil
	}
	if err := h.turn.Enter(ctx); err != nil {
		return nil, err
	}
	defer h.turn.Leave()
	if i := h.current.Load(); i != nil && i.enter() {
		return i, nil
	}
	ctx, cancel := h.m.withinStoreTimeout(ctx)
	defer cancel()
	var i *incarnation
	err := h.m.persist(ctx, "", mayPass, func(ctx context.Context) (err error) {
		i, err = h.begin(ctx)
		return err
	})
	return i, err
}

// begin begins an incarnation, which has one lease.
func (h *holder) begin(ctx context.Context) (*incarnation, error) {
	i := h.newIncarnation()
	err := i.record.Begin(ctx)
	i.heartbeats = i.record.Heartbeats()
	if errors.Is(err, store.ErrUnknownOutcome) {
		// It is known of the message: it is not accepted.
		err = &settledError{"workspace: the holder record was not written: ", err}
	}
	if err == nil && !h.m.background(i.keep) {
		err = ErrClosed
	}
	if err != nil {
		i.delete()
		return nil, err
	}
	h.current.Store(i)
	return i, nil
}

// holds reports whether this Manager has a lease of a run.
func (h *holder) holds(r *ledger.Run) (own, held bool) {
	i := h.current.Load()
	if i == nil || i.id != r.Holder {
		return false, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.ended && i.held.Err() == nil, !slices.Contains(i.abandoned, r.LeaseID)
}

// leaseOf returns the incarnation that has the lease of a run. It has one more
// lease until leave is called.
func (h *holder) leaseOf(r *ledger.Run) *incarnation {
	if i := h.current.Load(); i != nil && i.id == r.Holder && i.enter() {
		return i
	}
	i := h.newIncarnation()
	i.giveUp(fmt.Errorf("%w: its holder record is lost", ErrFenced))
	return i
}

// enter adds a lease. It reports false if the incarnation has ended.
func (i *incarnation) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended || i.held.Err() != nil {
		return false
	}
	if i.leases++; i.leases == 1 {
		i.heldSince = time.Now()
		if i.idle {
			turns.Wake(i.wake)
		}
	}
	return true
}

// leave undoes enter. Mostly another lease follows before the next heartbeat, so
// keep does not have to know that there is none.
func (i *incarnation) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.leases--; i.mayEnd() {
		turns.Wake(i.wake)
	}
}

// mayEnd reports whether the record is to be deleted. The caller holds mu.
func (i *incarnation) mayEnd() bool {
	return i.leases == 0 && (i.holder.m.ctx.Err() != nil || len(i.abandoned) > 0)
}

// doubt makes a heartbeat soon, also without leases, if the holder has a name. A run was
// lost, and that another Manager has the name would be the reason.
func (i *incarnation) doubt() {
	i.holder.mu.Lock()
	named := i.holder.name != ""
	i.holder.mu.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if named && !i.ended {
		i.doubted = true
		turns.Wake(i.wake)
	}
}

// hasLeases reports whether a heartbeat is for somebody, or to find out who has the name.
func (i *incarnation) hasLeases() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leases > 0 || i.doubted
}

// abandon says that a lease is not held, although the head of its run may name
// it: a heartbeat is not one for its run.
func (i *incarnation) abandon(leaseID string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if leaseID != "" && !slices.Contains(i.abandoned, leaseID) {
		i.abandoned = append(i.abandoned, leaseID)
		turns.Wake(i.wake)
	}
}

// renewals returns the number of heartbeats, as others see it, and when the last
// one began.
func (i *incarnation) renewals() (n uint64, last time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.heartbeats, i.renewedAt
}

// reachable returns the time for which heartbeats have not failed.
func (i *incarnation) reachable() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.retryAt.IsZero() {
		return 0
	}
	return time.Since(i.reachedAt)
}

// keep renews the record every third of the TTL while the incarnation has
// leases. It deletes the record when the Manager is closed. It also does so when
// the last lease is gone and others were abandoned, so that their runs are free
// and the record does not grow.
func (i *incarnation) keep() {
	defer i.delete()
	timer := time.NewTimer(0)
	defer timer.Stop()
	closed := i.holder.m.ctx.Done()
	for i.held.Err() == nil {
		due, idle, end := i.next()
		if end {
			return
		}
		timer.Stop()
		if !idle {
			timer.Reset(due)
		}
		select {
		case <-i.wake:
		case <-closed:
			closed = nil
		case <-timer.C:
			if i.hasLeases() {
				i.beat()
			}
		}
	}
}

// next returns when the next heartbeat is due, and whether the incarnation has
// no leases, or is to end.
func (i *incarnation) next() (due time.Duration, idle, end bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idle, i.ended = i.leases == 0 && !i.doubted, i.mayEnd()
	switch {
	case i.doubted:
	case !i.retryAt.IsZero():
		due = time.Until(i.retryAt)
	case i.written == len(i.abandoned):
		due = i.holder.m.ttl/3 - time.Since(i.renewedAt)
	}
	return due, i.idle, i.ended
}

// beat makes a heartbeat.
func (i *incarnation) beat() {
	m, began := i.holder.m, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), max(m.ttl/6, min(m.ttl/3, time.Second/4)))
	defer cancel()
	i.mu.Lock()
	i.doubted = false
	abandoned := i.abandoned
	age := min(began.Sub(i.renewedAt), began.Sub(i.heldSince)) // without leases, none is due
	i.mu.Unlock()
	ctx, op := m.beginHeartbeat(ctx, m.ttl-age)
	err := i.record.Renew(ctx, abandoned)
	op.end(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err == nil:
		if !i.retryAt.IsZero() {
			i.reachedAt, i.retryAt = time.Now(), time.Time{}
		}
		i.renewedAt, i.written, i.heartbeats = began, len(abandoned), i.record.Heartbeats()
	case errors.Is(err, ledger.ErrIncarnationEnded), errors.Is(err, store.ErrClosed): // a closed store does not come back
		i.giveUp(i.holder.forget(i, err))
	default:
		i.retryAt = time.Now().Add(max(time.Millisecond, m.ttl/32))
	}
}

// forget returns why the runs of an incarnation are lost. If another Manager has
// the name of the holder, this one goes on without: otherwise each would end the
// runs of the other again and again.
func (h *holder) forget(i *incarnation, err error) error {
	h.current.CompareAndSwap(i, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.name == "" || !errors.Is(err, ledger.ErrReplaced) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	} else {
		err = fmt.Errorf("%w: %w: %s", ErrFenced, ErrHolder, fault.Quote(h.name))
		h.name = ""
	}
	h.m.warnLater(h.m.ctx, "", alarmHolderLost, err)
	return err
}

// delete deletes the record.
func (i *incarnation) delete() {
	m := i.holder.m
	ctx, cancel := context.WithTimeout(context.Background(), m.ttl/2)
	defer cancel()
	if err := i.record.Withdraw(ctx); err != nil && !errors.Is(err, store.ErrClosed) { // others end it
		m.raise(ctx, alarmHolderLeft, "", err)
	}
}

// observationOf returns what was seen of the run of a user.
func (h *holder) observationOf(user string) *observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.seen[user]
	if o == nil {
		o = &observation{by: h}
		h.seen[user] = o
	}
	return o
}

// keepObservations forgets all observations but those of some users.
func (h *holder) keepObservations(users ...map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.seen, func(user string, _ *observation) bool {
		return !slices.ContainsFunc(users, func(kept map[string]bool) bool { return kept[user] })
	})
}

// noteBlind notes that a look at all of them has failed.
func (h *holder) noteBlind() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.seen {
		o.noteBlind()
	}
}

// observation is what a Manager has seen of the holder of a run, to find out
// whether that is gone.
type observation struct {
	by *holder

	mu     sync.Mutex
	lease  ledger.LeaseState
	holder ledger.HolderState
	since  time.Time // the last renewal was not later
	looked time.Time
	clock  time.Time // of this process, at that look
	blind  bool      // a look has failed since: what was not seen does not count
}

// look reports whether the holder of the run of a head is gone: see. It reads the
// record of the holder.
func (o *observation) look(ctx context.Context, h *ledger.Head) (gone bool, err error) {
	states, err := o.by.records.States(ctx, h.Run)
	if err != nil {
		o.noteBlind()
		return false, err
	}
	return o.see(ctx, h, states[0])
}

// noteBlind notes that a look has failed.
func (o *observation) noteBlind() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blind = true
}

// see compares a head and the state of its holder with what was seen before, and
// reports whether the run may be taken over. The holder is gone if its incarnation
// has ended, or if it has not renewed its lease for 1.5 × TTL. Then see ends the
// incarnation. The time is measured by this process alone.
func (o *observation) see(ctx context.Context, h *ledger.Head, state ledger.HolderState) (gone bool, err error) {
	own, held := o.by.holds(h.Run)
	if own && !held { // it has given the lease up
		state = ledger.HolderState{}
	}
	o.note(h, state, own && held)
	switch {
	case own && held, !state.Ended && o.untilExpired(h) > 0:
		return false, nil
	case state.Ended:
		return true, nil
	}
	err = o.by.records.End(ctx, h.Run, state)
	if errors.Is(err, ledger.ErrLeaseRenewed) || errors.Is(err, store.ErrUnknownOutcome) {
		// It has made a heartbeat, or another observer has ended it: the next
		// look shows which.
		return false, nil
	}
	return true, err
}

// note notes what a look has seen. held says that this Manager has the lease.
func (o *observation) note(h *ledger.Head, state ledger.HolderState, held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, before, blind := time.Now(), o.looked, o.blind
	clock := ledger.CurrentTime()
	if !held && !before.IsZero() && o.lease == h.LeaseState() && o.holder.Heartbeats != state.Heartbeats {
		o.by.compareClocks(h.Run.Holder, state.Time, o.clock, clock)
	}
	o.clock = clock
	renewed := o.lease != h.LeaseState() || o.holder != state
	o.lease, o.holder, o.looked, o.blind = h.LeaseState(), state, now, false
	switch {
	case held: // if it gives the lease up, that is seen for the first time
		o.since, o.looked = now, time.Time{}
	case before.IsZero():
		o.since = now
	case renewed:
		o.since = now.Add(-min(now.Sub(before), h.Run.LeaseTTL()/4))
	case blind: // the holder could not renew either, and gets its time back
		o.since = o.since.Add(now.Sub(before))
	}
}

// untilExpired returns the time until the holder counts as gone without another
// renewal.
func (o *observation) untilExpired(h *ledger.Head) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return h.Run.LeaseTTL()*3/2 - time.Since(o.since)
}
