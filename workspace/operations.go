package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

// The methods in this file are all operations on a head, except for compaction.
// Each replaces the head by one compare-and-set.

// submission is a message for a workspace, with what its sender and the Manager
// want.
type submission struct {
	message  pendingMessage
	body     []byte // takes the place of a large message.Body
	busy     Busy
	maxQueue int
	lease    runLease // of the run that may begin
}

// maxInlineBody is the maximum length of a message in the head.
var maxInlineBody = 1 << 10

// newSubmission checks a message. The submission has no lease yet.
func newSubmission(msg Message, defaultBusy Busy, maxQueue int) (submission, error) {
	s := submission{busy: msg.Busy, maxQueue: maxQueue}
	if !s.busy.valid() {
		return s, fmt.Errorf("%w: message with an unknown Busy", ErrInvalid)
	}
	if s.busy == BusyDefault {
		s.busy = defaultBusy
	}
	if msg.ID == "" {
		msg.ID = newID()
	}
	data, err := msg.encode()
	if err != nil {
		return s, err
	}
	s.message = pendingMessage{ID: msg.ID, At: currentTime()}
	if len(data) > maxInlineBody {
		s.body = data
	} else {
		s.message.Body = data
	}
	return s, nil
}

func (l *ledger) newLease() runLease {
	return runLease{leaseID: newID(), runID: newID(), ttl: l.ttl, began: l.now()}
}

// submit hands over a message. The status is StatusStarted, StatusQueued,
// StatusDuplicate or StatusRejected.
func (l *ledger) submit(ctx context.Context, s submission) (*head, Status, error) {
	var status Status
	h, err := l.commitHead(ctx, func(t *transition) error {
		st, err := t.submit(s)
		if st != "" { // else an earlier attempt may turn out to have taken effect
			status = st
		}
		return err
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	if err != nil {
		status = ""
	}
	return h, status, err
}

func (t *transition) submit(s submission) (Status, error) {
	queued := t.Run != nil && s.busy == BusyEnqueue
	switch {
	case t.messageState(s.message.ID) != "":
		return StatusDuplicate, errNoChange
	case t.Run != nil && s.busy == BusyReject:
		return StatusRejected, errNoChange
	case queued && len(t.Queue) >= s.maxQueue:
		return "", ErrQueueFull
	}
	m := s.message
	if s.body != nil {
		body := t.addBlob(s.body)
		m.BodyBlob = &body
	}
	if queued {
		t.Queue = append(t.Queue, m)
		return StatusQueued, nil
	}
	if t.Run != nil {
		outcome, stop := finishedInterrupted, t.answerPendingCalls
		if s.busy == BusyRollback {
			outcome, stop = finishedRolledBack, t.undoRun
		}
		if err := stop(s.lease.began); err != nil {
			return "", err
		}
		t.finishMessage(t.Run.Message, outcome)
	}
	t.beginRun(m, s.lease)
	return StatusStarted, nil
}

// change is a change of the content.
type change struct {
	effects []state.Effect
	purge   bool // a secret is replaced or deleted
}

// renew renews the lease of a run: it is the heartbeat of its holder.
func (l *ledger) renew(ctx context.Context, by holder) (*head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if err := t.checkLease(by); err != nil {
			return err
		}
		t.Run.Renewals++
		return nil
	})
}

// commit adds a record of a run and returns the position that it leads to. It
// renews the lease.
func (l *ledger) commit(ctx context.Context, by holder, c change) (position, error) {
	now := l.now()
	var to position
	_, err := l.commitHead(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		t.Run.Renewals++
		if err := t.addRunRecord(KindStep, now, c.effects); err != nil {
			return err
		}
		t.markPurge(c.purge)
		to = t.position()
		return nil
	})
	return to, err
}

// finish adds the last record of a run, and begins the next run if a message
// waits. It also returns the position that the record leads to.
func (l *ledger) finish(ctx context.Context, by holder, c change, next runLease) (*head, position, error) {
	now := l.now()
	var to position
	h, err := l.commitHead(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		if len(c.effects) > 0 {
			if err := t.addRunRecord(KindFinish, now, c.effects); err != nil {
				return err
			}
			t.markPurge(c.purge)
		}
		to = t.position()
		t.finishMessage(t.Run.Message, finishedHandled)
		t.beginNextRun(next)
		return nil
	})
	return h, to, err
}

