package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// newRun returns the run of a head, whose lease this Manager has taken, and
// begins to look after the lease. The head was written after began. If its sender
// has given the message of the run here, given is that; otherwise it is nil, and
// the message is read. If newRun fails, it releases the run.
func (m *Manager) newRun(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head, began time.Time, given *Message,
) (*Run, error) {
	r := &Run{
		m: m, ledger: l, runID: h.Run.RunID, attempt: h.Run.Attempt, base: h.Run.Base.Version, stands: h.Run.Message.Stands,
		epoch: h.Epoch, began: h.Run.Began,
		ticket: h.Run.Message.Ticket, given: given, answers: h.Run.Answers, isAnswered: h.Run.Ended,
		lease: newLease(h.Run, m.holder.leaseOf(h.Run), began), parent: ctx, returned: make(chan struct{}),
		mu: turns.NewLock(),
	}
	r.live.run = r
	r.slot = m.slots.Take(r.lease.id)
	m.trackRun()
	r.held, r.cancel = context.WithCancelCause(ctx)
	m.addLocalRun(r)
	err := r.keepLease()
	if err == nil {
		r.held = r.beginOperation(r.held, h)
		err = r.load(r.held, h)
	} else {
		defer r.lease.incarnation.leave()
	}
	if lost := r.lease.lost(); err != nil && lost != nil {
		err = lost // what it has cut short says less
	}
	if err != nil {
		r.discard(err)
		return nil, err
	}
	ctx = r.held
	if m.opts.RunTimeout > 0 {
		ctx, r.expire = context.WithCancelCause(ctx)
	}
	r.ctx = state.NewContext(NewContext(ctx, r), r.state)
	if t, ok := m.opts.Tracer.(tool.Tracer); ok {
		r.ctx = tool.WithTracer(r.ctx, t)
	}
	r.tellStarted()
	return r, nil
}

// discard leaves a run of which no function is called to another holder.
func (r *Run) discard(cause error) {
	r.release(cause)
	r.markReturned()
	r.done()
}

// done gives the slot of the run back, and makes Manager.Wait wait no longer. It
// may be called more than once.
func (r *Run) done() {
	r.once.Do(func() {
		r.endLost()
		r.m.untrackRun()
		r.slot.Free()
	})
}

// tellStarted tells those who follow the workspace that the run is held here.
func (r *Run) tellStarted() {
	r.told = toldRun{&r.Workspace, r.runID, r.message.ID, r.ctx}
	r.life.to(phaseRunning, nil) // a follower that comes now finds the run
	if f := r.m.feeds.of(r.user); f != nil && r.lease.lost() == nil {
		f.tellStarted(&r.told)
	}
}

