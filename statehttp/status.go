package statehttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// ErrForbidden is an error of Options.Who for somebody who is known and may not ask,
// and of Options.May for what nobody may do who asks.
var ErrForbidden = errors.New("statehttp: forbidden")

// statuses are those of errors. An error has the first that matches.
var statuses = []struct {
	err    error
	status int
}{
	{ErrForbidden, http.StatusForbidden},
	{state.ErrDenied, http.StatusForbidden},
	{workspace.ErrQueueFull, http.StatusTooManyRequests},
	{workspace.ErrNotSuspended, http.StatusConflict}, // somebody else was faster
	{workspace.ErrExpired, http.StatusConflict},
	{state.ErrUnknownCall, http.StatusConflict},
	{workspace.ErrExists, http.StatusConflict},
	{store.ErrConflict, http.StatusConflict},
	{state.ErrConflict, http.StatusConflict},
	{workspace.ErrNotFound, http.StatusNotFound},
	{state.ErrCompacted, http.StatusGone},
	{workspace.ErrUserDeleted, http.StatusGone},
	{state.ErrLimitExceeded, http.StatusRequestEntityTooLarge},
	{store.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{workspace.ErrCorrupt, http.StatusInternalServerError},
	{workspace.ErrRolledBack, http.StatusInternalServerError},
	{workspace.ErrNewerFormat, http.StatusInternalServerError},
	{workspace.ErrInvalidKey, http.StatusInternalServerError},
	{workspace.ErrSchema, http.StatusInternalServerError},
	{workspace.ErrInvalid, http.StatusBadRequest},
	{state.ErrInvalid, http.StatusBadRequest},
	{state.ErrWrongType, http.StatusBadRequest}, // the value of a field
	{state.ErrUnknownField, http.StatusBadRequest},
	{state.ErrRefused, http.StatusBadRequest},
	{workspace.ErrBusy, http.StatusServiceUnavailable},
	{workspace.ErrFenced, http.StatusServiceUnavailable},
	{workspace.ErrClosed, http.StatusServiceUnavailable},
	{store.ErrUnknownOutcome, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
}

// Status returns the status of HTTP for an error of package workspace, or of the page
// of a program. It is 503 only where the same request, with the same id, may succeed
// later; 409 where others have changed what it is about; 500 for what an operator has
// to mend, and for errors that are not known; and 200 for nil.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	var panicked *state.PanicError // it is ErrRefused
	if errors.As(err, &panicked) {
		return http.StatusInternalServerError
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	if workspace.ErrorClass(err) == "store_timeout" {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
