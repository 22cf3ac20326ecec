package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
)

// Each method here is one change of the head, by one compare-and-set. There are no
// others.

// offer is a message for a workspace, and what its sender wants.
type submission struct {
	message  pendingMessage
	body     []byte // the message, if it does not fit into the item
	busy     Busy
	maxQueue int // how many may wait
	lease    runLease
}

// tenure is what a run is to be when it begins: its ids, and for how long its
// holder may be silent.
type runLease struct {
	leaseID, runID string
	ttl            time.Duration
	begun          time.Time
}

func (l *ledger) newLease() runLease {
	return runLease{leaseID: newID(), runID: newID(), ttl: l.ttl, begun: l.now()}
}

// begin makes an item the run.
func (d *transition) beginRun(i pendingMessage, t runLease) {
	d.Token++
	d.Run = &activeRun{
		LeaseID: t.leaseID, RunID: t.runID, Token: d.Token, TTL: t.ttl.Milliseconds(),
		Message: i, Base: d.position(), Begun: t.begun,
	}
}

// next makes the first of the queue the run, or none if nobody waits.
func (d *transition) beginNextRun(t runLease) {
	d.Run = nil
	if len(d.Queue) == 0 {
		return
	}
	first := d.Queue[0]
	if d.Queue = d.Queue[1:]; len(d.Queue) == 0 {
		d.Queue = nil
	}
	d.beginRun(first, t)
}

// close ends an item.
func (d *transition) finishMessage(i pendingMessage, as string) {
	d.markFinished(i.ID, as)
	if i.BodyBlob != nil {
		d.dropBlob(*i.BodyBlob)
	}
}

// mine returns the run if the lease is still the holder's.
func (d *transition) checkLease(lease string, message string) error {
	if d.Run != nil && d.Run.LeaseID == lease {
		return nil
	}
	switch d.messageState(message) {
	case finishedInterrupted, finishedRolledBack, finishedReset:
		return fmt.Errorf("%w: %w", ErrFenced, ErrInterrupted)
	}
	return ErrFenced
}

// write adds a record. Its effects fit the content at the head.
func (d *transition) addRecord(r Record) error {
	r.Version = d.Version + 1
	e, err := r.chainAfter(d.Chain)
	if err != nil {
		return err
	}
	return d.appendEntry(e)
}

// closeCalls adds a record that answers the calls of tools that the run has left
// open, so that the next prompt is accepted.
func (d *transition) answerPendingCalls(now time.Time) error {
	doc, err := d.ledger.content(d.ctx, d.head, d.position())
	if err != nil {
		return err
	}
	effects, err := doc.AnswerPending()
	if err != nil || len(effects) == 0 {
		return err
	}
	return d.addRecord(d.newRecord(KindInterrupt, now, effects))
}

// takeBack adds a record that undoes what the run has committed.
func (d *transition) undoRun(now time.Time) error {
	doc, err := d.ledger.content(d.ctx, d.head, d.position())
	if err != nil {
		return err
	}
	base, err := d.ledger.content(d.ctx, d.head, d.Run.Base)
	if err != nil {
		return err
	}
	// Nobody but the run has written since its base.
	effects := doc.Revert(base)
	if len(effects) == 0 {
		return nil
	}
	return d.addRecord(d.newRecord(KindRollback, now, effects))
}

// record returns a record of the run.
func (d *transition) newRecord(kind Kind, now time.Time, effects []state.Effect) Record {
	return Record{
		Kind: kind, Time: now, RunID: d.Run.RunID, Lease: d.Run.LeaseID, Message: d.Run.Message.ID, Effects: effects,
	}
}

