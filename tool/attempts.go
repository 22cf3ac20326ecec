package tool

import (
	"context"
	"errors"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
)

// Attempts lets the function of a tool be called up to n times for one call, as long
// as its error may pass: one of [github.com/agentstate/state/loop.Retryable], a
// timeout of a [net.Error] or [io.ErrUnexpectedEOF]. It is called again after a
// second, which doubles with each attempt up to a minute, or after the time that the
// service has named, but not more than 10 minutes. The Key of [CallOf] is the same each
// time: a service that drops what it has seen under a key has one effect. The
// default is 1.
//
// It is not for a tool with [Once], nor for one whose service makes again what comes
// with a key that it has seen.
func Attempts(n int) Option {
	return option(func(b *binder) {
		switch {
		case n < 1:
			b.fail("Attempts: %d is not a number of attempts", n)
		case b.once && n > 1:
			b.fail("Attempts: the tool has Once, and no call of it is made twice")
		}
		b.attempts = n
	})
}

// Timeout limits the time that the function of a tool has for one attempt to d. Then
// its context ends, and if it has not returned by then, the call has failed: the
// model reads that it may have been made, and the run goes on. The function is left
// behind, and what it returns is dropped. The default is that of the Loop, or no limit.
func Timeout(d time.Duration) Option {
	return option(func(b *binder) {
		if d <= 0 {
			b.fail("Timeout: %v is not a time", d)
		}
		b.timeout = d
	})
}

// Polls is for a tool that a model calls again and again until something has
// happened: a Loop lets calls of it repeat. See MaxRepeats of
// [github.com/agentstate/state/loop.Loop].
func Polls() Option { return option(func(b *binder) { b.polls = true }) }

// Polls reports whether the tool has [Polls].
func (t *Tool) Polls() bool { return t.polls }

// errTimeout is the error of a function that has not returned in time.
var errTimeout = errors.New("it has not returned in time")

// attempt calls the function, again if its error may pass and the tool allows it.
// Each attempt gets an input of its own, which prepare returns.
func (t *Tool) attempt(
	ctx context.Context, st *state.State, input any, prepare func() (any, error),
) (r result, err error) {
	for try := 1; ; try++ {
		r, err = t.invokeInTime(ctx, st, input)
		failed, may := fault.AsPassing(err)
		if !may || try >= t.attempts || errors.Is(err, errTimeout) || failed.Wait(ctx, try) != nil {
			return r, err
		}
		if input, err = prepare(); err != nil {
			return r, err
		}
	}
}

// invokeInTime is invoke within the time limit of the tool, or of the Loop.
func (t *Tool) invokeInTime(ctx context.Context, st *state.State, input any) (result, error) {
	limit := t.timeout
	if limit == 0 {
		limit = runctx.CallTimeoutOf(ctx)
	}
	if limit == 0 {
		return t.invoke(ctx, st, input)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	type returned struct {
		result
		err error
	}
	done := make(chan returned, 1)
	go func() {
		defer cancel()
		r := returned{err: &PanicError{Tool: t.name}} // if code of the user ends the goroutine
		defer func() { done <- r }()
		defer recoverPanic(t.name, &r.err)
		r.result, r.err = t.invoke(limited, st, input)
	}()
	var r returned
	select {
	case r = <-done:
	case <-limited.Done():
		select {
		case r = <-done: // because of that
		case <-time.After(moment):
			r.err = limited.Err() // it is left behind
		}
	}
	switch {
	case r.err == nil:
		return r.result, nil
	case context.Cause(limited) == errTimeout:
		return result{}, t.errorf("%w: the limit is %v, and the call may have been made", errTimeout, limit)
	}
	return r.result, r.err
}

// moment is how long a function has for returning when its context has ended.
const moment = 100 * time.Millisecond
