package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// performRun calls Options.Run and ends the run. It returns the next run, if a
// message waits. The status of the outcome is "" if the run is left to another
// holder.
func (m *Manager) performRun(run *Run) (next *Run, out Outcome, err error) {
	run, err = m.attemptRun(run)
	defer func() {
		out.RunID, out.Reply = run.runID, run.Reply()
		run.markReturned() // if it was not called
		run.done()
	}()
	if err != nil && run.ctx.Err() != nil {
		return nil, out, m.leaveRun(run, err)
	}
	ctx := context.WithoutCancel(run.ctx) // the result is stored even if the context has ended
	if err == nil {
		next, err = run.endFinished(ctx)
		switch {
		case err == nil:
			out.Status = StatusDone
			return next, out, nil
		case !run.leaseValid():
			return nil, out, m.leaveRun(run, err)
		}
		// The run has left something that cannot be stored.
	}
	next, failErr := run.endFailed(ctx, err)
	if failErr != nil {
		if run.leaseValid() { // another holder counts an attempt
			run.lease.abandon(fmt.Errorf("%w: %v", errEndNotStored, failErr))
		}
		return nil, out, m.leaveRun(run, errors.Join(failErr, err))
	}
	out.Status, out.Reason = StatusFailed, run.failureText()
	return next, out, err
}

// attemptRun calls Options.Run until it asks for no other attempt. It returns
// the run of the last attempt.
func (m *Manager) attemptRun(run *Run) (*Run, error) {
	for {
		err := run.call()
		var retry *retryError
		if !errors.As(err, &retry) || run.ctx.Err() != nil || run.attempt+1 >= m.opts.Attempts {
			return run, err
		}
		run.retried = err
		next, againErr := run.again(retry.delay)
		if againErr != nil {
			if errors.Is(againErr, ledger.ErrAttempts) {
				return run, err
			}
			return run, errors.Join(againErr, err)
		}
		run.done()
		run = next
	}
}

// call calls Options.Run, after the functions of earlier runs of the user in
// this process have returned.
func (r *Run) call() error {
	defer r.markReturned()
	if err := r.start(); err != nil {
		return err
	}
	var err error
	if ended := protect("run", r.Redact, func() { err = usable(r.callProfiled(r.m.opts.Run)) }); ended != nil {
		return ended
	}
	return err
}

// again returns the run of the next attempt, which begins after a delay.
func (r *Run) again(delay time.Duration) (*Run, error) {
	ctx, cancel := r.m.withManager(r.ctx)
	defer cancel()
	if err := backoff.Sleep(ctx, min(delay, maxRetryDelay*r.lease.ttl)); err != nil {
		r.cancel(err) // a Manager that is shutting down leaves the attempt to others
		return nil, err
	}
	began := time.Now()
	h, err := r.countAttempt()
	if err != nil {
		return nil, err
	}
	r.passSlot(r.lease.id, h)
	next, err := r.m.newRun(r.parent, r.ledger, h, began, r.manual)
	r.lease.giveUp(ErrRunEnded) // next renews it
	return next, err
}

func (r *Run) countAttempt() (*ledger.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return nil, err
	}
	ctx, cancel := r.lease.whileHeld(r.ctx)
	defer cancel()
	h, err := r.ledger.Again(ctx, r.holder(), r.m.opts.Attempts)
	if err != nil {
		return nil, r.endIfLost(err)
	}
	r.end(ErrRunEnded)
	return h, nil
}

// leaveRun leaves a run to another holder. It returns err with the reason.
func (m *Manager) leaveRun(run *Run, err error) error {
	cause := context.Cause(run.ctx)
	run.release(cause)
	m.watchRun(run.user, run.ledger)
	if cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// drain performs a run and the runs of the messages in the queue.
func (m *Manager) drain(run *Run) {
	for run != nil {
		run, _, _ = m.performRun(run) // hooks report errors
	}
}

// drainInBackground calls drain in a goroutine.
func (m *Manager) drainInBackground(run *Run) {
	if !m.background(func() { m.drain(run) }) {
		run.release(ErrClosed)
		run.markReturned()
		run.done()
	}
}
