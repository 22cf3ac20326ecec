package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/bounded"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Handle handles a message and waits until that has ended. It begins the run of
// the message, calls Options.Run and finishes the run. The status of the outcome
// is StatusDone, or StatusFailed together with the error of the run.
//
// If another run is under way, msg.WhenBusy determines what happens to the message.
// If it is queued, or if this Manager holds Options.Runs runs already, the
// message is handled in the background, by this Manager or another one, and
// Handle waits as Await does. If it then fails, the error is ErrRunFailed. After
// the message, the Manager handles the messages in the queue in the background.
//
// If ctx ends first, Handle returns, at most TTL/20 later, but the message stays.
// If it waits, it is handled as if nothing had happened, and Await waits for it
// again. If its run has begun here, the context of the run ends with ctx. If
// Options.Run then returns an error, Handle gives the lease back, and this
// Manager or another calls Options.Run again at once, in the background, with the
// committed changes; no attempt is counted. To handle a message although its
// sender may go away, call Submit and Await. What Options.Run has left when it
// returns nil is stored even if ctx has ended, and the messages in the queue are
// handled in the background.
//
// If the run loses its lease, the message is not lost either: another holder
// continues the run. If another message, Cancel or a reset has ended it, the outcome
// is StatusFailed, with the reason, and the error matches ErrRunFailed, ErrFenced and
// ErrInterrupted. If the store is away, Handle tries again until ctx ends or Options.StoreTimeout is
// over, and for a run that is under way until its lease is lost. If the error is
// store.ErrUnknownOutcome, the message may have been accepted: send it again with
// its ID. A message whose ID is that of an accepted one, unless that has failed, is
// StatusDuplicate at once, also while the first is being handled: Await waits.
//
// A run cannot wait for another message of its user: in Options.Run, and in
// hooks that get the context of the run, Handle returns ErrBusy for that user.
// Call Submit there.
func (m *Manager) Handle(ctx context.Context, userID string, msg Message) (Outcome, error) {
	return m.accept(ctx, "handle", userID, msg, m.handle)
}

func (m *Manager) handle(ctx context.Context, userID string, msg Message) (Outcome, error) {
	if m.inRunOf(ctx, userID) {
		return Outcome{}, errOwnRun
	}
	b, err := m.newBeginning(userID, msg)
	if err != nil {
		return Outcome{}, err
	}
	run, out, err := b.begin(ctx, ctx, b.trySlot(ctx))
	switch {
	case err != nil && out.Status == StatusStarted: // its run is left to another holder, or was ended
		return Outcome{RunID: out.RunID}, err
	case err != nil:
		return out, err
	case out.Status == StatusQueued:
		return m.await(ctx, b.ledger, b.message.ID)
	case run == nil:
		return out, nil
	}
	out, err = m.performFor(ctx, run)
	if out.Status == "" && errors.Is(err, ErrFenced) && errors.Is(err, ErrInterrupted) { // another caller has ended it
		if stored, failed := m.await(ctx, b.ledger, b.message.ID); errors.Is(failed, ErrRunFailed) {
			return stored, fmt.Errorf("%w: %w", failed, ErrFenced)
		}
	}
	return out, err
}

// Submit is Handle without waiting until the message is handled. When Submit
// returns, the message is stored; it is handled in the background. The status
// of the outcome is StatusStarted, StatusQueued, StatusDuplicate or
// StatusRejected. The run does not end with ctx.
func (m *Manager) Submit(ctx context.Context, userID string, msg Message) (Outcome, error) {
	return m.accept(ctx, "submit", userID, msg, m.submit)
}

func (m *Manager) submit(ctx context.Context, userID string, msg Message) (Outcome, error) {
	b, err := m.newBeginning(userID, msg)
	if err != nil {
		return Outcome{}, err
	}
	run, out, err := b.begin(ctx, m.ctx, m.slots.Try(b.ledger.User(), b.lease.ID))
	switch {
	case out.Status != StatusStarted:
		return out, err
	case err != nil: // the message was accepted, but its run is left to another holder
		m.raise(ctx, alarmNotBegun, userID, err)
	default:
		m.drainInBackground(run)
	}
	return out, nil
}

