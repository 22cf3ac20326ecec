package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// performRun calls Options.Run and ends the run. It returns the next run, if a
// message waits. The status of the outcome is "" if the run is left to another
// holder.
func (m *Manager) performRun(run *Run) (next *Run, out Outcome, err error) {
	defer func() {
		out.RunID, out.Reply = run.runID, run.Reply()
		run.markReturned() // if it was not called
		run.done()
	}()
	for {
		run, err = m.attemptRun(run)
		returned, ctx := err, context.WithoutCancel(run.ctx) // the result is stored even if the context has ended
		if returned == nil {
			next, err = run.conclude(ctx, nil)
		}
		switch run.verdict(returned, err) {
		case verdictDone:
			out.Status, out.Stop = StatusDone, run.stopped()
			m.moveWindows(run)
			return next, out, nil
		case verdictAnew:
			begun, failed := run.anew()
			if failed != nil {
				return nil, out, m.leaveRun(run, errors.Join(failed, err))
			}
			run.done()
			run = begun
		case verdictLeft:
			if run.hasOverrun(err) && run.canEnd() { // another holder counts the attempt
				run.lease.abandon(fmt.Errorf("%w: %v", ErrFenced, err))
			}
			return nil, out, m.leaveRun(run, err)
		case verdictFailed:
			next, failed := run.conclude(ctx, err)
			if failed != nil {
				if run.canEnd() { // another holder counts an attempt
					run.lease.abandon(fmt.Errorf("%w: %v", errEndNotStored, failed))
				}
				return nil, out, m.leaveRun(run, errors.Join(failed, err))
			}
			out.Status, out.Reason = StatusFailed, run.failureText()
			return next, out, err
		}
	}
}

// verdict is what becomes of a run whose function has returned.
type verdict uint8

const (
	verdictDone   verdict = iota // its end is stored
	verdictAnew                  // it begins anew, without what it has committed
	verdictLeft                  // it is left to another holder
	verdictFailed                // its message is given up
)

// verdict returns what becomes of the run. returned is the error of its function. If
// that is nil, err is the error of the write of its end.
func (r *Run) verdict(returned, err error) verdict {
	stale := errors.Is(err, internal.ErrSharedStale)
	switch {
	case err == nil:
		return verdictDone
	case returned != nil && r.held.Err() == nil:
		return verdictFailed
	case returned != nil && r.hasOverrun(err) && r.isLastAttempt() && r.m.ctx.Err() == nil:
		return verdictFailed // no other holder would have an attempt left
	case returned != nil:
		return verdictLeft
	case stale && r.canEnd() && r.held.Err() == nil:
		return verdictAnew
	case stale, !r.canEnd():
		return verdictLeft
	case r.shared != nil && errors.Is(err, ErrSchema): // of the user part by now
		return verdictLeft
	}
	return verdictFailed // it has left something that cannot be stored
}

// attemptRun calls Options.Run until it asks for no other attempt. It returns
// the run of the last attempt.
func (m *Manager) attemptRun(run *Run) (*Run, error) {
	for {
		err := run.call()
		delay, again := run.delayOf(err)
		if !again {
			return run, err
		}
		run.retried = err
		next, againErr := run.again(delay, run.hasOverrun(err))
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

// delayOf returns the time after which the run is to be begun again because of an
// error, if it is.
func (r *Run) delayOf(err error) (delay time.Duration, again bool) {
	if err == nil || r.isLastAttempt() || r.lease.lost() != nil {
		return 0, false
	}
	var retry *retryError
	overrun := r.hasOverrun(err)
	switch {
	case errors.As(err, &retry) && (overrun || r.held.Err() == nil):
		return retry.delay, true
	case overrun:
		return time.Second << min(r.attempt, 10), true
	}
	return 0, false
}

func (r *Run) isLastAttempt() bool { return r.attempt+1 >= r.m.opts.Attempts }

// call calls Options.Run, after the functions of earlier runs of the user in
// this process have returned. If the function takes longer than Options.RunTimeout,
// or does not return within the grace after the end of its context, the error is
// an overrunError.
func (r *Run) call() error {
	defer r.markReturned()
	if err := r.awaitEarlier(); err != nil {
		return err
	}
	if limit := r.m.opts.RunTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { r.expire(ErrRunTimeout) }).Stop()
	}
	c := startCode("run", r.Redact, func() error {
		r.m.runStarted(r)
		return usable(r.m.opts.Run(r.ctx, r))
	})
	timedOut := func() bool { return errors.Is(context.Cause(r.ctx), ErrRunTimeout) }
	switch {
	case !r.m.waitInGrace(r.ctx, c.done):
		r.leaveFunction(r.ctx, c)
		if timedOut() {
			return &overrunError{r, fmt.Errorf("%w, and its function did not return", ErrRunTimeout)}
		}
		return &overrunError{
			r,
			fmt.Errorf("workspace: its context has ended, and its function did not return: %w", context.Cause(r.ctx)),
		}
	case c.err != nil && timedOut():
		return &overrunError{r, fmt.Errorf("%w: %w", ErrRunTimeout, c.err)}
	}
	return c.err
}

