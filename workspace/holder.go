package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// holder is a Manager as the holder of runs. It begins an incarnation when the
// first run begins, or in Open if it has a name, and another one when that has
// ended.
type holder struct {
	m       *core
	records *ledger.Holders
	turn    *line // of one: begins an incarnation

	mu      sync.Mutex
	name    string // "" if there is none, or if another Manager has it now
	current *incarnation
}

// incarnation is a holder record, which one goroutine, keep, renews as long as
// it has leases.
type incarnation struct {
	m      *core
	holder *holder
	id     string
	record *ledger.Incarnation // after begin, only for keep
	held   context.Context     // ends when the record is lost; its cause says why
	giveUp context.CancelCauseFunc
	wake   chan struct{} // capacity 1

	mu        sync.Mutex
	leases    int // of runs that are held, or about to begin
	ended     bool
	abandoned map[string]bool // leases that are not held, although heads may say so
	unwritten []string        // those that the record does not have yet
	renewedAt time.Time       // when the last heartbeat that succeeded began
	beats     uint64          // as the record counts heartbeats, up to that one
	retryAt   time.Time       // when a heartbeat that has failed is tried again
	back      time.Time       // when heartbeats began to succeed again
}

func newHolder(m *core, name string) *holder {
	return &holder{m: m, records: ledger.NewHolders(m.db, m.sealer), turn: newLine(1), name: name}
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
	if i := h.joined(""); i != nil {
		return i, nil
	}
	if err := h.turn.Enter(ctx); err != nil {
		return nil, err
	}
	defer h.turn.Leave()
	if i := h.joined(""); i != nil {
		return i, nil
	}
	ctx, cancel := h.m.withinStoreTimeout(ctx)
	defer cancel()
	var i *incarnation
	err := h.m.persist(ctx, "", mayPass, func(ctx context.Context) (err error) {
		i, err = h.begin(ctx)
		return err
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return i, err
}

// joined returns the present incarnation as join does, if it has an id, or nil.
// With "", any will do.
func (h *holder) joined(id string) *incarnation {
	h.mu.Lock()
	i := h.current
	h.mu.Unlock()
	if i == nil || id != "" && i.id != id || !i.enter() {
		return nil
	}
	return i
}

// begin begins an incarnation, which has one lease.
func (h *holder) begin(ctx context.Context) (*incarnation, error) {
	h.mu.Lock()
	name := h.name
	h.mu.Unlock()
	record := h.records.NewIncarnation(name, h.m.ttl)
	i := &incarnation{
		m: h.m, holder: h, id: record.ID(), record: record, wake: make(chan struct{}, 1), leases: 1, abandoned: map[string]bool{},
	}
	i.held, i.giveUp = context.WithCancelCause(context.Background())
	i.renewedAt = time.Now()
	err := record.Begin(ctx)
	i.beats = record.Heartbeats()
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
	h.mu.Lock()
	h.current = i
	h.mu.Unlock()
	return i, nil
}

// holds reports whether this Manager has a lease of a run.
func (h *holder) holds(r *ledger.Run) (own, held bool) {
	h.mu.Lock()
	i := h.current
	h.mu.Unlock()
	if i == nil || i.id != r.Holder {
		return false, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.ended && i.held.Err() == nil, !i.abandoned[r.LeaseID]
}

// heartbeats returns the number of heartbeats of the holder of a run. It reads
// one value of the store, unless the holder is this Manager.
func (h *holder) heartbeats(ctx context.Context, r *ledger.Run) (uint64, error) {
	h.mu.Lock()
	i := h.current
	h.mu.Unlock()
	if i != nil && i.id == r.Holder {
		return i.heartbeats(), nil
	}
	return h.records.Heartbeats(ctx, r)
}

// leaseOf returns the incarnation that has the lease of a run. It has one more
// lease until leave is called.
func (h *holder) leaseOf(r *ledger.Run) *incarnation {
	if r.Holder != "" {
		if i := h.joined(r.Holder); i != nil {
			return i
		}
	}
	i := &incarnation{id: r.Holder, wake: make(chan struct{}, 1), leases: 1, abandoned: map[string]bool{}}
	i.held, i.giveUp = context.WithCancelCause(context.Background())
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
		wake(i.wake)
	}
	return true
}

// leave undoes enter.
func (i *incarnation) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.leases--; i.leases == 0 {
		wake(i.wake)
	}
}

// abandon says that a lease is not held, although the head of its run may name
// it: a heartbeat is not one for its run.
func (i *incarnation) abandon(leaseID string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if leaseID != "" && !i.abandoned[leaseID] {
		i.abandoned[leaseID] = true
		i.unwritten = append(i.unwritten, leaseID)
		i.retryAt = time.Time{}
		wake(i.wake)
	}
}

// lastRenewed returns when the last heartbeat that succeeded began.
func (i *incarnation) lastRenewed() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.renewedAt
}