// submit hands over a message. It returns what has become of it: Started,
// Queued, Duplicate or Rejected.
func (l *ledger) submit(ctx context.Context, o submission) (*head, Status, error) {
	var status Status
	h, err := l.commitHead(ctx, func(d *transition) error {
		if d.messageState(o.message.ID) != "" {
			status = StatusDuplicate
			return errNoChange
		}
		i := o.message
		if d.Run != nil && o.busy == BusyReject {
			status = StatusRejected
			return errNoChange
		}
		if d.Run != nil && o.busy == BusyEnqueue && len(d.Queue) >= o.maxQueue {
			return ErrQueueFull
		}
		if o.body != nil {
			body := d.addBlob(o.body)
			i.BodyBlob = &body
		}
		switch {
		case d.Run == nil:
			d.beginRun(i, o.lease)
			status = StatusStarted
			return nil
		case o.busy == BusyEnqueue:
			d.Queue = append(d.Queue, i)
			status = StatusQueued
			return nil
		}
		as, stop := finishedInterrupted, d.answerPendingCalls
		if o.busy == BusyRollback {
			as, stop = finishedRolledBack, d.undoRun
		}
		if err := stop(o.lease.begun); err != nil {
			return err
		}
		d.finishMessage(d.Run.Message, as)
		d.beginRun(i, o.lease)
		status = StatusStarted
		return nil
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	if err != nil {
		status = ""
	}
	return h, status, err
}

// renew shows that the holder lives.
func (l *ledger) renew(ctx context.Context, lease, message string) (*head, error) {
	return l.commitHead(ctx, func(d *transition) error {
		if err := d.checkLease(lease, message); err != nil {
			return err
		}
		d.Run.Renewals++
		return nil
	})
}

// commit adds a record of a run, and returns the point to which it leads. The
// effects fit the content at a point, which is where the run has left it.
func (l *ledger) commit(ctx context.Context, lease, message string, at position, effects []state.Effect, purge bool) (position, error) {
	now := l.now()
	var to position
	_, err := l.commitHead(ctx, func(d *transition) error {
		if err := d.checkLease(lease, message); err != nil {
			return err
		}
		d.Run.Renewals++
		if err := d.addRunRecord(KindStep, at, now, effects, purge); err != nil {
			return err
		}
		to = d.position()
		return nil
	})
	return to, err
}

// behind is what a run returns whose last record is not the last one any more. The
// run is the only one to add any, so they were lost.
func (d *transition) errRecordsLost() error {
	return fmt.Errorf("%w: %s: what the run has committed is gone", ErrRolledBack, d.ledger.key)
}

// step adds a record to the point for which it was made.
func (d *transition) addRunRecord(kind Kind, at position, now time.Time, effects []state.Effect, purge bool) error {
	if d.position() != at {
		return d.errRecordsLost()
	}
	if err := d.addRecord(d.newRecord(kind, now, effects)); err != nil {
		return err
	}
	if purge {
		d.Purge = d.Version
	}
	return nil
}

// finish adds the last record of a run, and begins the next run if a message
// waits.
func (l *ledger) finish(ctx context.Context, lease, message string, at position, effects []state.Effect, purge bool, next runLease) (*head, position, error) {
	now := l.now()
	var to position
	h, err := l.commitHead(ctx, func(d *transition) error {
		if err := d.checkLease(lease, message); err != nil {
			return err
		}
		if d.position() != at {
			return d.errRecordsLost()
		}
		if len(effects) > 0 {
			if err := d.addRunRecord(KindFinish, at, now, effects, purge); err != nil {
				return err
			}
		}
		to = d.position()
		d.finishMessage(d.Run.Message, finishedHandled)
		d.beginNextRun(next)
		return nil
	})
	return h, to, err
}

// fail ends a run whose message cannot be handled. What it has committed stays.
func (l *ledger) fail(ctx context.Context, lease, message string, at position, next runLease) (*head, error) {
	now := l.now()
	return l.commitHead(ctx, func(d *transition) error {
		if err := d.checkLease(lease, message); err != nil {
			return err
		}
		if d.position() != at {
			return d.errRecordsLost()
		}
		if err := d.answerPendingCalls(now); err != nil {
			return err
		}
		d.finishMessage(d.Run.Message, finishedFailed)
		d.beginNextRun(next)
		return nil
	})
}

// errAlive is returned for a run that was not silent for long enough.
var errLeaseRenewed = errors.New("workspace: the run lives")

// takeOver makes a run the caller's that has shown no sign of life since it was
// seen. A run that was tried too often goes to the dead.
func (l *ledger) takeOver(ctx context.Context, seen leaseState, how Takeover, attempts int, next runLease) (*head, error) {
	return l.commitHead(ctx, func(d *transition) error {
		if leaseStateOf(d.head) != seen {
			return errLeaseRenewed
		}
		stop := d.answerPendingCalls
		if how == TakeoverRestart {
			stop = d.undoRun
		}
		if err := stop(next.begun); err != nil {
			return err
		}
		if how == TakeoverRestart {
			d.Run.Base = d.position()
		}
		if d.Run.Attempt+1 >= attempts {
			d.DeadLetters = append(d.DeadLetters, deadLetter{Message: d.Run.Message, Attempt: d.Run.Attempt + 1})
			for len(d.DeadLetters) > maxDeadLetters {
				d.finishMessage(d.DeadLetters[0].Message, finishedFailed)
				d.DeadLetters = d.DeadLetters[1:]
			}
			d.beginNextRun(next)
			return nil
		}
		d.Token++
		d.Run.LeaseID, d.Run.Token, d.Run.TTL, d.Run.Renewals = next.leaseID, d.Token, next.ttl.Milliseconds(), 0
		d.Run.Attempt++
		return nil
	})
}

// pulse is what shows that the holder of a run lives: it changes.
type leaseState struct {
	leaseID  string
	renewals uint64
}

func leaseStateOf(h *head) leaseState {
	if h.Run == nil {
		return leaseState{}
	}
	return leaseState{h.Run.LeaseID, h.Run.Renewals}
}

// errMoved is returned for effects that do not fit the content any more.
var errContentChanged = errors.New("workspace: content has changed")

// update adds a record while there is no run.
func (l *ledger) update(ctx context.Context, at position, effects []state.Effect, purge bool) (*head, error) {
	now := l.now()
	return l.commitHead(ctx, func(d *transition) error {
		if d.Run != nil {
			return ErrBusy
		}
		if d.position() != at {
			return errContentChanged
		}
		if err := d.addRecord(Record{Kind: KindUpdate, Time: now, Effects: effects}); err != nil {
			return err
		}
		if purge {
			d.Purge = d.Version
		}
		return nil
	})
}

// reset empties the workspace and returns the ids of the messages that it dropped.
func (l *ledger) reset(ctx context.Context) (*head, []string, error) {
	var ids []string
	h, err := l.commitHead(ctx, func(d *transition) error {
		if d.Seq == 0 {
			return errNoChange
		}
		for _, r := range d.blobRefs() {
			if r.To == 0 {
				d.dropBlob(r)
			}
		}
		if err := d.dropSegments(d.Segments); err != nil {
			return err
		}
		var items []pendingMessage
		if d.Run != nil {
			items = append(items, d.Run.Message)
		}
		items = append(items, d.Queue...)
		for _, x := range d.DeadLetters {
			items = append(items, x.Message)
		}
		// Not before nothing can fail: an earlier attempt may turn out to have been made.
		ids = nil
		// As long as they are known they are not taken again.
		for _, i := range items {
			d.Finished = append(d.Finished, finishedMessage{ID: i.ID, Outcome: finishedReset})
			ids = append(ids, i.ID)
		}
		d.Finished = d.Finished[max(0, len(d.Finished)-max(maxFinished, len(ids))):]
		d.Epoch++
		d.Token++
		d.Version++
		d.Chain = hash([]byte(d.Chain), []byte("reset"))
		d.Run, d.Queue, d.DeadLetters, d.Segments, d.Tail, d.Purge = nil, nil, nil, nil, nil, 0
		d.Snapshot = &snapshot{position: d.position()}
		return nil
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return h, ids, err
}
