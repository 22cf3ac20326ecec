// Package chat is what the handlers of protocols have in common whose pages know a
// chat, which is a thread, and not its branches: who asks, what they may do, which
// branch is meant, and which calls can be decided about.
package chat

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// Handler has what all requests have in common.
type Handler struct {
	*pagehttp.Guard
	Manager *workspace.Manager
	options statehttp.Options
}

// New returns the Handler of a package for the workspaces of a Manager. It returns an
// error if the Options have no Who, or an invalid TrustedOrigin.
func New(pkg, methods string, m *workspace.Manager, opts *statehttp.Options) (*Handler, error) {
	if m == nil || opts == nil || opts.Who == nil {
		return nil, errors.New(pkg + ": New needs a Manager, and Options with Who")
	}
	h := &Handler{Manager: m, options: *opts}
	if h.options.May == nil {
		h.options.May = statehttp.MayNotDelete
	}
	var err error
	h.Guard, err = pagehttp.NewGuard(pagehttp.Config{
		Package: pkg, Manager: m, Methods: methods, Trusted: opts.TrustedOrigins, Hosts: opts.Hosts,
		MaxBody: opts.MaxBody, Logger: opts.Logger, Status: statehttp.Status,
	})
	return h, err
}

// Request is a request of somebody who is known.
type Request struct {
	*Handler
	W     http.ResponseWriter
	R     *http.Request
	Who   statehttp.Who
	Chat  string // its name
	Pages *page.Source
}

// Answer answers a request that is admitted: read reads the body of a POST, and returns
// the name of the chat, which is else that of the address.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, read func(body []byte) (chat string, err error), answer func(*Request) error) {
	req := &Request{Handler: h, W: w, R: r, Chat: r.PathValue("id")}
	who, err := h.options.Who(r, req.Chat)
	leave, ok := h.Enter(w, who.User, who.Agent, err)
	if !ok {
		return
	}
	defer leave()
	if r.Method == http.MethodPost {
		data, ok := h.Body(w, r)
		if !ok {
			return
		}
		if req.Chat, err = read(data); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if who, err = h.options.Who(r, req.Chat); !h.Knows(w, who.User, who.Agent, err) {
			return
		}
	}
	req.Who = who
	req.Pages = &page.Source{
		Manager: h.Manager, Agent: who.Agent, Write: h.options.Write, Errors: h.options.Errors, Files: h.options.Files,
	}
	if err := answer(req); err != nil {
		status, text := h.Explain(w, r, err)
		http.Error(w, text, status)
	}
}

// May returns why somebody may not do something.
func (r *Request) May(actions ...statehttp.Action) (err error) {
	for _, a := range actions {
		err = errors.Join(err, r.options.May(r.R, r.Who, a, r.Chat))
	}
	return err
}

// MaySend returns why somebody may not do what an input does.
func (r *Request) MaySend(in page.Input) (err error) {
	for _, a := range pagehttp.Actions(in) {
		err = errors.Join(err, r.May(statehttp.Action(a)))
	}
	return err
}

// branch is what branches are named after the thread that they are of.
var branch = regexp.MustCompile(`(~[0-9]+-[A-Za-z0-9_-]{8})*$`)

// CutBranch returns a text without the name of a branch at its end, and that name.
func CutBranch(text string) (rest, name string) {
	name = branch.FindString(text)
	return text[:len(text)-len(name)], name
}

// Thread returns the thread of a branch of the chat, or that of the chat itself for "".
func (r *Request) Thread(branch string) string { return workspace.Thread(r.Who.User, r.Chat+branch) }

// Branch returns the name of the branch that a thread is.
func (r *Request) Branch(thread string) string {
	_, name := workspace.SplitThread(thread)
	return strings.TrimPrefix(name, r.Chat)
}

// Newest returns the thread of the branch that was used last.
func (r *Request) Newest() (string, error) { return r.Pages.Newest(r.R.Context(), r.Thread("")) }

// Running returns the turn of the message whose run is under way.
func Running(p *page.Page) (t page.Turn, ok bool) {
	at := slices.IndexFunc(p.Turns, func(t page.Turn) bool { return t.State == page.TurnRunning })
	if at < 0 {
		return t, false
	}
	return p.Turns[at], true
}

// TurnOf returns the turn of a message. It has no State if it has ended well.
func TurnOf(p *page.Page, id string) (t page.Turn) {
	if at := slices.IndexFunc(p.Turns, func(t page.Turn) bool { return t.ID == id }); at >= 0 {
		t = p.Turns[at]
	}
	if t.State == page.TurnFailed && t.Reason == "" {
		t.Reason = "The answer could not be finished."
	}
	return t
}

// GoesOn reports whether a turn waits or is under way.
func GoesOn(t page.Turn) bool { return t.State == page.TurnWaiting || t.State == page.TurnRunning }

// Waiting yields the calls that wait for somebody or for the page, and about which no
// message decides.
func Waiting(p *page.Page) iter.Seq2[*page.Item, page.Part] {
	var decided []string
	for _, t := range p.Turns {
		decided = append(decided, t.Decides...)
	}
	return func(yield func(*page.Item, page.Part) bool) {
		for _, item := range p.Items {
			for _, part := range item.Parts {
				c := part.Call
				if c == nil || c.State != page.CallWaiting && c.State != page.CallClient || slices.Contains(decided, c.Key) {
					continue
				}
				if !yield(item, part) {
					return
				}
			}
		}
	}
}

// ID returns the id of a message that a request stands for without naming it, the same
// for the same cause.
func ID(prefix, cause string) string {
	sum := sha256.Sum256([]byte(cause))
	return prefix + "-" + base64.RawURLEncoding.EncodeToString(sum[:12])
}