// reachable returns the time for which heartbeats have not failed.
func (i *incarnation) reachable() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.retryAt.IsZero():
		return 0
	case i.back.IsZero():
		return math.MaxInt64
	}
	return time.Since(i.back)
}

// heartbeats returns the number of heartbeats as others see it.
func (i *incarnation) heartbeats() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.beats
}

// keep renews the record every third of the TTL while the incarnation has
// leases. It deletes the record when the Manager is closed. It also does so when
// the last lease is gone and others were abandoned, so that their runs are free
// and the record does not grow.
func (i *incarnation) keep() {
	defer i.delete()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, idle, end := i.next()
		if end {
			return
		}
		timer.Stop()
		var closed <-chan struct{}
		if idle {
			closed = i.m.ctx.Done()
		} else {
			timer.Reset(due)
		}
		select {
		case <-i.wake:
		case <-closed:
		case <-timer.C:
			if i.beat(); i.held.Err() != nil {
				return
			}
		}
	}
}

// next returns when the next heartbeat is due, and whether the incarnation has
// no leases, or is to end.
func (i *incarnation) next() (due time.Duration, idle, end bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	idle = i.leases == 0
	i.ended = idle && (i.m.ctx.Err() != nil || len(i.abandoned) > 0)
	switch {
	case !i.retryAt.IsZero():
		due = time.Until(i.retryAt)
	case len(i.unwritten) == 0:
		due = i.m.ttl/3 - time.Since(i.renewedAt)
	}
	return due, idle, i.ended
}

// beat makes a heartbeat.
func (i *incarnation) beat() {
	ttl := i.m.ttl
	ctx, cancel := context.WithTimeout(context.Background(), max(ttl/6, min(ttl/3, time.Second/4)))
	defer cancel()
	i.mu.Lock()
	for _, id := range i.unwritten {
		i.record.Abandon(id)
	}
	written := len(i.unwritten)
	i.mu.Unlock()
	began := time.Now()
	ctx, op := i.m.beginHeartbeat(ctx, ttl-time.Since(i.lastRenewed()))
	err := i.record.Renew(ctx)
	op.end(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		if !i.retryAt.IsZero() {
			i.back = time.Now()
		}
		i.renewedAt, i.retryAt, i.unwritten, i.beats = began, time.Time{}, i.unwritten[written:], i.record.Heartbeats()
		return
	}
	if errors.Is(err, ledger.ErrIncarnationEnded) || errors.Is(err, store.ErrClosed) { // a closed store does not come back
		i.giveUp(i.holder.forget(i, err))
		return
	}
	i.retryAt = time.Now().Add(max(time.Millisecond, ttl/32))
}

// forget returns why the runs of an incarnation are lost. If another Manager has
// the name of the holder, this one goes on without: otherwise each would end the
// runs of the other again and again.
func (h *holder) forget(i *incarnation, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == i {
		h.current = nil
	}
	if h.name == "" || !errors.Is(err, ledger.ErrReplaced) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	} else {
		err = fmt.Errorf("%w: %w: %s", ErrFenced, ErrHolder, fault.Quote(h.name))
		h.name = ""
	}
	h.m.warnLater(h.m.ctx, "", "holder record was lost", err)
	return err
}

