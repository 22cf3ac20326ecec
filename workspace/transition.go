package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// transition is a change of the head that is being made: the head read, which
// becomes the next head, and the blobs that are written and deleted with it.
// Its methods are the steps of which the operations consist.
type transition struct {
	*head
	ctx      context.Context
	reader   *contentReader
	base     position                // of the head read
	baseSeq  uint64                  // of the head read
	prepared map[string]preparedBlob // blobs that are already written, by hash

	newBlobs     []newBlob // to be written before the head, or with it
	droppedBlobs []string  // names of blobs to which no head will refer again
}

// transitionFunc changes the head of a transition, or refuses to. It depends
// only on the transition and on its arguments, because it is called again for
// another head if its result was not committed.
type transitionFunc func(t *transition) error

// errNoChange is returned by a transitionFunc that leaves the head as it is.
var errNoChange = errors.New("workspace: nothing to do")

// preparedBlob is a blob that was written for a head that was not committed.
type preparedBlob struct {
	ref    blobRef
	expiry uint64
	chain  string // of the head that was to be replaced
}

// addBlob returns a ref to data, which is written before the head. It uses a
// prepared blob if that cannot have been collected and was made for the same
// content.
func (t *transition) addBlob(data []byte) blobRef {
	sum := hash(data)
	if p, ok := t.prepared[sum]; ok && t.Seq < p.expiry && p.chain == t.base.Chain {
		return p.ref
	}
	b := newBlob{newBlobName(t.Seq + blobLead), data}
	t.newBlobs = append(t.newBlobs, b)
	return b.ref()
}

// dropBlob says that no head will refer to a blob again.
func (t *transition) dropBlob(r blobRef) { t.droppedBlobs = append(t.droppedBlobs, r.Name) }

// runLease describes the lease of a run that is about to begin.
type runLease struct {
	leaseID, runID string
	ttl            time.Duration
	began          time.Time
}

// beginRun begins the run of a message.
func (t *transition) beginRun(m pendingMessage, lease runLease) {
	t.Token++
	t.Run = &activeRun{
		LeaseID: lease.leaseID, RunID: lease.runID, Token: t.Token, TTL: lease.ttl.Milliseconds(),
		Message: m, Base: t.position(), Began: lease.began,
	}
}

// beginNextRun ends the run and begins that of the first message in the queue,
// if there is one.
func (t *transition) beginNextRun(lease runLease) {
	t.Run = nil
	if len(t.Queue) == 0 {
		return
	}
	first := t.Queue[0]
	if t.Queue = t.Queue[1:]; len(t.Queue) == 0 {
		t.Queue = nil
	}
	t.beginRun(first, lease)
}

// finishMessage gives a message its outcome.
func (t *transition) finishMessage(m pendingMessage, outcome string) {
	t.Finished = append(t.Finished, finishedMessage{ID: m.ID, Outcome: outcome})
	t.Finished = t.Finished[max(0, len(t.Finished)-maxFinished):]
	if m.BodyBlob != nil {
		t.dropBlob(*m.BodyBlob)
	}
}

// holder identifies a run for its holder.
type holder struct {
	leaseID   string
	messageID string
	at        position // where the run has left the content
}

// checkLease returns ErrFenced unless the holder has the lease of the run. A
// holder is fenced by the random id of its lease, not by a clock.
func (t *transition) checkLease(by holder) error {
	if t.Run != nil && t.Run.LeaseID == by.leaseID {
		return nil
	}
	switch t.messageState(by.messageID) {
	case finishedInterrupted, finishedRolledBack, finishedReset:
		return fmt.Errorf("%w: %w", ErrFenced, ErrInterrupted)
	}
	return ErrFenced
}

// checkHolder also returns ErrRolledBack unless the head is where the run has
// left it. Only the run adds records, so if the head is elsewhere, records are
// lost.
func (t *transition) checkHolder(by holder) error {
	if err := t.checkLease(by); err != nil {
		return err
	}
	if t.position() != by.at {
		return fmt.Errorf("%w: %s: records of the run are lost", ErrRolledBack, t.reader.key)
	}
	return nil
}

// addRecord adds a record, whose effects must fit the content at the head.
func (t *transition) addRecord(r Record) error {
	r.Version = t.Version + 1
	s, err := r.chainAfter(t.Chain)
	if err != nil {
		return err
	}
	t.Tail = append(t.Tail, s)
	t.Version, t.Chain = s.version, s.chain
	return t.moveTail()
}

// addRunRecord adds a record of the run.
func (t *transition) addRunRecord(kind Kind, now time.Time, effects []state.Effect) error {
	return t.addRecord(Record{
		Kind: kind, Time: now, Effects: effects,
		RunID: t.Run.RunID, Lease: t.Run.LeaseID, Message: t.Run.Message.ID,
	})
}

// answerPendingCalls adds a record that answers tool calls of the run without a
// result, so that providers accept the next prompt.
func (t *transition) answerPendingCalls(now time.Time) error {
	doc, err := t.reader.content(t.ctx, t.head, t.position())
	if err != nil {
		return err
	}
	effects, err := doc.AnswerPending()
	if err != nil || len(effects) == 0 {
		return err
	}
	return t.addRunRecord(KindInterrupt, now, effects)
}

// undoRun adds a record that undoes what the run has committed. Nothing else
// has changed the content since the base of the run.
func (t *transition) undoRun(now time.Time) error {
	doc, err := t.reader.content(t.ctx, t.head, t.position())
	if err != nil {
		return err
	}
	base, err := t.reader.content(t.ctx, t.head, t.Run.Base)
	if err != nil {
		return err
	}
	effects := doc.Revert(base)
	if len(effects) == 0 {
		return nil
	}
	return t.addRunRecord(KindRollback, now, effects)
}

// markPurge notes that the last record replaced or deleted a secret.
func (t *transition) markPurge(purge bool) {
	if purge {
		t.Purge = t.Version
	}
}

var (
	maxTailBytes  = 4 << 10 // a longer tail moves from the head to a segment
	segmentFanout = 4       // the number of refs to segments of one level that move to a blob
)

// moveTail moves the tail to a segment if it is too long, and refs to segments
// to a segment of a higher level if there are too many, so that the head does
// not grow with the length of a run.
func (t *transition) moveTail() error {
	size := 0
	for i := range t.Tail {
		size += len(t.Tail[i].text)
	}
	if size <= maxTailBytes {
		return nil
	}
	r, err := t.addBlobJSON(t.Tail)
	if err != nil {
		return err
	}
	r.From, r.To = t.Tail[0].version, t.Version
	t.Tail = nil
	t.Segments = append(t.Segments, r)
	for {
		first := len(t.Segments) - segmentFanout
		if first < 0 || t.Segments[first].Level != t.Segments[len(t.Segments)-1].Level {
			return nil
		}
		list := t.Segments[first:]
		r, err := t.addBlobJSON(list)
		if err != nil {
			return err
		}
		r.Level, r.From, r.To, r.Bytes = list[0].Level+1, list[0].From, list[len(list)-1].To, totalBytes(list)
		t.Segments = append(t.Segments[:first:first], r)
	}
}

func (t *transition) addBlobJSON(v any) (blobRef, error) {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return blobRef{}, err
	}
	return t.addBlob(data), nil
}

// dropSegments drops segments with all that is below them.
func (t *transition) dropSegments(refs []blobRef) error {
	for r, err := range t.reader.walkSegments(t.ctx, refs, 0) {
		if err != nil {
			return err
		}
		t.dropBlob(r)
	}
	return nil
}