// accept traces call as the operation named what.
func (m *Manager) accept(
	ctx context.Context, what, userID string, msg Message,
	call func(context.Context, string, Message) (Outcome, error),
) (Outcome, error) {
	if err := m.enterHandling(); err != nil {
		return Outcome{}, wrapError(what, userID, err)
	}
	defer m.leave()
	ctx, op := m.beginHandle(ctx, userID, &msg)
	out, err := call(ctx, userID, msg)
	op.endHandle(out, err)
	return out, wrapError(what, userID, err)
}

// enterHandling is enter for an operation that calls Options.Run.
func (m *Manager) enterHandling() error {
	err := m.enter()
	if err == nil && m.opts.Run == nil {
		m.leave()
		err = fmt.Errorf("%w: Options has no Run, which handles messages: set it, or call Do", ErrInvalid)
	}
	return err
}

// beginning is a message that is about to be handed over.
type beginning struct {
	m       *Manager
	ledger  *ledger.Ledger
	message Message
	body    []byte
	busy    WhenBusy
	lease   ledger.Lease
}

// newBeginning checks a message.
func (m *Manager) newBeginning(userID string, msg Message) (*beginning, error) {
	if err := m.checkAccepting(); err != nil {
		return nil, err
	}
	if err := checkRuns(userID); err != nil {
		return nil, err
	}
	busy, err := m.busyOf(msg)
	if err != nil {
		return nil, err
	}
	if msg.ID == "" {
		msg.ID = ledger.NewID()
	}
	body, err := msg.encode()
	if err != nil {
		return nil, err
	}
	if err := m.checkMessage(msg); err != nil {
		return nil, err
	}
	l, err := m.ledger(userID)
	if err != nil {
		return nil, err
	}
	return &beginning{m, l, msg, body, busy, l.NewLease()}, nil
}

// checkMessage returns an error for a message that does not even fit into an
// empty conversation.
func (m *Manager) checkMessage(msg Message) error {
	if _, err := toolsOf(msg.Tools); err != nil {
		return fmt.Errorf("%w: message: %w", ErrInvalid, err)
	}
	empty := state.New(m.schema)
	err := msg.patch(empty)
	if err == nil && msg.Content != nil { // otherwise it has answers
		err = state.Messages.Set(empty, []state.Message{msg.Content})
	}
	if err != nil {
		return fmt.Errorf("%w: message: %w", ErrInvalid, err)
	}
	return nil
}

// trySlot reports whether there is a slot for a caller that waits for its
// message. A caller in a run gets one at once: its run waits for what it begins,
// and has a slot itself.
func (b *beginning) trySlot(ctx context.Context) bool {
	if run, ok := FromContext(ctx); ok && run.m == b.m && run.canEnd() {
		b.m.slots.Squeeze(b.ledger.User(), b.lease.ID)
		return true
	}
	return b.m.slots.Try(b.ledger.User(), b.lease.ID)
}

// begin hands the message over. The run that it may begin ends with runCtx.
// Without a slot, the run waits for one, and the status is StatusQueued.
func (b *beginning) begin(ctx, runCtx context.Context, hasSlot bool) (*Run, Outcome, error) {
	run, out, err := b.submit(ctx, runCtx, hasSlot)
	b.m.noteSubmitted(ctx, b.ledger.User(), b.message.ID, out.Status, err)
	if run == nil {
		b.m.slots.Drop(b.lease.ID)
	}
	return run, out, err
}

