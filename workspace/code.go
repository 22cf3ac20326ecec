package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/internal/fault"
)

// userCode is code of the user that runs in a goroutine of its own, or in that of
// the caller of Do, so that the one that waits for it can go on whatever the code
// does.
type userCode struct {
	what string
	done chan struct{} // closed when the code has ended
	err  error         // after done
}

// startCode calls code of the user. Its error is that of the code, or a panicError
// if the code has panicked or ended its goroutine as t.FailNow does, and if the
// text of its error has the stack of a panic that it has caught itself.
func startCode(what string, redact func(string) string, code func() error) *userCode {
	c := &userCode{what: what, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		returned := false
		defer func() {
			if p := recover(); p != nil {
				c.err = newPanicError(what, redact(fmt.Sprint(p)), redact)
			} else if !returned {
				c.err = &panicError{text: fmt.Sprintf("workspace: %s ended its goroutine", what)}
			}
		}()
		if c.err = code(); c.err != nil {
			if text, stack := fault.CutStack(c.err.Error()); stack != "" {
				c.err = &panicError{redact(text), redact(stack), c.err}
			}
		}
		returned = true
	}()
	return c
}

// newPanicError returns the error of code that has panicked with a value. It is
// called where the panic is recovered.
func newPanicError(what, value string, redact func(string) string) *panicError {
	return &panicError{text: fmt.Sprintf("workspace: %s panicked: %s", what, value), stack: redact(string(debug.Stack()))}
}

// panicOf is newPanicError where the secrets that the value may have are not known.
func panicOf(what string, p any) *panicError {
	text := masked
	if err, ok := p.(runtime.Error); ok {
		text = err.Error()
	}
	return newPanicError(what, text, func(stack string) string { return stack })
}

// waitInGrace waits until the code has ended, but not longer than for the grace
// after the end of ctx. It reports false if the code has not.
func (m *Manager) waitInGrace(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	grace := time.NewTimer(m.opts.TTL)
	defer grace.Stop()
	for closed := m.ctx.Done(); ; closed = nil {
		select {
		case <-done:
			return true
		case <-grace.C:
			return false
		case <-closed: // Close waits for one TTL, in which the runs are left to others
			grace.Reset(m.opts.TTL * 3 / 4)
		}
	}
}

// leaveCode leaves code of the user behind: nobody waits for it any more.
func (m *Manager) leaveCode(ctx context.Context, c *userCode, user, runID string) {
	m.counters.count(func(s *stats) { s.Abandoned++ })
	m.isCodeLeft() // forgets what has ended
	m.mu.Lock()
	m.leftCode = append(m.leftCode, c.done)
	m.mu.Unlock()
	if m.logs(ctx, slog.LevelError) {
		err := fmt.Errorf("workspace: %s did not return", c.what)
		m.raise(ctx, alarmLeftBehind.of(c.what), user, err, slog.String("run", runID), slog.String("stacks", codeStacks()))
	}
}

// isCodeLeft reports whether code that was left behind has not ended yet, and
// forgets that which has.
func (m *Manager) isCodeLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leftCode = slices.DeleteFunc(m.leftCode, func(done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	return len(m.leftCode) > 0
}

// overrunError is the error of an attempt that counts although its context has
// ended: the function has taken too long.
type overrunError struct {
	run *Run
	err error
}

func (e *overrunError) Error() string { return e.err.Error() }
func (e *overrunError) Unwrap() error { return e.err }

// hasOverrun reports whether err is an overrunError of the run.
func (r *Run) hasOverrun(err error) bool {
	var e *overrunError
	return errors.As(err, &e) && e.run == r
}

// maxStacks is the number of bytes of the stacks that are logged.
const maxStacks = 64 << 10

// codeStacks returns the stacks of the code of users that is under way, that
// which was left behind among it, as a profile of goroutines shows them: Go has
// no way to ask for the stack of one other goroutine.
func codeStacks() string {
	var all, code strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "workspace.startCode") || strings.Contains(stack, "workspace.(*Run).do+") {
			code.WriteString(stack)
			code.WriteString("\n\n")
		}
	}
	return code.String()[:min(code.Len(), maxStacks)]
}
