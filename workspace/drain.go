package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/store"
)

// performRun calls Options.Run and ends the run. It returns the next run, if a
// message waits. The status is "" if the run is left to be taken over.
func (m *Manager) performRun(run *Run) (next *Run, status Status, err error) {
	err = m.callRun(run)
	// The result of the run is stored even if its context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run.ctx), run.ttl)
	defer cancel()
	if err == nil {
		next, err = run.Finish(ctx)
		if err == nil {
			return next, StatusDone, nil
		}
		if storeFailed := errors.As(err, new(*store.Error)); storeFailed || !run.leaseValid() {
			return nil, "", m.leaveRun(run, err)
		}
		// The run has left something that cannot be stored.
	} else if run.ctx.Err() != nil {
		return nil, "", m.leaveRun(run, err)
	}
	next, failErr := run.Fail(ctx, err)
	if failErr != nil {
		m.abandonRun(run, failErr)
		return nil, "", errors.Join(failErr, err)
	}
	return next, StatusFailed, err
}

// leaveRun abandons a run, and returns err with the reason why its context has
// ended.
func (m *Manager) leaveRun(run *Run, err error) error {
	m.abandonRun(run, err)
	if cause := context.Cause(run.ctx); cause != nil && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

// abandonRun stops renewing the lease of a run, so that it is taken over.
func (m *Manager) abandonRun(run *Run, err error) {
	run.abandon(err)
	m.watchRun(run.user, run.ledger)
}

// callRun calls Options.Run. A panic is an error of the run.
func (m *Manager) callRun(run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("workspace: run panicked: %s", run.Redact(fmt.Sprint(p)))
		}
	}()
	return m.opts.Run(run.ctx, run)
}

// drain performs a run and the runs of the messages in the queue.
func (m *Manager) drain(run *Run) {
	for run != nil {
		run, _, _ = m.performRun(run) // hooks report errors
	}
}

// drainInBackground calls drain in a goroutine.
func (m *Manager) drainInBackground(run *Run) {
	done := m.trackRun()
	started := m.background(func() {
		defer done()
		m.drain(run)
	})
	if !started {
		done()
	}
}
