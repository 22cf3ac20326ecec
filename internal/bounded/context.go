// Package bounded has contexts with bounds, for calls that mostly end long before
// them.
package bounded

import (
	"context"
	"sync"
	"time"
)

// By is when a context ends, besides its parent.
type By struct {
	Timeout time.Duration   // after which it ends; not positive if there is none
	Cause   error           // of the end by Timeout
	Other   context.Context // with which it ends, for the same cause; may be nil
}

// Context is a context without timers and goroutines until somebody waits for its
// Done: most calls of a store look at Err at most.
type Context struct {
	parent   context.Context
	by       By
	deadline time.Time // of Timeout

	mu     sync.Mutex
	whole  context.Context // made when it is needed, or nil
	cancel context.CancelFunc
	ended  bool // cancel was called
}

// New returns a context that ends with parent, with its bounds, and when End is
// called, which the caller does as with the functions of package context.
func New(parent context.Context, by By) *Context {
	c := &Context{parent: parent, by: by}
	if by.Timeout > 0 {
		c.deadline = time.Now().Add(by.Timeout)
	}
	return c
}

// End ends the context. It may be called more than once.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (deadline time.Time, ok bool) {
	deadline, ok = c.parent.Deadline()
	if !c.deadline.IsZero() && (!ok || c.deadline.Before(deadline)) {
		return c.deadline, true
	}
	return deadline, ok
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make().Done()
}

// Err implements [context.Context].
func (c *Context) Err() error {
	return c.present().Err()
}

// Value implements [context.Context]. By it, package context also finds the cause
// of the end.
func (c *Context) Value(key any) any {
	return c.present().Value(key)
}

// present returns a context with the Err and the values that c has now.
func (c *Context) present() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole == nil && !c.isOver() {
		return c.parent
	}
	return c.make()
}

// isOver reports whether the context has ended otherwise than with its parent. The
// caller holds mu.
func (c *Context) isOver() bool {
	return c.ended || c.by.Other != nil && c.by.Other.Err() != nil ||
		!c.deadline.IsZero() && !time.Now().Before(c.deadline)
}

// make returns a context of package context with the bounds. The caller holds mu.
func (c *Context) make() context.Context {
	if c.whole != nil {
		return c.whole
	}
	ctx, end := context.WithCancelCause(c.parent)
	c.whole, c.cancel = ctx, func() { end(nil) }
	if other := c.by.Other; other != nil {
		stop := context.AfterFunc(other, func() { end(context.Cause(other)) })
		c.cancel = func() {
			stop()
			end(nil)
		}
		if other.Err() != nil {
			end(context.Cause(other))
		}
	}
	if !c.deadline.IsZero() {
		timed, stop := context.WithDeadlineCause(ctx, c.deadline, c.by.Cause)
		cancel := c.cancel
		c.whole, c.cancel = timed, func() {
			stop()
			cancel()
		}
	}
	if c.ended {
		c.cancel()
	}
	return c.whole
}
