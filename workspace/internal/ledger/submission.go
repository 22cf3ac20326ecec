package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// Submission is a message for a workspace, with what its sender and the Manager
// want.
type Submission struct {
	Message  Message // with its body
	Busy     work.WhenBusy
	MaxQueue int
	// MaxQueueBytes is the maximum length of the bodies of the messages that
	// wait; 0 is no limit.
	MaxQueueBytes int
	Lease         Lease // of the run that may begin
	// Check returns an error if the message must not be accepted. It gets the
	// content, the bodies of the accepted messages that are not in it yet, and
	// whether a run that has given the message up has stored it. It is called
	// repeatedly. It may be nil.
	Check func(content *document.Document, accepted [][]byte, stands bool) error
}

// NewLease returns a lease that begins now.
func (l *Ledger) NewLease() Lease {
	return Lease{ID: NewID(), runID: NewID(), ttl: l.opts.TTL, began: l.now()}
}

// Submit hands over a message. The status is StatusStarted, StatusQueued,
// StatusDuplicate or StatusRejected. For a duplicate, it also returns what
// became of the first message with the id. A dead letter with the id is taken
// out: its message is handled again. The head is the one written, or the one read
// if there is nothing to write.
func (l *Ledger) Submit(ctx context.Context, s Submission) (*Head, work.Status, Fate, error) {
	var (
		status work.Status
		fate   Fate
		read   *Head
	)
	for {
		h, err := l.commitFitting(ctx, func(t *transition) error {
			read = t.Head
			st, f, err := l.submit(t, s)
			if st != "" { // else an earlier attempt may turn out to have taken effect
				status, fate = st, f
			}
			return err
		})
		again := false
		if errors.Is(err, errNoChange) {
			if h, err = read, nil; status == work.StatusDuplicate {
				again, err = l.Confirm(ctx, h, fate) // the first message may not be
			}
		}
		switch {
		case err != nil:
			return h, "", fate, err
		case !again:
			return h, status, fate, nil
		}
	}
}

func (l *Ledger) submit(t *transition, s Submission) (work.Status, Fate, error) {
	if !s.Message.Ticket {
		f, err := l.Fate(t.ctx, t.Head, s.Message.ID)
		switch {
		case err != nil:
			return "", f, err
		case f.Place == PlaceDead:
			if s.Message.Stands, err = t.takeDeadLetterFor(s.Message); err != nil {
				return "", f, err
			}
		case f.Place == PlaceRunning, f.Place == PlaceQueued:
			body, _, err := t.reader.ReadBody(t.ctx, f.first)
			if err != nil {
				return "", f, err
			}
			f.Differs = !bytes.Equal(body, s.Message.Body)
			return work.StatusDuplicate, f, errNoChange
		case f.Place != PlaceNone:
			return work.StatusDuplicate, f, errNoChange
		}
	}
	queued := t.Run != nil && (s.Busy == work.BusyEnqueue || s.Busy == work.BusyJoin)
	switch {
	case t.Run != nil && s.Busy == work.BusyReject:
		return work.StatusRejected, Fate{}, errNoChange
	case queued:
		if err := t.checkRoom(s); err != nil {
			return "", Fate{}, err
		}
	}
	if t.Run != nil && !queued {
		if err := t.stopRun(s.Busy, s.Lease.began); err != nil {
			return "", Fate{}, err
		}
	}
	if err := t.reader.checkFits(t.ctx, t.Head); err != nil { // before the message is added
		return "", Fate{}, err
	}
	if s.Check != nil {
		if err := t.check(s, queued); err != nil {
			return "", Fate{}, err
		}
	}
	t.Updated, t.Deleted = s.Message.At, time.Time{}
	if queued {
		s.Message.Join = s.Busy == work.BusyJoin
		t.enqueue(t.storeMessage(s.Message))
		return work.StatusQueued, Fate{}, nil
	}
	t.beginRun(t.shortMessage(s.Message), s.Lease)
	return work.StatusStarted, Fate{}, nil
}

// checkRoom returns ErrQueueFull if the queue has no room for a message.
func (t *transition) checkRoom(s Submission) error {
	if n := t.Waiting(); n >= s.MaxQueue {
		return fmt.Errorf("%w: %d messages wait; send it again later", work.ErrQueueFull, n)
	}
	if n := len(s.Message.Body); n > 0 && s.MaxQueueBytes > 0 && n > s.MaxQueueBytes-t.QueueBytes {
		return fmt.Errorf("%w: %d bytes wait, and with %d more there would be more than %d; send it again later",
			work.ErrQueueFull, t.QueueBytes, n, s.MaxQueueBytes)
	}
	return nil
}

// check calls the Check of a submission. Unless the message is to be queued, the
// run has ended.
func (t *transition) check(s Submission, queued bool) error {
	content, err := t.reader.Content(t.ctx, t.Head, t.Position())
	if err != nil {
		return err
	}
	var waiting []Message
	if queued && t.Position() == t.Run.Base { // else the content has the message of the run
		waiting = append(waiting, t.Run.Message)
	}
	for entry, err := range t.reader.queueEntries(t.ctx, t.Head) {
		if err != nil {
			return err
		}
		name, _ := cutQueueEntry(entry)
		waiting = append(waiting, Message{Blob: name})
	}
	accepted := make([][]byte, len(waiting))
	for i, m := range waiting {
		if accepted[i], _, err = t.reader.ReadBody(t.ctx, m); err != nil {
			return err
		}
	}
	return s.Check(content, accepted, s.Message.Stands)
}

// stopRun ends the run for another message.
func (t *transition) stopRun(busy work.WhenBusy, now time.Time) error {
	kind, ending, effects := KindInterrupt, work.EndingInterrupted, t.answerPendingCalls
	if busy == work.BusyRollback {
		kind, ending, effects = KindRollback, work.EndingRolledBack, t.undoRun
	}
	return t.endRun(kind, ending, effects, "", now)
}

// commitFitting is commitRun for a transition that calls checkFits, before a run
// depends on it. It returns the error of Options.Fits if the content does not fit.
func (l *Ledger) commitFitting(ctx context.Context, apply transitionFunc) (*Head, error) {
	var checked *Position
	for {
		c := l.newCommit()
		if l.opts.Retry != nil { // no run depends on it yet
			c.retry.again = func(err error) bool { return !errors.Is(err, store.ErrRefused) && l.opts.Retry(err) }
		}
		h, err := c.perform(ctx, func(t *transition) error {
			t.reader.checked = checked
			return apply(t)
		})
		var unchecked *uncheckedError
		if !errors.As(err, &unchecked) || errors.Is(err, store.ErrUnknownOutcome) {
			return h, err
		}
		if err := l.contents.fits(unchecked.doc); err != nil {
			return nil, err
		}
		checked = &unchecked.Position
		l.contents.noteFitting(*checked)
	}
}

// takeDeadLetterFor removes the dead letter of a message that is sent again, and
// reports whether the conversation has the message as it is sent now.
func (t *transition) takeDeadLetterFor(m Message) (stands bool, err error) {
	d, err := t.takeDeadLetter(m.ID)
	if err != nil || d == nil {
		return false, err
	}
	if d.Message.Stands {
		body, _, err := t.reader.ReadBody(t.ctx, d.Message)
		if err != nil {
			return false, err
		}
		stands = bytes.Equal(body, m.Body)
	}
	if d.Message.Blob != "" {
		t.dropBlob(d.Message.Blob)
	}
	return stands, nil
}