func (b *beginning) submit(ctx, runCtx context.Context, hasSlot bool) (run *Run, out Outcome, err error) {
	m, l, lease := b.m, b.ledger, b.lease
	submitting := bounded.New(ctx, bounded.By{Timeout: m.storeTimeout, Cause: errStoreTimeout, Other: m.ctx})
	defer submitting.End()
	var i *incarnation
	if hasSlot {
		if i, err = m.holder.join(submitting); err != nil {
			return nil, Outcome{}, err
		}
		defer i.leave()
		lease = lease.HeldBy(i.id)
	} else {
		lease = lease.Vacant()
	}
	began := time.Now()
	h, status, fate, err := l.Submit(submitting, b.submission(lease))
	out = Outcome{Status: status}
	if status == StatusDuplicate {
		out = duplicateOf(fate)
	}
	m.takeVacantRun(l, h)
	if status != StatusStarted { // the holder of the run that is under way may have died
		m.watchRun(l.User(), l)
	}
	switch {
	case errors.Is(err, ErrQueueFull):
		out.Status = StatusRejected
		return nil, out, err
	case err != nil:
		m.resumeLive(l.User())
		if errors.Is(err, store.ErrUnknownOutcome) {
			m.releaseInDoubt(l, i, lease)
		}
		return nil, out, err
	case status != StatusStarted:
		return nil, out, nil
	}
	m.endLocalRuns(l.User(), h, endingBy(b.busy))
	if !hasSlot {
		out.Status = StatusQueued
		return nil, out, nil
	}
	return b.beginRun(runCtx, h, lease, began, out)
}

// beginRun makes the run that has begun at a head with a lease.
func (b *beginning) beginRun(
	ctx context.Context, h *ledger.Head, lease ledger.Lease, began time.Time, out Outcome,
) (*Run, Outcome, error) {
	if h.Run == nil || h.Run.LeaseID != lease.ID {
		// The reply to the write was lost, and the run has ended meanwhile.
		return nil, out, fmt.Errorf("begin: %w", ErrFenced)
	}
	out.RunID = h.Run.RunID
	run, err := b.m.newRun(ctx, b.ledger, h, began, b.message.given())
	if err != nil {
		b.m.watchRun(b.ledger.User(), b.ledger)
	}
	return run, out, err
}

// submission returns the message for the ledger.
func (b *beginning) submission(lease ledger.Lease) ledger.Submission {
	return ledger.Submission{
		Message: ledger.Message{ID: b.message.ID, At: ledger.CurrentTime(), Trace: b.message.Trace, Body: b.body},
		Busy:    b.busy, MaxQueue: b.m.opts.Queue, MaxQueueBytes: b.m.opts.QueueBytes, Lease: lease,
		Check: b.m.decisionsCheck(b.ledger.User(), &b.message),
	}
}

// endingBy returns the ending of a run that a message ends.
func endingBy(b WhenBusy) work.Ending {
	if b == BusyRollback {
		return work.EndingRolledBack
	}
	return work.EndingInterrupted
}

func isKnown(b WhenBusy) bool { return b >= BusyDefault && b <= BusyJoin }

// busyOf determines what happens to a message that arrives during a run.
func (m *Manager) busyOf(msg Message) (WhenBusy, error) {
	switch {
	case !isKnown(msg.WhenBusy):
		return msg.WhenBusy, fmt.Errorf("%w: message with an unknown WhenBusy", ErrInvalid)
	case msg.WhenBusy == BusyDefault:
		msg.WhenBusy = m.opts.WhenBusy
	}
	if msg.WhenBusy == BusyJoin && !msg.mayJoin() {
		return BusyEnqueue, nil
	}
	return msg.WhenBusy, nil
}

// decisionsCheck returns a function that refuses a message with a decision that
// cannot be made, or nil if the message has none.
func (m *Manager) decisionsCheck(user string, msg *Message) func(*document.Document, [][]byte, bool) error {
	if len(msg.decided()) == 0 {
		return nil
	}
	return func(doc *document.Document, accepted [][]byte, stands bool) error {
		c, err := m.content(user, doc, ledger.Position{}, nil)
		if err != nil {
			return err
		}
		for _, body := range accepted {
			earlier, err := decodeMessage(user, body)
			if err != nil {
				continue // a ticket, or what its own run will report
			}
			_, _ = c.decide(earlier, nil) // as its run will
		}
		var stored func(tool.Decision) bool
		if stands {
			stored = c.storedDecisions()
		}
		if err = c.checkInTime(*msg); err == nil {
			_, err = c.decide(*msg, stored)
		}
		if err != nil {
			return fault.AsFinal(fmt.Errorf("decision: %w", err))
		}
		return nil
	}
}

// errOwnRun is returned within a run for what cannot end before the run.
var errOwnRun = fmt.Errorf("%w: it is that of the caller, which cannot wait for another message of its user; use Submit", ErrBusy)
