package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// observation is what a Manager has seen of the holder of a run, to find out
// whether that is gone.
type observation struct {
	by     *holder
	lease  ledger.LeaseState
	holder ledger.HolderState
	since  time.Time // the last renewal was not later
	looked time.Time
	blind  bool // a look has failed since
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
		o.blind = true
		return holderSilent, err
	}
	return o.see(ctx, h, states[0])
}

// see compares a head and the state of its holder with what was seen before. The
// holder is gone if its incarnation has ended, or if it has not renewed its lease
// for 1.5 × TTL. Then see ends the incarnation. The time is measured by this
// process alone.
func (o *observation) see(ctx context.Context, h *ledger.Head, state ledger.HolderState) (verdict, error) {
	if own, held := o.by.holds(h.Run); own && held {
		o.looked = time.Time{}
		return holderRenewed, nil
	} else if own { // it has given the lease up
		state = ledger.HolderState{}
	}
	now, ttl := time.Now(), h.Run.LeaseTTL()
	result := holderSilent
	// A holder that the store was away from, too, gets the time to renew.
	first := o.looked.IsZero() || o.blind && now.Sub(o.looked) > ttl/2
	if o.blind = false; first || o.lease != h.LeaseState() || o.holder != state {
		o.lease, o.holder = h.LeaseState(), state
		o.since = now
		if !first {
			result = holderRenewed
			if earliest := now.Add(-ttl / 4); o.looked.After(earliest) {
				o.since = o.looked
			} else {
				o.since = earliest
			}
		}
	}
	o.looked = now
	switch {
	case state.Ended:
		return holderGone, nil
	case now.Sub(o.since) < ttl*3/2:
		return result, nil
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

// untilExpired returns the time until the holder counts as gone without another
// renewal.
func (o *observation) untilExpired(h *ledger.Head) time.Duration {
	return h.Run.LeaseTTL()*3/2 - time.Since(o.since)
}