// delete deletes the record.
func (i *incarnation) delete() {
	ctx, cancel := context.WithTimeout(context.Background(), i.m.ttl/2)
	defer cancel()
	if err := i.record.Withdraw(ctx); err != nil && !errors.Is(err, store.ErrClosed) { // others end it
		i.m.logWarning(ctx, "", "holder record was not deleted", err)
	}
}

// observations are what a Manager has seen of the runs that others hold, by user.
// All that look at a run share them: who begins to wait knows what was seen
// before, and what it has seen is known after it.
type observations struct {
	by *holder

	mu   sync.Mutex
	seen map[string]*observation
}

func (s *observations) of(user string) *observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.seen[user]
	if o == nil {
		o = &observation{by: s.by}
		s.seen[user] = o
	}
	return o
}

// keep forgets all observations but those of some users.
func (s *observations) keep(users ...map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.seen, func(user string, _ *observation) bool {
		return !slices.ContainsFunc(users, func(kept map[string]bool) bool { return kept[user] })
	})
}

// noteBlind notes that a look at all of them has failed.
func (s *observations) noteBlind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.seen {
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
	blind  bool // a look has failed since: what was not seen does not count
}

// A verdict says what is known of the holder of a run.
type verdict int

const (
	holderSilent  verdict = iota // nothing new
	holderRenewed                // it has renewed its lease since the last look
	holderGone                   // the run may be taken over
)

// look looks after the holder of the run of a head: see. It reads the record of
// the holder.
func (o *observation) look(ctx context.Context, h *ledger.Head) (verdict, error) {
	states, err := o.by.records.States(ctx, h.Run)
	if err != nil {
		o.noteBlind()
		return holderSilent, err
	}
	return o.see(ctx, h, states[0])
}

// noteBlind notes that a look has failed.
func (o *observation) noteBlind() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blind = true
}

// see compares a head and the state of its holder with what was seen before. The
// holder is gone if its incarnation has ended, or if it has not renewed its lease
// for 1.5 × TTL. Then see ends the incarnation. The time is measured by this
// process alone.
func (o *observation) see(ctx context.Context, h *ledger.Head, state ledger.HolderState) (verdict, error) {
	own, held := o.by.holds(h.Run)
	if own && !held { // it has given the lease up
		state = ledger.HolderState{}
	}
	switch result := o.note(h, state, own && held); {
	case own && held, !state.Ended && o.untilExpired(h) > 0:
		return result, nil
	case state.Ended:
		return holderGone, nil
	}
	err := o.by.records.End(ctx, h.Run, state)
	switch {
	case errors.Is(err, ledger.ErrLeaseRenewed), errors.Is(err, store.ErrUnknownOutcome):
		// It has made a heartbeat, or another observer has ended it: the next
		// look shows which.
		return holderSilent, nil
	}
	return holderGone, err
}

// note notes what a look has seen, and reports whether that is new. held says
// that this Manager has the lease.
func (o *observation) note(h *ledger.Head, state ledger.HolderState, held bool) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	if held {
		o.looked = time.Time{}
		return holderRenewed
	}
	now, before := time.Now(), o.looked
	renewed := o.lease != h.LeaseState() || o.holder != state
	o.lease, o.holder, o.looked = h.LeaseState(), state, now
	blind := o.blind
	o.blind = false
	switch {
	case before.IsZero():
		o.since = now
	case renewed:
		o.since = now.Add(-min(now.Sub(before), h.Run.LeaseTTL()/4))
		return holderRenewed
	case blind: // the holder could not renew either, and gets its time back
		o.since = o.since.Add(now.Sub(before))
	}
	return holderSilent
}

// untilExpired returns the time until the holder counts as gone without another
// renewal.
func (o *observation) untilExpired(h *ledger.Head) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return h.Run.LeaseTTL()*3/2 - time.Since(o.since)
}
