package loop

import (
	"errors"
	"time"

	"github.com/agentstate/state/internal/fault"
)

// Retryable returns an error by which [Agent].Ask says that its request failed
// and may succeed later, for example because the service of the model is
// overloaded. [Loop] asks again after a time: after is the one that the service
// has named, or 0. Retryable returns nil if err is nil.
//
// Package wire says so by itself. Errors of [net.Error] that are timeouts, and
// [io.ErrUnexpectedEOF], may pass as well.
func Retryable(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &passingError{Err: err, After: after}
}

type passingError = fault.PassingError

const maxTries = 6 // of one request

// passing returns the error of a request that may pass. noted is what was noted
// of the request by what has sent it, or nil.
func passing(err error, noted *passingError) (*passingError, bool) {
	failed, may := fault.AsPassing(err)
	if noted != nil && !errors.As(err, new(*passingError)) {
		return &passingError{Err: err, After: noted.After}, true
	}
	return failed, may
}

// noteFailure notes that a request has failed with an error that may pass, or
// with nil that it has not. If after is negative, its answer is lost, and the error
// says of itself whether it may pass.
func (t *Turn) noteFailure(err error, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after < 0 {
		t.lost = err
	} else if t.failure, t.lost = nil, nil; err != nil {
		t.failure = &passingError{Err: err, After: after}
	}
}

func (t *Turn) lastFailure() *passingError {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// unheard returns what was noted, for an Ask that has not heard of it.
func (t *Turn) unheard() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure != nil {
		return t.failure
	}
	return t.lost
}
