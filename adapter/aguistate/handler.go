package aguistate

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/agentstate/state/workspace"
)

// Options say who asks, and what a page may do.
type Options struct {
	// User returns whose threads a request may see. Its error is not shown: the
	// status is 403 if it matches ErrForbidden, and otherwise 401. There is no
	// default.
	User func(r *http.Request) (string, error)
	// Agent is the agent of the Team with whose rights pages read and write.
	Agent string
	// Write names fields that a page may replace although their handler does not,
	// such as lists, to which Set appends. What the handler Replace or LastWins has,
	// it may write if Agent may.
	Write []string
}

// ErrForbidden is an error of Options.User for somebody who is known and may not
// ask.
var ErrForbidden = errors.New("aguistate: forbidden")

const (
	maxBody    = 8 << 20 // bytes of a request
	maxStreams = 1000    // of a Handler
)

// Handler is an http.Handler for POST requests of clients of AG-UI. It is safe for
// concurrent use.
type Handler struct {
	m       *workspace.Manager
	opts    Options
	streams atomic.Int64
}

// New returns a Handler for the workspaces of a Manager, which needs an
// Options.Run. It panics if the Options have no User.
func New(m *workspace.Manager, opts *Options) *Handler {
	if m == nil || opts == nil || opts.User == nil {
		panic("aguistate: New needs a Manager, and Options with User")
	}
	return &Handler{m: m, opts: *opts}
}

// ServeHTTP answers a request with a stream of events. A client that goes away
// ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST", http.StatusMethodNotAllowed)
		return
	}
	user, err := h.opts.User(r)
	switch {
	case errors.Is(err, ErrForbidden):
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	case err != nil || user == "":
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	defer h.streams.Add(-1)
	if h.streams.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	in, err := readInput(w, r, maxBody)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &stream{handler: h, ctx: ctx, in: in, thread: workspace.Thread(user, in.ThreadID), out: newWriter(w)}
	s.have = in.Messages
	s.serve()
}
