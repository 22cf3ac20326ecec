package view

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// explained are the errors whose texts are shown: they say what is wrong with a
// workspace and hold no values. Others may hold the address of a database.
var explained = []struct {
	err    error
	status int
	text   string
}{
	{state.ErrCompacted, http.StatusGone, "This version is no longer held."},
	{workspace.ErrCorrupt, http.StatusInternalServerError, "The stored data is damaged."},
	{workspace.ErrNewerFormat, http.StatusInternalServerError, "A newer version of the library wrote this workspace."},
	{
		workspace.ErrInvalidKey, http.StatusInternalServerError,
		"The workspace is sealed with a key that was not given, or is not sealed.",
	},
	{workspace.ErrRolledBack, http.StatusInternalServerError, "The workspace is older than it was seen before."},
	{workspace.ErrSchema, http.StatusInternalServerError, "The content does not fit the schema."},
	{workspace.ErrBusy, http.StatusConflict, "That is not possible during a run."},
	{workspace.ErrNotFound, http.StatusNotFound, "There is no such run or message."},
	{workspace.ErrInvalid, http.StatusBadRequest, "The request has a parameter that has no meaning."},
	{
		workspace.ErrNotSuspended, http.StatusConflict,
		"This call does not wait any more, or a message about it was accepted before.",
	},
	{store.ErrConflict, http.StatusConflict, "The workspace has changed meanwhile."},
	{store.ErrReadOnly, http.StatusForbidden, "The store is open for reading only."},
	{workspace.ErrClosed, http.StatusServiceUnavailable, "The Manager is closed."},
	{context.Canceled, http.StatusServiceUnavailable, "The request was given up."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "The store did not answer in time."},
}

// Explain returns the status and the explanation of an error of a Manager.
func Explain(err error) (status int, text string) {
	var known *Error
	if errors.As(err, &known) {
		return known.Status, known.Text
	}
	for _, e := range explained {
		if !errors.Is(err, e.err) {
			continue
		}
		if detail := detailOf(err, e.err); e.status == http.StatusInternalServerError && detail != "" {
			return e.status, strings.TrimSuffix(e.text, ".") + ": " + detail
		}
		return e.status, e.text
	}
	return http.StatusBadGateway, "The store cannot be read: error of class " + workspace.ErrorClass(err) + ". The log has more."
}

// detailOf returns what an error says after the text of one that it wraps.
func detailOf(err, wrapped error) string {
	_, detail, _ := strings.Cut(err.Error(), wrapped.Error()+": ")
	return detail
}