// again returns the run of the next attempt, which begins after a delay. After an
// overrun, it does not end with the call that has begun this run, if that has
// ended.
func (r *Run) again(delay time.Duration, overrun bool) (*Run, error) {
	held, parent := r.held, r.parent
	if overrun && held.Err() != nil {
		held, parent = r.m.ctx, r.m.ctx
	}
	ctx, cancel := r.m.withManager(held)
	defer cancel()
	if err := backoff.Sleep(ctx, min(delay, maxRetryDelay)); err != nil {
		r.cancel(err) // a Manager that is shutting down leaves the attempt to others
		return nil, err
	}
	return r.beginAgain(held, parent, func(ctx context.Context, by ledger.Holder) (*ledger.Head, error) {
		return r.ledger.Again(ctx, by, r.m.opts.Attempts)
	})
}

// anew returns the run, begun anew without what it has committed.
func (r *Run) anew() (*Run, error) { return r.beginAgain(r.held, r.parent, r.ledger.Restart) }

// beginAgain returns the run of which count has noted that it begins again.
func (r *Run) beginAgain(
	held, parent context.Context, count func(context.Context, ledger.Holder) (*ledger.Head, error),
) (*Run, error) {
	began := time.Now()
	h, err := r.count(held, count)
	if err != nil {
		return nil, err
	}
	r.passSlot(r.lease.id, h)
	next, err := r.m.newRun(parent, r.ledger, h, began, r.given)
	r.endLease() // next renews it
	return next, err
}

func (r *Run) count(
	ctx context.Context, count func(context.Context, ledger.Holder) (*ledger.Head, error),
) (*ledger.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return nil, err
	}
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	h, err := count(ctx, r.holder())
	if err != nil {
		return nil, r.endIfLost(err)
	}
	r.end(phaseGone, ErrRunEnded)
	return h, nil
}

// leaveRun leaves a run to another holder. It returns err with the reason.
func (m *Manager) leaveRun(run *Run, err error) error {
	cause := context.Cause(run.held)
	run.release(cause)
	m.watchRun(run.user, run.ledger)
	if cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// performFor is performRun for a caller that goes away when ctx ends. It waits a
// moment longer, so that it can say how a function has ended that returns with
// its context. The run, and those of the messages in the queue, go on.
func (m *Manager) performFor(ctx context.Context, run *Run) (Outcome, error) {
	type result struct {
		out Outcome
		err error
	}
	performed := make(chan result, 1)
	perform := func() {
		next, out, err := m.performRun(run)
		performed <- result{out, err}
		m.drain(next)
	}
	if ctx.Done() == nil || !m.background(perform) {
		next, out, err := m.performRun(run)
		if next != nil {
			m.drainInBackground(next)
		}
		return out, err
	}
	select {
	case r := <-performed:
		return r.out, r.err
	case <-ctx.Done():
	}
	moment := time.NewTimer(m.opts.TTL / 20)
	defer moment.Stop()
	select {
	case r := <-performed:
		return r.out, r.err
	case <-moment.C:
		err := context.Cause(ctx)
		if failed, _ := m.endErrors.Load(run.user); failed != nil {
			err = fmt.Errorf("%w: the end of the run is not stored yet: %w", err, failed.(error))
		}
		return Outcome{RunID: run.runID}, err
	}
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
		run.discard(ErrClosed)
	}
}

// awaitEarlier waits until the functions of earlier runs of the user in this
// process have returned, but not longer than the TTL. It returns an error if the
// context of the run ends, or if there is no room for the message.
func (r *Run) awaitEarlier() error {
	if earlier := r.m.earlierLocalRuns(r); len(earlier) > 0 {
		r.waitFor(earlier)
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return r.refused
}

// waitFor waits until channels are closed, but not longer than the TTL.
func (r *Run) waitFor(returned []<-chan struct{}) {
	timeout := time.NewTimer(r.lease.ttl)
	defer timeout.Stop()
	for _, c := range returned {
		select {
		case <-c:
		case <-r.ctx.Done():
			return
		case <-timeout.C:
			return
		}
	}
}

// leaveFunction notes that the function that handles the message is left behind.
// What it does from now on is not stored.
func (r *Run) leaveFunction(ctx context.Context, c *userCode) {
	r.mu.Lock()
	if r.life.leave(errLeftBehind) {
		r.endWrites(errLeftBehind)
	}
	r.mu.Unlock()
	r.m.leaveCode(ctx, c, r.user, r.runID)
}
