package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// transition is a change of the head that is being made: the head read, which
// becomes the next head, and the blobs that are written and deleted with it.
// Its methods are the steps of which the operations consist.
type transition struct {
	*Head
	ledger  *Ledger
	ctx     context.Context
	reader  contentReader // also of the new blobs
	base    Position      // of the head read
	baseSeq uint64        // of the head read
	listed  listed        // as the head read says

	cond       store.Condition // under which the head read is replaced
	remembered bool            // it was not read, but remembered
	replace    bool            // it could not be read
	makes      bool            // there is no workspace yet, or not any more
	revision   store.Revision  // of the head written

	undoesSecret bool      // the effects that end the run drop a secret
	now          time.Time // when the operation began, the same for all attempts

	newBlobs       []newBlob // to be written with the head
	droppedBlobs   []string  // names of blobs to which no head will refer again
	droppedLetters []DeadLetter
	outcomes       []Outcome // of the messages whose handling ends
}

// transitionFunc changes the head of a transition, or refuses to. It depends
// only on the transition and on its arguments, because it is called again for
// another head if its result was not committed.
type transitionFunc func(t *transition) error

// errNoChange is returned by a transitionFunc that leaves the head as it is.
var errNoChange = errors.New("workspace: nothing to do")

// addBlob returns the name of a blob that is written with the head.
func (t *transition) addBlob(data []byte) string {
	name := t.reader.newBlobName(t.Seq+1, data)
	for t.reader.freshBlob(name) != nil { // equal parts of one record
		name = t.reader.newBlobName(t.Seq+1, data)
	}
	b := newBlob{name, data}
	t.newBlobs, t.reader.fresh = append(t.newBlobs, b), append(t.reader.fresh, b)
	return name
}

// dropBlob says that no head will refer to a blob again. A blob that is not
// written yet will not be.
func (t *transition) dropBlob(name string) {
	for i := range t.newBlobs {
		if t.newBlobs[i].name == name {
			t.newBlobs = slices.Delete(t.newBlobs, i, i+1)
			return
		}
	}
	t.droppedBlobs = append(t.droppedBlobs, name)
}

// Lease describes the lease of a run that is about to begin. Without an ID it is
// vacant.
type Lease struct {
	ID, runID string
	holder    string // the incarnation that has it
	ttl       time.Duration
	began     time.Time
}

// HeldBy returns the lease with the incarnation that has it.
func (l Lease) HeldBy(incarnation string) Lease {
	l.holder = incarnation
	return l
}

// Vacant returns the lease without its holder.
func (l Lease) Vacant() Lease {
	l.ID, l.holder = "", ""
	return l
}

// beginRun begins the run of a message.
func (t *transition) beginRun(m Message, lease Lease) {
	t.Token++
	m.Join = false // it has a run of its own, which may be given up
	t.Run = &Run{
		LeaseID: lease.ID, Holder: lease.holder, RunID: lease.runID, Token: t.Token, TTL: lease.ttl.Milliseconds(),
		Message: m, Base: t.Position(), Began: lease.began,
	}
}

// beginNextRun ends the run and begins that of the first message in the queue,
// if there is one. The run of a ticket is left to its owner.
func (t *transition) beginNextRun(lease Lease) error {
	t.Run = nil
	if t.Queue.len() == 0 {
		return nil
	}
	m, err := t.dequeue()
	if err != nil {
		return err
	}
	if m.Ticket {
		lease = lease.Vacant()
	}
	t.beginRun(m, lease)
	return nil
}

// Holder identifies a run for its holder.
type Holder struct {
	LeaseID   string
	MessageID string
	At        Position // where the run has left the content
	// Trace is kept in the lease, unless it is empty, for the next holder.
	Trace string
	// Answers and Ended are kept in the run: see Run.
	Answers int
	Ended   bool
	Stop    state.Stop // of the outcome, for Finish
	// MayJoin says, for Commit, that messages may join the run, and Join which do:
	// those that Joining has returned, in the content by now.
	MayJoin bool
	Join    []Message
}

// checkLease returns ErrFenced unless the holder has the lease of the run. A
// holder is fenced by the random id of its lease, not by a clock.
func (t *transition) checkLease(by Holder) error {
	return t.reader.checkLease(t.ctx, t.Head, by)
}

func (r contentReader) checkLease(ctx context.Context, h *Head, by Holder) error {
	if h.Run != nil && by.LeaseID != "" && h.Run.LeaseID == by.LeaseID {
		return nil
	}
	if !h.Exists() {
		return FencedBy(work.EndingReset)
	}
	o, _ := r.findOutcome(ctx, h, by.MessageID)
	return FencedBy(o.Ending)
}

// renewLease notes a heartbeat of the holder.
func (t *transition) renewLease(by Holder) {
	t.Run.Renewals++
	if by.Trace != "" {
		t.Run.Trace = by.Trace
	}
}

