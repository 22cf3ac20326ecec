package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shutdown closes the Manager when its runs have ended. Messages are refused
// with ErrClosed from now on, and messages that wait in queues are left to other
// Managers, which handle them at once, or within their TTL. If ctx
// ends before the runs do, Shutdown returns its error after Close.
//
// Shutdown returns ErrBusy, and does nothing, if ctx is that of a run of the
// Manager: the run would wait for itself.
func (m *Manager) Shutdown(ctx context.Context) error {
	if r, ok := FromContext(ctx); ok && r.m == m {
		return fmt.Errorf("workspace: shutdown: %w", ErrBusy)
	}
	m.refuse(ErrClosed)
	err := m.Wait(ctx)
	return errors.Join(err, m.Close())
}

// Close ends the contexts of the runs that this Manager holds, waits until the
// functions in Options have returned, and releases the runs that have not ended:
// other Managers continue them at once, without counting an attempt. Messages in
// queues are left to other Managers as well. For a graceful end, use Shutdown.
//
// If functions have not returned after Options.TTL, Close returns ErrBusy, and
// their runs are left to other Managers, with the attempt counted. So Close must not be
// called by such a function: it would wait for itself.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(ErrClosed)
	returned := make(chan struct{})
	go func() {
		m.goroutines.Wait()
		close(returned)
	}()
	timeout := time.NewTimer(m.opts.TTL)
	defer timeout.Stop()
	select {
	case <-returned:
		if !m.isCodeLeft() {
			return nil
		}
	case <-timeout.C:
	}
	return fmt.Errorf("workspace: close: %w: a function has not returned", ErrBusy)
}

// Wait waits until this Manager holds no run, or until ctx ends. Runs of
// messages in queues count, as long as the Manager takes them. Wait returns
// ErrBusy if ctx is that of a run of the Manager.
func (m *Manager) Wait(ctx context.Context) error {
	if r, ok := FromContext(ctx); ok && r.m == m {
		return fmt.Errorf("workspace: wait: %w", ErrBusy)
	}
	m.mu.Lock()
	if m.activeRuns == 0 {
		m.mu.Unlock()
		return nil
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	idle := m.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