// load reads the message and the content of the run.
func (r *Run) load(ctx context.Context, h *ledger.Head) error {
	if r.lease.age() > r.lease.ttl/2 { // the write has waited for the store
		if err := r.renew(r.lease.ttl); errors.Is(err, ErrFenced) || errors.Is(err, ErrRolledBack) {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.read(ctx, h)
	if err == nil && c.part != nil && c.part.stale != nil {
		// It was taken over, and another thread has changed what the process before
		// has read, or what its writes were merged with.
		if h, err = r.ledger.Restart(ctx, r.holderAt(h.Position())); err == nil {
			r.base = h.Run.Base.Version
			r.answers, r.isAnswered = 0, false
			c, err = r.read(ctx, h)
		}
	}
	if err != nil {
		return err
	}
	r.liveContent = *c
	r.messageID = r.message.ID
	r.steps.Store(int64(r.position.Version - r.base))
	r.results.last = c.storedState
	if err := r.life.ended(); err != nil {
		return err
	}
	if r.position.Version == r.base && !r.ticket { // otherwise a commit of the run has stored it
		r.refused = r.receiveMessage()
		return nil
	}
	r.findDecisions()
	return nil
}

// read reads the message of the run, and returns the content.
func (r *Run) read(ctx context.Context, h *ledger.Head) (*liveContent, error) {
	if (r.given != nil || h.Run.Message.Blob == "") && r.m.sharingFor(r.ledger.User()) == nil { // most need no store
		if doc := r.ledger.CachedContent(h.Position()); doc != nil {
			if err := r.readMessage(ctx, h); err != nil {
				return nil, err
			}
			return r.m.content(r.ledger.User(), doc, h.Position(), nil)
		}
	}
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	var doc, part *document.Document
	err := r.m.persist(ctx, r.ledger.User(), mayPassInRun, func(ctx context.Context) (err error) {
		if err = r.readMessage(ctx, h); err != nil {
			return err
		}
		if doc, err = r.ledger.Content(ctx, h, h.Position()); err == nil {
			r.shared, part, err = r.m.readPart(ctx, r.ledger.User())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if part != nil {
		r.m.tellUnread(r.ledger.User(), part)
	}
	return r.m.content(r.ledger.User(), doc, h.Position(), part)
}

// readMessage reads the message of the run, unless it was given.
func (r *Run) readMessage(ctx context.Context, h *ledger.Head) (err error) {
	if r.given != nil {
		r.message = *r.given
		return nil
	}
	r.message, err = readMessage(ctx, r.ledger, h.Run.Message)
	return err
}

// receiveMessage adds the message to the conversation and to the settings.
func (r *Run) receiveMessage() error {
	if r.stands && (r.doc.EndsWith(r.message.ID) || r.endsWithMessage()) {
		r.resume()
		return nil
	}
	if err := r.closeLeft(); err != nil {
		return err
	}
	r.receiveDecisions()
	if err := r.message.patch(r.state); err != nil {
		return err
	}
	if content := r.message.Content; content != nil {
		if r.stands { // and others were handled behind it
			var err error
			if content, err = origin.WithMember(content, "again", []byte("true")); err != nil {
				return err
			}
		}
		if err := state.Messages.Set(r.state, []state.Message{content}); err != nil {
			return err
		}
	}
	return r.settings.note(r.message)
}

// resume lets the run of a message that was given up go on where it ended: nothing
// was handled since. What the user has said stands in the conversation, what is
// answered is not asked again, and the calls that are open are made with their
// keys. Decisions that are not stored, such as an approval that was undone, are made
// again.
func (r *Run) resume() {
	r.message, _ = r.decide(r.message, r.storedDecisions())
	msgs := state.Messages.GetOr(r.state, nil)
	if last, ok := msgs[len(msgs)-1].(state.TextMessage); ok && last.Role() == "assistant" && last.Text() != "" {
		r.answers, r.isAnswered = 1, true
	}
}

// endsWithMessage reports whether the conversation ends with what the message says: it
// has joined another run.
func (r *Run) endsWithMessage() bool {
	msgs := state.Messages.GetOr(r.state, nil)
	return len(msgs) > 0 && r.message.Content != nil && msgs[len(msgs)-1].Equal(r.message.Content)
}

// closeLeft answers the calls that an earlier run has left open, as one does whose
// message was given up: another message begins. Those that wait for a decision
// stay open.
func (r *Run) closeLeft() error {
	for _, c := range transcript.Pending(state.Messages.GetOr(r.state, nil)) {
		if _, waits := r.suspended.get(c.Key); waits {
			continue
		}
		m := state.ToolError(state.ToolCall{ID: c.ID, Name: c.Name, Key: c.Key}, origin.NoResult)
		if err := answerCall(r.state, m); err != nil {
			return err
		}
	}
	return nil
}

// receiveDecisions does what the message decides. What can no longer be done,
// because the call was closed while the message waited, is removed from the
// message.
func (r *Run) receiveDecisions() { r.message, _ = r.decide(r.message, nil) }

// findDecisions is receiveDecisions for a run whose first commit has stored the
// decisions.
func (r *Run) findDecisions() {
	if len(r.message.decided()) > 0 {
		r.message.keepDecisions(r.storedDecisions())
	}
}
