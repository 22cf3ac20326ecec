package workspace

import (
	"context"
	"errors"
	"fmt"
)

// Handle begins the run of a message, calls Options.Run and finishes the run.
// The status of the outcome is StatusDone, or StatusFailed together with the
// error of the run.
//
// If another run is under way, msg.Busy determines what happens to the message.
// Handle does not wait for a message that is queued: the holder of the run
// handles it later. After the message, the Manager handles the messages in the
// queue in the background.
//
// If ctx ends, or the run loses its lease, before the message is handled, the
// message is not lost: another holder takes the run over and calls Options.Run
// again, unless another message or a reset has ended the run.
func (m *Manager) Handle(ctx context.Context, userID string, msg Message) (Outcome, error) {
	leave, err := m.enterHandling()
	if err != nil {
		return Outcome{}, wrapError("handle", userID, err)
	}
	defer leave()
	run, out, err := m.begin(ctx, ctx, userID, msg)
	if err != nil || run == nil {
		return out, wrapError("handle", userID, err)
	}
	defer m.trackRun()()
	next, status, err := m.performRun(run)
	if next != nil {
		m.drainInBackground(next)
	}
	return Outcome{Status: status, RunID: run.runID, Reply: run.Reply()}, wrapError("handle", userID, err)
}

// Submit is Handle without waiting until the message is handled. When Submit
// returns, the message is stored; it is handled in the background. The status
// of the outcome is StatusStarted, StatusQueued, StatusDuplicate or
// StatusRejected. The run ends with the context of Open, not with ctx.
func (m *Manager) Submit(ctx context.Context, userID string, msg Message) (Outcome, error) {
	leave, err := m.enterHandling()
	if err != nil {
		return Outcome{}, wrapError("submit", userID, err)
	}
	defer leave()
	run, out, err := m.begin(ctx, m.ctx, userID, msg)
	if err == nil && run != nil {
		m.drainInBackground(run)
	}
	return out, wrapError("submit", userID, err)
}

// Begin begins the run of a message for a caller that does not use Options.Run.
// The caller must end the run with Finish or Fail. The run is nil unless the
// status of the outcome is StatusStarted. Its lease is renewed until ctx ends;
// after that, it is taken over.
func (m *Manager) Begin(ctx context.Context, userID string, msg Message) (*Run, Outcome, error) {
	run, out, err := m.begin(ctx, ctx, userID, msg)
	return run, out, wrapError("begin", userID, err)
}

// enterHandling is enter for an operation that calls Options.Run.
func (m *Manager) enterHandling() (leave func(), err error) {
	leave, err = m.enter()
	if err == nil && m.opts.Run == nil {
		leave()
		err = fmt.Errorf("%w: Options has no Run", ErrInvalid)
	}
	return leave, err
}

// begin is Begin for a run that ends with runCtx.
func (m *Manager) begin(ctx, runCtx context.Context, userID string, msg Message) (*Run, Outcome, error) {
	s, err := newSubmission(msg, m.opts.Busy, m.opts.Queue)
	if err != nil {
		return nil, Outcome{}, err
	}
	l, err := m.ledger(userID)
	if err != nil {
		return nil, Outcome{}, err
	}
	s.lease = l.newLease()
	h, status, err := l.submit(ctx, s)
	out := Outcome{Status: status}
	switch {
	case errors.Is(err, ErrQueueFull):
		out.Status = StatusRejected
		return nil, out, err
	case err != nil:
		return nil, out, err
	case status == StatusQueued:
		m.watchRun(userID, l)
		return nil, out, nil
	case status != StatusStarted:
		return nil, out, nil
	case h.Run == nil || h.Run.LeaseID != s.lease.leaseID:
		// The reply to the write was lost, and the run has ended meanwhile.
		return nil, out, fmt.Errorf("begin: %w", ErrFenced)
	}
	m.interruptLocalRuns(userID, h.Run.LeaseID)
	out.RunID = h.Run.RunID
	run, err := m.newRun(runCtx, l, h)
	if err != nil {
		m.watchRun(userID, l)
		return nil, out, err
	}
	m.opts.Hooks.runStarted(run.ctx, run)
	return run, out, nil
}
