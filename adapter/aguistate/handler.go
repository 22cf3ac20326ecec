package aguistate

import (
	"context"
	"errors"
	"net/http"

	"github.com/agentstate/state/internal/pagehttp"
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
	// TrustedOrigins are other sites, such as "https://app.example.com", whose pages
	// may send requests with the cookies of the user (default: none). Browsers ask for
	// that with OPTIONS, so mount the Handler for more than POST.
	TrustedOrigins []string
	// Hosts are the names under which a proxy on the same machine reaches the server
	// (default: none). For a server that is not on a loopback address, they are not
	// needed.
	Hosts []string
}

// ErrForbidden is an error of Options.User for somebody who is known and may not
// ask.
var ErrForbidden = errors.New("aguistate: forbidden")

const maxBody = 8 << 20 // bytes of a request

// Handler is an http.Handler for POST requests of clients of AG-UI. It refuses
// those of the pages of other sites, as [http.CrossOriginProtection] defines them,
// bodies that are not application/json, and on a loopback address names of the server
// that Options.Hosts does not have. It is safe for concurrent use.
type Handler struct {
	m     *workspace.Manager
	opts  Options
	guard *pagehttp.Guard
}

// New returns a Handler for the workspaces of a Manager, which needs an
// Options.Run. It panics if the Options have no User, or a TrustedOrigin that is
// none.
func New(m *workspace.Manager, opts *Options) *Handler {
	if m == nil || opts == nil || opts.User == nil {
		panic("aguistate: New needs a Manager, and Options with User")
	}
	h := &Handler{m: m, opts: *opts}
	var err error
	if h.guard, err = pagehttp.NewGuard(opts.TrustedOrigins, opts.Hosts, maxBody); err != nil {
		panic("aguistate: " + err.Error())
	}
	return h
}

// ServeHTTP answers a request with a stream of events. A client that goes away
// ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.guard.Admit(w, r, http.MethodPost) {
		return
	}
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
	leave, ok := h.guard.Enter(w, user)
	if !ok {
		return
	}
	defer leave()
	data, ok := h.guard.Body(w, r)
	if !ok {
		return
	}
	in, err := readInput(data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	end, ok := h.guard.Begin(w)
	if !ok {
		return
	}
	defer end()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &stream{handler: h, ctx: ctx, in: in, thread: workspace.Thread(user, in.ThreadID), origin: in.ThreadID, out: pagehttp.NewWriter(w)}
	s.have = in.Messages
	s.serve()
}