// checkHolder also returns ErrRolledBack unless the head is where the run has
// left it. Only the run adds records, so if the head is elsewhere, records are
// lost.
func (t *transition) checkHolder(by Holder) error {
	if err := t.checkLease(by); err != nil {
		return err
	}
	if t.Position() != by.At {
		return fmt.Errorf("%w: %s: records of the run are lost", work.ErrRolledBack, t.reader.key)
	}
	return nil
}

// addRecord adds a record, whose effects must fit the content at the head.
func (t *transition) addRecord(r work.Record) error {
	if document.ChangesSuspended(r.Effects) {
		doc, err := t.reader.Content(t.ctx, t.Head, t.Position())
		if err == nil {
			var due time.Time
			t.Suspended, due, err = doc.CountSuspended(r.Effects)
			if t.Expires = 0; !due.IsZero() {
				t.Expires = max(1, due.UnixMilli())
			}
		}
		if err != nil {
			return err
		}
	}
	r.Version = t.Version + 1
	s, err := storedAfter(t.Chain, &r)
	if err != nil {
		return err
	}
	entry := recordEntry("", len(s.text))
	if len(s.text) <= recordPartBytes {
		entry = t.addBlob(s.text) + entry
	} else {
		var names []string
		for part := range slices.Chunk(s.text, recordPartBytes) {
			names = append(names, t.addBlob(part))
		}
		entry = cutRecord + t.addBlob([]byte(strings.Join(names, listSeparator))) + entry
	}
	t.Records.push(entry, t.addBlob)
	t.RecordBytes += len(s.text)
	t.Version, t.Chain, t.Updated = s.version, s.chain, r.Time
	t.Deleted = time.Time{}
	t.markPurge(t.undoesSecret)
	return nil
}

// runRecord returns a record of the run.
func (t *transition) runRecord(kind work.Kind, now time.Time, effects []state.Effect) work.Record {
	r := work.Record{Kind: kind, Time: now, Effects: effects, RunID: t.Run.RunID, Lease: t.Run.LeaseID}
	if !t.Run.Message.Ticket {
		r.Message = t.Run.Message.ID
	}
	return r
}

// endMessage adds the last record of the run, which has the outcome of its
// message, and drops the message. The run of a ticket leaves no outcome.
func (t *transition) endMessage(r work.Record) error {
	r.Reason = fault.ClipTo(r.Reason, MaxReason)
	m := t.Run.Message
	if m.Ticket {
		r.Ending, r.Reply, r.Stop = "", "", ""
	}
	if !m.Ticket || len(r.Effects) > 0 {
		if err := t.addRecord(r); err != nil {
			return err
		}
	}
	if m.Blob != "" {
		t.dropBlob(m.Blob)
	}
	if m.Ticket {
		return nil
	}
	t.outcomes = append(t.outcomes, outcomeOf(&r))
	if err := t.endJoined(&r); err != nil {
		return err
	}
	return t.noteEnded(m.ID)
}

// endOther notes the outcome of a message that has no run, and drops the
// message.
func (t *transition) endOther(m Message, ending work.Ending, reason string) error {
	if m.Blob != "" {
		t.dropBlob(m.Blob)
	}
	if m.Ticket {
		return nil
	}
	o := Outcome{ID: m.ID, Ending: ending, Reason: reason, Version: t.Version, At: t.now}
	t.outcomes = append(t.outcomes, o)
	return t.keepOutcome(o)
}

// answerPendingCalls returns the effects that answer tool calls that the run has
// made and that have no result, so that providers accept the next prompt. Calls
// that are suspended stay open. What the run has written to shared fields is
// dropped.
func (t *transition) answerPendingCalls() ([]state.Effect, error) { return t.answerCalls("") }

// cancelPendingCalls is answerPendingCalls for calls that the run has suspended
// too.
func (t *transition) cancelPendingCalls() ([]state.Effect, error) { return t.answerCalls(t.Run.RunID) }

// leavePendingCalls returns the effects with which a message is given up: its
// calls stay open until another message begins.
func (t *transition) leavePendingCalls() ([]state.Effect, error) {
	return t.endContent(func(doc *document.Document) ([]state.Effect, error) { return doc.GiveUp() })
}

func (t *transition) answerCalls(cancelled string) ([]state.Effect, error) {
	base := func() (*document.Document, error) { return t.reader.Content(t.ctx, t.Head, t.Run.Base) }
	return t.endContent(func(doc *document.Document) ([]state.Effect, error) { return doc.EndRun(base, cancelled) })
}

// endContent returns the effects of the end of a run on the content.
func (t *transition) endContent(end func(*document.Document) ([]state.Effect, error)) ([]state.Effect, error) {
	doc, err := t.reader.Content(t.ctx, t.Head, t.Position())
	if err != nil {
		return nil, err
	}
	effects, err := end(doc)
	t.undoesSecret = err == nil && t.dropsSecret(doc, effects)
	return effects, err
}

func (t *transition) dropsSecret(doc *document.Document, effects []state.Effect) bool {
	schema := t.ledger.opts.Schema
	return schema != nil && doc.DropsSecret(schema, effects)
}

