package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
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
	if hook := m.opts.Hooks.OnRunFailed; err != nil && hook != nil {
		m.callHook(ctx, "OnRunFailed", run.user, run.Redact, func() { hook(ctx, run, err) })
	}
}

func (m *Manager) messageDead(ctx context.Context, user string, msg Message) {
	if hook := m.opts.Hooks.OnMessageDead; hook != nil {
		m.callHook(ctx, "OnMessageDead", user, hideText, func() { hook(ctx, user, msg) })
	}
}

// memoryChanged calls the hooks for the effects on the memory.
func (m *Manager) memoryChanged(ctx context.Context, user string, effects []state.Effect) {
	set, deleted := m.opts.Hooks.OnMemorySet, m.opts.Hooks.OnMemoryDelete
	for i := range effects {
		switch e := &effects[i]; {
		case e.Part != document.PartMemory:
		case e.Kind == state.EffectDelete && deleted != nil:
			m.callHook(ctx, "OnMemoryDelete", user, hideText, func() { deleted(ctx, user, e.Field) })
		case e.Kind == state.EffectSet && set != nil:
			m.callHook(ctx, "OnMemorySet", user, hideText, func() { set(ctx, user, e.Field) })
		}
	}
}

// callHook calls a hook. What goes wrong in it does not concern the run.
func (m *Manager) callHook(ctx context.Context, name, user string, redact func(string) string, hook func()) {
	began := time.Now()
	if err := protect("hook "+name, redact, hook); err != nil {
		m.logBroken(ctx, "hook "+name, user, err)
	}
	if took := time.Since(began); took > m.opts.TTL/10 {
		m.logSlow(ctx, "hook "+name, user, took)
	}
}

// hideText is used where the secrets that a text may contain are not known.
func hideText(string) string { return masked }

// protect calls code of the user, and waits for it. It returns an error if the
// code panics, or ends its goroutine as t.FailNow does. It calls the code in
// another goroutine, so that the present one can go on.
func protect(what string, redact func(string) string, code func()) error {
	ended := make(chan error, 1)
	go func() {
		var err error = &panicError{fmt.Sprintf("workspace: %s ended its goroutine", what)}
		defer func() { ended <- err }()
		defer func() {
			if p := recover(); p != nil {
				err = &panicError{fmt.Sprintf("workspace: %s panicked: %s", what, redact(fmt.Sprint(p)))}
			}
		}()
		code()
		err = nil
	}()
	return <-ended
}

type panicError struct{ text string }

func (e *panicError) Error() string        { return e.text }
func (e *panicError) Is(target error) bool { return target == errPanic }

// usable returns an error of the user. It panics if that panics when it is used,
// as a nil pointer in an error does.
func usable(err error) error {
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, ErrClosed)
	}
	return err
}
