package aguistate

import (
	"errors"
	"net/http"

	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// Options are those of package statehttp. Titles is not used. Who is asked with the
// name "", before the body is read, and again with that of the thread.
type Options = statehttp.Options

// Handler is an http.Handler for POST requests of clients of AG-UI. It refuses
// those of the pages of other sites, as [http.CrossOriginProtection] defines them,
// bodies that are not application/json, and on a loopback address names of the server
// that Options.Hosts does not have. It is safe for concurrent use.
type Handler struct {
	m     *workspace.Manager
	opts  Options
	guard *pagehttp.Guard
}

// New returns a Handler for the workspaces of a Manager, which needs an Options.Run.
// It returns an error if the Options have no Who, or an invalid TrustedOrigin.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	if m == nil || opts == nil || opts.Who == nil {
		return nil, errors.New("aguistate: New needs a Manager, and Options with Who")
	}
	h := &Handler{m: m, opts: *opts}
	if h.opts.May == nil {
		h.opts.May = statehttp.MayNotDelete
	}
	var err error
	h.guard, err = pagehttp.NewGuard(pagehttp.Config{
		Package: "aguistate", Methods: "POST", Trusted: opts.TrustedOrigins, Hosts: opts.Hosts, MaxBody: opts.MaxBody, Logger: opts.Logger, Status: statehttp.Status,
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// ServeHTTP answers a request with a stream of events. A client that goes away
// ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.guard.Admit(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST", http.StatusMethodNotAllowed)
		return
	}
	who, err := h.opts.Who(r, "")
	leave, ok := h.guard.Enter(w, who.User, who.Agent, err)
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
	if who, err = h.opts.Who(r, in.ThreadID); !h.guard.Knows(w, who.User, who.Agent, err) {
		return
	}
	s := &stream{
		r: r, in: in, manager: h.m, origin: workspace.Thread(who.User, in.ThreadID), index: map[string]*message{},
		pages: &page.Source{Manager: h.m, Agent: who.Agent, Write: h.opts.Write, Errors: h.opts.Errors, Files: h.opts.Files},
		may:   func(a statehttp.Action) error { return h.opts.May(r, who, a, in.ThreadID) },
	}
	if err := s.may(statehttp.ActionRead); err != nil {
		status, text := h.guard.Explain(w, r, err)
		http.Error(w, text, status)
		return
	}
	end, ok := h.guard.Begin(w)
	if !ok {
		return
	}
	defer end()
	s.out = pagehttp.NewWriter(w)
	s.serve()
}
