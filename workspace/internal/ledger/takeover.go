package ledger

import (
	"context"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/work"
)

// ErrLeaseRenewed is returned for a run whose lease was renewed, or which has
// ended, since it was observed.
var ErrLeaseRenewed = fault.Final("workspace: the lease was renewed")

// Contender is a Manager that takes a run over.
type Contender struct {
	Observed LeaseState // the heartbeat that was not renewed, or a vacant lease
	// Own is the id of a lease of the contender itself that is over, or "". With
	// it, nothing has to be observed.
	Own         string
	How         work.Takeover
	MaxAttempts int
	Lease       Lease
	// Ticket is the id of the ticket that the Manager has queued, or "". The run
	// of another ticket ends: nobody else can do its work.
	Ticket string
}

// Taken is the result of a takeover.
type Taken struct {
	Dead    *DeadLetter  // the message, if it was given up
	Dropped []DeadLetter // the dead letters that had to go
}

// TakeOver gives a run whose lease is vacant, or was not renewed since it was
// observed, to the contender, or to nobody if its lease is vacant. Unless the
// lease before was vacant, it counts an attempt.
// A run that was begun too often becomes a dead letter. The calls that it has left
// open stay so for the contender.
func (l *Ledger) TakeOver(ctx context.Context, c Contender) (*Head, Taken, error) {
	var taken Taken
	h, err := l.commitFitting(ctx, func(t *transition) error {
		if !c.mayTake(t.Head) {
			return ErrLeaseRenewed
		}
		result, err := t.takeOver(c)
		if err == nil && t.Run != nil && c.Lease.ID != "" && t.Run.LeaseID == c.Lease.ID {
			err = t.reader.checkFits(t.ctx, t.Head)
		}
		if err == nil { // else an earlier attempt may turn out to have taken effect
			taken = result
		}
		return err
	})
	return h, taken, err
}

// mayTake reports whether the run of a head has the lease that is over.
func (c Contender) mayTake(h *Head) bool {
	switch {
	case h.Run == nil:
		return false
	case c.Own != "":
		return h.Run.LeaseID == c.Own
	}
	return h.LeaseState() == c.Observed
}

func (t *transition) takeOver(c Contender) (taken Taken, err error) {
	kind, stop := KindInterrupt, t.answerPendingCalls
	if c.How == work.TakeoverRestart {
		kind, stop = KindRollback, t.undoRun
	}
	now := c.Lease.began
	if t.Run.Message.Ticket && t.Run.Message.ID != c.Ticket {
		effects, err := stop()
		if err != nil {
			return taken, err
		}
		if err := t.endMessage(t.runRecord(kind, now, effects)); err != nil {
			return taken, err
		}
		return taken, t.beginNextRun(c.Lease)
	}
	attempt := t.Run.Attempt
	if !t.Run.Vacant() {
		attempt++
	}
	if attempt >= c.MaxAttempts {
		if c.How != work.TakeoverRestart && !t.Run.Message.Ticket {
			stop = t.leavePendingCalls
		}
		effects, err := stop()
		if err != nil {
			return taken, err
		}
		reason := fmt.Sprintf("its run was begun %d times, and its holders died or lost their leases", attempt)
		if err := t.giveUp(effects, kind, attempt, reason, now); err != nil {
			return taken, err
		}
		list, err := t.reader.DeadLetters(t.ctx, t.Head)
		if err != nil {
			return taken, err
		}
		if len(list) > 0 && !t.Run.Message.Ticket {
			taken.Dead = &list[len(list)-1]
		}
		taken.Dropped = t.droppedLetters
		return taken, t.beginNextRun(c.Lease)
	}
	if c.How == work.TakeoverRestart {
		if err := t.restartRun(now); err != nil {
			return taken, err
		}
	}
	t.Token++
	t.Run.LeaseID, t.Run.Token, t.Run.TTL, t.Run.Renewals = c.Lease.ID, t.Token, c.Lease.ttl.Milliseconds(), 0
	t.Run.Holder, t.Run.Attempt = c.Lease.holder, attempt
	return taken, nil
}
