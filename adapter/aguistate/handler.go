package aguistate

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"

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
}

// ErrForbidden is an error of Options.User for somebody who is known and may not
// ask.
var ErrForbidden = errors.New("aguistate: forbidden")

const maxBody = 8 << 20 // bytes of a request

// Handler is an http.Handler for POST requests of clients of AG-UI. It refuses
// those of the pages of other sites, as [http.CrossOriginProtection] defines them,
// and bodies that are not application/json. It is safe for concurrent use.
type Handler struct {
	m       *workspace.Manager
	opts    Options
	origins *http.CrossOriginProtection
	slots   slots
}

// New returns a Handler for the workspaces of a Manager, which needs an
// Options.Run. It panics if the Options have no User, or a TrustedOrigin that is
// none.
func New(m *workspace.Manager, opts *Options) *Handler {
	if m == nil || opts == nil || opts.User == nil {
		panic("aguistate: New needs a Manager, and Options with User")
	}
	h := &Handler{m: m, opts: *opts, origins: http.NewCrossOriginProtection(), slots: slots{users: map[string]int{}}}
	for _, origin := range opts.TrustedOrigins {
		if err := h.origins.AddTrustedOrigin(origin); err != nil {
			panic("aguistate: TrustedOrigins: " + err.Error())
		}
	}
	return h
}

// share lets the page of a trusted origin read the answer. It reports whether the
// request was the question of its browser whether the page may send another one.
func (h *Handler) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if !slices.Contains(h.opts.TrustedOrigins, origin) {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// ServeHTTP answers a request with a stream of events. A client that goes away
// ends nothing but the stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience)) // not each server has one
	if h.share(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST", http.StatusMethodNotAllowed)
		return
	}
	if h.origins.Check(r) != nil {
		http.Error(w, "the request comes from another site", http.StatusForbidden)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
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
	if !h.slots.enter(user) {
		refuse(w, "too many streams of one user", http.StatusTooManyRequests)
		return
	}
	defer h.slots.leave(user)
	in, err := readInput(w, r, maxBody)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the body takes too long", http.StatusRequestTimeout)
		return
	case errors.As(err, &tooLarge):
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	if !h.slots.begin() {
		refuse(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	defer h.slots.end()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &stream{handler: h, ctx: ctx, in: in, thread: workspace.Thread(user, in.ThreadID), origin: in.ThreadID, out: newWriter(w)}
	s.have = in.Messages
	s.serve()
}

// refuse answers a request that may be sent again later.
func refuse(w http.ResponseWriter, text string, status int) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, text, status)
}
