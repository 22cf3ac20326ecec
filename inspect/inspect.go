package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/view"
	"github.com/agentstate/state/workspace"
)

// Options configures a Handler. The zero value is that of a nil *Options.
type Options struct {
	// Title is shown in the header of the pages (default "state").
	Title string
	// Authorize returns what a request may do (default Loopback). It is called
	// once for each request.
	Authorize func(r *http.Request) Access
	// Hosts are the names under which the Handler is reached, besides localhost,
	// 127.0.0.1 and ::1, with a port or for any port. Requests with another Host
	// are refused, so that a name that an attacker has pointed to this machine
	// reaches nothing.
	Hosts []string
	// Logger gets requests that fail, and every action (default none).
	Logger *slog.Logger
	// Interval is the time after which an open page asks what has changed
	// (default 2 s).
	Interval time.Duration
}

// Handler shows the workspaces of a Manager. It is safe for concurrent use.
type Handler struct {
	manager   *workspace.Manager
	info      workspace.Info
	title     string
	authorize func(r *http.Request) Access
	hosts     map[string]bool
	logger    *slog.Logger
	interval  time.Duration
	origins   *http.CrossOriginProtection
	src       *view.Source
	pages     map[string]func(context.Context, view.Query) (*view.Page, error)
	actions   map[string]route // of method POST
	asks      map[string]route // the forms before an action
}

// New returns a handler that shows the workspaces of m. Mount it under any
// prefix:
//
//	mux.Handle("/debug/state/", http.StripPrefix("/debug/state", h))
//
// The handler does not close m. It returns an error for Options that have no
// meaning.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	if m == nil {
		return nil, errors.New("inspect: Manager is nil")
	}
	if opts == nil {
		opts = &Options{}
	}
	if opts.Interval < 0 {
		return nil, fmt.Errorf("inspect: Interval is %v", opts.Interval)
	}
	h := &Handler{
		manager: m, title: opts.Title, authorize: opts.Authorize, logger: opts.Logger, interval: opts.Interval,
		origins: http.NewCrossOriginProtection(),
	}
	if h.title == "" {
		h.title = "state"
	}
	if h.authorize == nil {
		h.authorize = Loopback
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if h.interval == 0 {
		h.interval = 2 * time.Second
	}
	var err error
	if h.hosts, err = hostNames(opts.Hosts); err != nil {
		return nil, err
	}
	h.info = m.Info()
	h.src = view.New(m)
	h.pages = pages(h.src)
	h.actions, h.asks = actions()
	return h, nil
}

// contentPolicy lets pages load nothing but the files of this handler.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const (
	maxBody      = 1 << 20          // the length of the longest form in bytes
	formPatience = 10 * time.Second // for a form
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, a form of a page that is not on HTTPS comes with the
	// header "Origin: null", as one of another site does.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.URL.Path == "" && !mountedWithSlash(r) {
		// Relative links need the slash.
		name := r.RequestURI
		name, _, _ = strings.Cut(name, "?")
		header.Set("Location", "./"+url.PathEscape(name[strings.LastIndexByte(name, '/')+1:])+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	c := newCall(h, w, r)
	page, err := c.serve()
	status := http.StatusOK
	switch {
	case err == view.ErrNotModified:
		w.WriteHeader(http.StatusNotModified)
		return
	case err == errAskAgain:
		status = http.StatusUnprocessableEntity
	case err != nil:
		page, status = c.errorPage(err)
	}
	if page != nil {
		c.render(page, status)
	}
}

// mountedWithSlash reports whether the handler is mounted by a StripPrefix
// whose prefix ends in a slash.
func mountedWithSlash(r *http.Request) bool {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return path == "" || strings.HasSuffix(path, "/")
}