// fail ends a run whose message cannot be handled. Its committed changes stay.
func (l *ledger) fail(ctx context.Context, by holder, next runLease) (*head, error) {
	now := l.now()
	return l.commitHead(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		if err := t.answerPendingCalls(now); err != nil {
			return err
		}
		t.finishMessage(t.Run.Message, finishedFailed)
		t.beginNextRun(next)
		return nil
	})
}

// errLeaseRenewed is returned for a run whose lease was renewed, or which has
// ended, since it was observed.
var errLeaseRenewed = errors.New("workspace: the lease was renewed")

// takeOver gives a run whose lease was not renewed since it was observed to the
// caller. A run that was begun too often becomes a dead letter.
func (l *ledger) takeOver(
	ctx context.Context, observed leaseState, how Takeover, maxAttempts int, next runLease,
) (*head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if leaseStateOf(t.head) != observed {
			return errLeaseRenewed
		}
		stop := t.answerPendingCalls
		if how == TakeoverRestart {
			stop = t.undoRun
		}
		if err := stop(next.began); err != nil {
			return err
		}
		if how == TakeoverRestart {
			t.Run.Base = t.position()
		}
		if t.Run.Attempt+1 >= maxAttempts {
			t.addDeadLetter(deadLetter{Message: t.Run.Message, Attempt: t.Run.Attempt + 1})
			t.beginNextRun(next)
			return nil
		}
		t.Token++
		t.Run.LeaseID, t.Run.Token, t.Run.TTL, t.Run.Renewals = next.leaseID, t.Token, next.ttl.Milliseconds(), 0
		t.Run.Attempt++
		return nil
	})
}

func (t *transition) addDeadLetter(d deadLetter) {
	t.DeadLetters = append(t.DeadLetters, d)
	for len(t.DeadLetters) > maxDeadLetters {
		t.finishMessage(t.DeadLetters[0].Message, finishedFailed)
		t.DeadLetters = t.DeadLetters[1:]
	}
}

// errContentChanged is returned for effects that fit an earlier content.
var errContentChanged = errors.New("workspace: content has changed")

// update adds a record without a run. The change fits the content at a
// position.
func (l *ledger) update(ctx context.Context, at position, c change) (*head, error) {
	now := l.now()
	return l.commitHead(ctx, func(t *transition) error {
		if t.Run != nil {
			return ErrBusy
		}
		if t.position() != at {
			return errContentChanged
		}
		if err := t.addRecord(Record{Kind: KindUpdate, Time: now, Effects: c.effects}); err != nil {
			return err
		}
		t.markPurge(c.purge)
		return nil
	})
}

// reset empties the workspace and returns the ids of the messages that it
// dropped. The head of a workspace that does not exist is nil.
func (l *ledger) reset(ctx context.Context) (*head, []string, error) {
	var ids []string
	h, err := l.commitHead(ctx, func(t *transition) error {
		dropped, err := t.reset()
		if err == nil { // else an earlier attempt may turn out to have taken effect
			ids = dropped
		}
		return err
	})
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return h, ids, err
}

func (t *transition) reset() (ids []string, err error) {
	if t.Seq == 0 {
		return nil, errNoChange
	}
	for _, r := range t.blobRefs() {
		if !r.isSegment() {
			t.dropBlob(r)
		}
	}
	if err := t.dropSegments(t.Segments); err != nil {
		return nil, err
	}
	// As long as the head knows the messages, they are duplicates.
	for _, m := range t.pending() {
		t.Finished = append(t.Finished, finishedMessage{ID: m.ID, Outcome: finishedReset})
		ids = append(ids, m.ID)
	}
	t.Finished = t.Finished[max(0, len(t.Finished)-max(maxFinished, len(ids))):]
	t.Epoch++
	t.Token++
	t.Version++
	t.Chain = hash([]byte(t.Chain), []byte("reset"))
	t.Run, t.Queue, t.DeadLetters, t.Segments, t.Tail, t.Purge = nil, nil, nil, nil, nil, 0
	t.Snapshot = &snapshot{position: t.position()}
	return ids, nil
}
