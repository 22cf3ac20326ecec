package statehttp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// Options say who asks, and what pages may do.
type Options struct {
	// Who says whose threads a request is about, and with the rights of which agent it
	// reads and writes. thread is the name in the address, or "". Its error is not
	// shown: the status is 403 if it matches ErrForbidden, and otherwise 401. There is
	// no default.
	//
	// It is also how a page for employees is another view of the same threads: User is
	// then the customer, and Agent one that may decide.
	Who func(r *http.Request, thread string) (Who, error)
	// May returns an error for what somebody may not do, such as ErrForbidden (default:
	// [MayNotDelete]).
	May func(r *http.Request, who Who, action Action, thread string) error
	// Write and Errors are those of [page.Source].
	Write  []string
	Errors bool
	// Titles shows the titles of threads. [workspace.Options].Title makes them of
	// everything, whatever the agent of a page may read.
	Titles bool
	// TrustedOrigins are other sites, such as "https://app.example.com", whose pages
	// may send requests with the cookies of the user (default: none).
	TrustedOrigins []string
	// Hosts are the names under which a proxy on the same machine reaches the server
	// (default: none). For a server that is not on a loopback address, they are not
	// needed.
	Hosts []string
	// Files begins the addresses at which pages find the files of the user, such as
	// "/api/files/" for a Handler at /api/ (default "/files/"). In packages aguistate and
	// aisdkstate, it is that of a Handler of package statehttp.
	Files string
	// MaxBody is the number of bytes of a request (default 8 MiB); a file has up to
	// [workspace.MaxFile].
	MaxBody int64
	// Logger logs errors whose text is not shown (default: slog.Default).
	Logger *slog.Logger
}

// Who is whose threads a request is about, and the agent of the Team with whose
// rights it reads, writes and decides. Both are needed: nobody has the rights of the
// host. Without a Team in the schema, each agent may read and write all fields, and New
// logs that.
type Who struct {
	User  string
	Agent string
}

// Action is what a request does.
type Action string

// The actions.
const (
	ActionRead    Action = "read"
	ActionSend    Action = "send"   // a message, also one that makes a branch
	ActionDecide  Action = "decide" // about a call, or give it a result
	ActionEdit    Action = "edit"   // fields
	ActionStop    Action = "stop"
	ActionRetry   Action = "retry"
	ActionDiscard Action = "discard"
	ActionFork    Action = "fork"
	ActionRename  Action = "rename"
	ActionNote    Action = "note"   // about a message
	ActionUpload  Action = "upload" // a file
	ActionDelete  Action = "delete"
)

// MayNotDelete is the default of Options.May: it allows everything but ActionDelete.
// About a call of a tool with [tool.DecidedBy], a workspace refuses the decisions of
// other agents whatever May says.
func MayNotDelete(_ *http.Request, _ Who, action Action, _ string) error {
	if action == ActionDelete {
		return ErrForbidden
	}
	return nil
}

// Handler is an http.Handler. It is safe for concurrent use.
type Handler struct {
	m     *workspace.Manager
	opts  Options
	guard *pagehttp.Guard
	mux   *http.ServeMux
}

// New returns a Handler for the workspaces of a Manager, which needs an Options.Run.
// It returns an error if the Options have no Who, or an invalid TrustedOrigin.
func New(m *workspace.Manager, opts *Options) (*Handler, error) {
	if m == nil || opts == nil || opts.Who == nil {
		return nil, errors.New("statehttp: New needs a Manager, and Options with Who")
	}
	h := &Handler{m: m, opts: *opts, mux: http.NewServeMux()}
	if h.opts.May == nil {
		h.opts.May = MayNotDelete
	}
	var err error
	h.guard, err = pagehttp.NewGuard(pagehttp.Config{
		Package: "statehttp", Manager: m, Methods: "GET, POST, DELETE", Trusted: opts.TrustedOrigins, Hosts: opts.Hosts,
		MaxBody: opts.MaxBody, Logger: opts.Logger, Status: Status,
		Refuse: refuse,
	})
	if err != nil {
		return nil, err
	}
	h.routes()
	return h, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.guard.Admit(w, r) {
		h.mux.ServeHTTP(w, r)
	}
}

// call is a request of somebody who is known.
type call struct {
	*Handler
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	who    Who
	name   string // of the thread
	thread string // the id of its workspace
	pages  *page.Source
}

// handleThread adds a route for an action on a thread that exists.
func (h *Handler) handleThread(pattern string, action Action, answer func(c *call) (any, error)) {
	h.handle(pattern, action, func(c *call) (any, error) {
		if err := c.exists(); err != nil {
			return nil, err
		}
		return answer(c)
	})
}

// handle adds a route for an action.
func (h *Handler) handle(pattern string, action Action, answer func(c *call) (any, error)) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{Handler: h, w: w, r: r, ctx: r.Context(), name: r.PathValue("thread")}
		who, err := h.opts.Who(r, c.name)
		leave, ok := h.guard.Enter(w, who.User, who.Agent, err)
		if !ok {
			return
		}
		defer leave()
		if r.Method != http.MethodGet { // it counts also if the page has gone
			c.ctx = context.WithoutCancel(c.ctx)
		}
		c.who, c.thread = who, workspace.Thread(who.User, c.name)
		c.pages = &page.Source{
			Manager: h.m, Agent: who.Agent, Write: h.opts.Write, Errors: h.opts.Errors, Files: h.opts.Files,
		}
		var v any
		if err = c.may(action); err == nil {
			v, err = answer(c)
		}
		if err == nil && v != nil {
			err = write(w, http.StatusOK, v)
		}
		c.fail(err)
	})
}

func (c *call) may(action Action) error { return c.opts.May(c.r, c.who, action, c.name) }

// exists returns ErrNotFound if there is no such thread.
func (c *call) exists() error {
	s, err := c.m.Summary(c.ctx, c.thread)
	if err == nil && s.Seq == 0 {
		err = workspace.ErrNotFound
	}
	return err
}

// write answers with JSON, unless v has none.
func write(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
	return nil
}

// errAnswered is an error whose answer was sent.
var errAnswered = errors.New("statehttp: answered")

// fail answers with an error, if there is one. Of one that the page can do nothing
// about, it shows the class.
func (c *call) fail(err error) {
	if err == nil || errors.Is(err, errAnswered) {
		return
	}
	status, text := c.guard.Explain(c.w, c.r, err)
	if errors.Is(err, ErrForbidden) {
		text = http.StatusText(status)
	}
	refuse(c.w, text, status)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, text string, status int) {
	_ = write(w, status, map[string]string{"error": text}) // a text has one
}