// undoRun returns the effects that undo what the run has committed. Nothing
// else has changed the content since the base of the run.
func (t *transition) undoRun() ([]state.Effect, error) {
	doc, err := t.reader.Content(t.ctx, t.Head, t.Position())
	if err != nil {
		return nil, err
	}
	base, err := t.reader.Content(t.ctx, t.Head, t.Run.Base)
	if err != nil {
		return nil, err
	}
	effects := doc.Revert(base)
	t.undoesSecret = t.dropsSecret(doc, effects)
	return effects, nil
}

// restartRun lets the run begin anew from where it began. If it has committed
// something, a record undoes that.
func (t *transition) restartRun(now time.Time) error {
	effects, err := t.undoRun()
	if err == nil && len(effects) > 0 {
		err = t.addRecord(t.runRecord(KindRollback, now, effects))
	}
	if err != nil {
		return err
	}
	t.Run.Base, t.Run.Answers, t.Run.Ended = t.Position(), 0, false
	return t.putBack(t.Run.Joined, false)
}

// Unfinished is what a run has not stored which is ended.
type Unfinished struct {
	RunID string
	// Message is the body of the message of the run, or nil if the content has it.
	Message []byte
	Live    Live // what is stored of the text that a model was about to have said
}

// keepUnfinished returns the effects that end the run, and those that keep what it
// has not stored.
func (t *transition) keepUnfinished(ended []state.Effect) ([]state.Effect, error) {
	if t.ledger.opts.Unfinished == nil || t.Run.Message.Ticket {
		return ended, nil
	}
	u := Unfinished{RunID: t.Run.RunID}
	content, err := t.reader.Content(t.ctx, t.Head, t.Position())
	if err == nil && t.Position() == t.Run.Base {
		u.Message, _, err = t.reader.ReadBody(t.ctx, t.Run.Message)
	}
	if err == nil && t.ledger.opts.Live {
		u.Live, _, err = t.ledger.Live(t.ctx, t.Head)
	}
	if err != nil {
		return nil, err
	}
	content = content.Clone()
	if err := content.ApplyRecord(ended, document.Origin{}); err != nil {
		return nil, err
	}
	kept, err := t.ledger.opts.Unfinished(content, u)
	return append(ended, kept...), err
}

// markPurge notes that the last record replaced or deleted a secret.
func (t *transition) markPurge(purge bool) {
	if purge {
		t.Purge = t.Version
	}
}

// noteChange notes what a change whose record was added last says besides.
func (t *transition) noteChange(c Change) {
	t.markPurge(c.Purge)
	t.Title = cmp.Or(c.Title, t.Title)
}

// dropRecords drops the records up to a version.
func (t *transition) dropRecords(version uint64) error {
	entries, err := t.takeRecords(version)
	if err != nil {
		return err
	}
	return t.dropEntries(entries)
}

// takeRecords removes the records up to a version from the list, and returns
// their entries, the oldest first.
func (t *transition) takeRecords(version uint64) (entries []string, err error) {
	err = t.Records.dropTo(t.ctx, version, t.reader.readLists, func(n listNode) {
		if n.level > 0 {
			t.dropBlob(n.text)
			return
		}
		entries = append(entries, n.text)
		t.RecordBytes -= recordLength(n.text)
	})
	return entries, err
}

// dropEntries drops the blobs of records.
func (t *transition) dropEntries(entries []string) error {
	for _, entry := range entries {
		names, err := t.reader.recordBlobs(t.ctx, entry)
		if err != nil {
			return err
		}
		for _, name := range names {
			t.dropBlob(name)
		}
	}
	return nil
}

// addSnapshot returns a snapshot with a content at a position.
func (t *transition) addSnapshot(at Position, content []byte) snapshot {
	s := snapshot{Position: at, Bytes: len(content)}
	for part := range slices.Chunk(content, snapshotPartBytes) {
		s.Parts.push(t.addBlob(part), t.addBlob)
	}
	return s
}

// dropSnapshot drops the blobs of the snapshot.
func (t *transition) dropSnapshot() error {
	if t.Snapshot == nil {
		return nil
	}
	return t.dropParts(t.Snapshot.Parts)
}

// dropParts drops the blobs of a list, and the list.
func (t *transition) dropParts(list blobList) error {
	return list.dropTo(t.ctx, list.Next, t.reader.readLists, func(n listNode) { t.dropBlob(n.text) })
}

var snapshotPartBytes = 256 << 10 // the maximum length of a part of a snapshot

// endRun ends the run with a record that has effects.
func (t *transition) endRun(
	kind work.Kind, ending work.Ending, effects func() ([]state.Effect, error), reason string, now time.Time,
) error {
	list, err := effects()
	if err == nil && (ending == work.EndingCancelled || ending == work.EndingInterrupted) {
		list, err = t.keepUnfinished(list)
	}
	if err != nil {
		return err
	}
	r := t.runRecord(kind, now, list)
	r.Ending, r.Reason = ending, reason
	return t.endMessage(r)
}
