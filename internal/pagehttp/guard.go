// Package pagehttp is what the handlers for pages have in common: which requests
// they refuse before anything is done, and how they stream.
package pagehttp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

const (
	patience     = 10 * time.Second // for a client that takes nothing
	bodyPatience = 30 * time.Second // for the body of a request
)

// Config says what a Guard lets in.
type Config struct {
	Package string   // that has the handler, for errors and the log
	Methods string   // that pages of trusted origins may use
	Trusted []string // origins whose pages may send requests with the cookies of the user
	// the names under which a proxy on this machine reaches the server, besides localhost and addresses
	Hosts   []string
	MaxBody int64           // default 8 MiB
	Logger  *slog.Logger    // of errors whose text is not shown (default: slog.Default)
	Status  func(error) int // of HTTP
	Manager *workspace.Manager
	// Refuse answers a request that is refused (default: the text, as http.Error).
	Refuse func(w http.ResponseWriter, text string, status int)
}

// Guard refuses the requests of the pages of other sites, of nobody, under names that
// are not those of this server, with bodies that are too large or too slow, and too
// many at once. It says of errors what a page may know.
type Guard struct {
	Config
	origins *http.CrossOriginProtection
	slots   slots
}

// NewGuard returns a Guard. It logs if the schema has no Team: pages are what most needs
// one, and a State without a Team denies nothing.
func NewGuard(c Config) (*Guard, error) {
	c.MaxBody = cmp.Or(c.MaxBody, 8<<20)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Refuse == nil {
		c.Refuse = http.Error
	}
	g := &Guard{Config: c, origins: http.NewCrossOriginProtection()}
	for _, origin := range c.Trusted {
		if err := g.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("%s: TrustedOrigins: %w", c.Package, err)
		}
	}
	if c.Manager.Schema(internal.Key{}).Team() == nil {
		c.Logger.Warn(c.Package + ": the schema has no Team: every user who asks may read and write all fields, with any Agent")
	}
	return g, nil
}

// Admit sets the headers that each answer has. It reports false, and has answered,
// if the request must not be handled: it asks whether it may be sent, or comes from
// the page of another site.
func (g *Guard) Admit(w http.ResponseWriter, r *http.Request) bool {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience)) // not each server has one
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	switch {
	case !g.isNamed(r):
		g.Refuse(w, "this server has another name: its program names it in Options.Hosts", http.StatusMisdirectedRequest)
		return false
	case g.share(w, r):
		return false
	case g.origins.Check(r) != nil:
		g.Refuse(w, "the request comes from another site", http.StatusForbidden)
		return false
	}
	return true
}

// isNamed reports whether the request names this server. On a loopback address, a name
// that somebody has pointed to this machine is refused: to a browser, the page of that
// name would not be another site.
func (g *Guard) isNamed(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return true
	}
	ip, _, err := net.SplitHostPort(at.String())
	if err != nil || !net.ParseIP(ip).IsLoopback() {
		return true
	}
	u := url.URL{Host: r.Host}
	name := strings.ToLower(u.Hostname())
	return name == "localhost" || net.ParseIP(name) != nil || slices.Contains(g.Hosts, name)
}

// share lets the page of a trusted origin read the answer. It reports whether the
// request was the question of its browser whether the page may send another one.
func (g *Guard) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if !slices.Contains(g.Trusted, origin) {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", g.Methods)
	header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Knows reports whether somebody is known who asks. If not, err is why, and it has
// answered.
func (g *Guard) Knows(w http.ResponseWriter, user, agent string, err error) bool {
	switch {
	case err != nil && g.Status(err) == http.StatusForbidden:
		g.Refuse(w, "forbidden", http.StatusForbidden)
	case err != nil || user == "" || agent == "":
		g.Refuse(w, "unauthorized", http.StatusUnauthorized)
	default:
		return true
	}
	return false
}

// Enter counts a request of a user until leave is called. It reports false, and has
// answered, if nobody is known who asks, as Knows does, or if there are too many.
func (g *Guard) Enter(w http.ResponseWriter, user, agent string, err error) (leave func(), ok bool) {
	if !g.Knows(w, user, agent, err) {
		return nil, false
	}
	if !g.slots.take(user) {
		g.refuseForNow(w, "too many streams of one user", http.StatusTooManyRequests)
		return nil, false
	}
	return func() { g.slots.give(user) }, true
}

// Begin begins a stream, and counts it until its End. It reports false, and has
// answered, if there are too many.
func (g *Guard) Begin(w http.ResponseWriter, r *http.Request) (out *Writer, ok bool) {
	if !g.slots.take("") {
		g.refuseForNow(w, "too many streams", http.StatusServiceUnavailable)
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return NewWriter(r.Context(), w, func() { g.slots.give("") }), true
}

// refuseForNow answers a request that may be sent again later.
func (g *Guard) refuseForNow(w http.ResponseWriter, text string, status int) {
	w.Header().Set("Retry-After", "5")
	g.Refuse(w, text, status)
}

// Body returns the body of a request, which is JSON. It reports false, and has
// answered, if there is none.
func (g *Guard) Body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		g.Refuse(w, "want application/json", http.StatusUnsupportedMediaType)
		return nil, false
	}
	return g.Read(w, r, g.MaxBody)
}

// Read returns the body of a request, of any type and at most so many bytes. It
// reports false, and has answered, if there is none.
func (g *Guard) Read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return data, true
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.Refuse(w, "the body takes too long", http.StatusRequestTimeout)
	case errors.As(err, &tooLarge):
		g.Refuse(w, "the body is too large", http.StatusRequestEntityTooLarge)
	default:
		g.Refuse(w, "the body cannot be read", http.StatusBadRequest)
	}
	return nil, false
}

// Explain returns the status of an error and what a page is told of it. What an
// operator has to know is logged.
func (g *Guard) Explain(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	status, text = g.Status(err), TextOf(err)
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	case http.StatusNotFound:
		text = http.StatusText(status)
	}
	if status >= http.StatusInternalServerError {
		g.Logger.LogAttrs(r.Context(), slog.LevelWarn, g.Package+": request failed",
			slog.String("path", r.URL.Path), slog.Any("error", err))
		text = http.StatusText(status)
	}
	return status, text
}

// TextOf returns the text of an error without the name of the workspace.
func TextOf(err error) string {
	var of *workspace.Error
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// Actions returns what an input does, in the words of statehttp.Action.
func Actions(in page.Input) (list []string) {
	if in.Content != nil || in.Replaces != "" {
		list = append(list, "send")
	}
	if len(in.Decisions) > 0 {
		list = append(list, "decide")
	}
	if len(in.Fields) > 0 {
		list = append(list, "edit")
	}
	return list
}
