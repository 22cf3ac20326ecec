package workspace

import (
	"context"
	"time"
)

func (m *Manager) runStarted(run *Run) {
	if run.ticket {
		return
	}
	if hook := m.opts.Hooks.OnRunStart; hook != nil {
		m.callHook(run.ctx, "OnRunStart", run.user, run.Redact, func() { hook(run.ctx, run) })
	}
}

func (m *Manager) runCompleted(ctx context.Context, run *Run, err error) {
	if run.ticket {
		return
	}
	if hook := m.opts.Hooks.OnRunComplete; hook != nil {
		m.callHook(ctx, "OnRunComplete", run.user, run.Redact, func() { hook(ctx, run, err) })
	}
}

// maxHookTime is the longest time that a run waits for a hook, in TTLs.
const maxHookTime = 3

// callHook calls a hook. What goes wrong in it does not concern the run.
func (m *Manager) callHook(ctx context.Context, name, user string, redact func(string) string, hook func()) {
	began := time.Now()
	c := startCode("hook "+name, redact, func() error { hook(); return nil })
	timeout := time.NewTimer(maxHookTime * m.opts.TTL)
	defer timeout.Stop()
	select {
	case <-c.done:
		if c.err != nil {
			m.logBroken(ctx, c.what, user, c.err)
		}
	case <-timeout.C:
		m.leaveCode(ctx, c, user, "")
	}
	if took := time.Since(began); took > m.opts.TTL/10 {
		m.logSlow(ctx, "hook "+name, user, took)
	}
}
