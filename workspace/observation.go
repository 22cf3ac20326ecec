package workspace

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

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
