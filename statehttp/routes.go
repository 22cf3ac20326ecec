package statehttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// Message is what a page sends: a text, or parts, or decisions about calls.
type Message struct {
	// ID is made by the page, which sends the message again with the same id if it gets
	// no answer: it is handled once.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Parts are texts and media in place of Text: see [page.Source.Content].
	Parts     []page.Part           `json:"parts"`
	Decisions []tool.Decision       `json:"decisions"`
	Fields    map[string]state.JSON `json:"fields"`   // that the person has edited with it
	Replaces  string                `json:"replaces"` // see [page.Input]
}

// Sent says what has become of a Message.
type Sent struct {
	Thread string           `json:"thread"` // another one for a branch
	ID     string           `json:"id"`
	Status workspace.Status `json:"status"`
}

// Thread is a row of the list of threads.
type Thread struct {
	ID      string    `json:"id"` // its name
	Title   string    `json:"title,omitempty"`
	Active  time.Time `json:"active,omitzero"`
	Running bool      `json:"running,omitempty"`
	Queued  int       `json:"queued,omitempty"`
	Failed  int       `json:"failed,omitempty"`
	// Waiting is the number of calls that wait, if the agent may read the conversation.
	Waiting int `json:"waiting,omitempty"`
	// Deleted says that the thread does not exist any more.
	Deleted bool `json:"deleted,omitempty"`
}

func (h *Handler) routes() {
	h.handle("GET /threads", ActionRead, (*call).list)
	h.handle("POST /threads", ActionSend, func(c *call) (any, error) {
		var in struct{}
		if err := c.read(&in); err != nil {
			return nil, err
		}
		_, name := workspace.SplitThread(workspace.NewThread(c.who.User))
		return map[string]string{"thread": name}, nil
	})
	h.handle("GET /events", ActionRead, (*call).followAll)
	h.handle("POST /files", ActionUpload, (*call).addFile)
	h.handle("GET /files/{file}", ActionRead, (*call).file)
	h.handle("GET /threads/{thread}", ActionRead, func(c *call) (any, error) {
		if err := c.exists(); err != nil {
			return nil, err
		}
		return c.pages.Read(c.ctx, c.thread)
	})
	h.handle("GET /threads/{thread}/view", ActionRead, func(c *call) (any, error) {
		v, err := c.m.View(c.ctx, c.thread)
		if err == nil && !v.Exists {
			err = workspace.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		return v.As(c.who.Agent), nil
	})
	h.handle("GET /threads/{thread}/branches", ActionRead, func(c *call) (any, error) {
		if err := c.exists(); err != nil {
			return nil, err
		}
		list, err := c.pages.Branches(c.ctx, c.thread)
		return append([]page.Branch{}, list...), err
	})
	h.handle("GET /threads/{thread}/events", ActionRead, (*call).follow)
	h.handle("POST /threads/{thread}/messages", ActionSend, (*call).send)
	h.handle("POST /threads/{thread}/decisions", ActionDecide, (*call).send)
	h.handle("POST /threads/{thread}/fields", ActionEdit, changes(func(c *call, fields map[string]state.JSON) error {
		_, err := c.pages.Send(c.work(), c.thread, page.Input{Fields: fields})
		return err
	}))
	h.handle("POST /threads/{thread}/stop", ActionStop, changes(func(c *call, of turn) error {
		return c.pages.Stop(c.work(), c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/retry", ActionRetry, changes(func(c *call, of turn) error {
		return c.m.Retry(c.work(), c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/discard", ActionDiscard, changes(func(c *call, of turn) error {
		return c.m.Discard(c.work(), c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/title", ActionRename, changes(func(c *call, in Thread) error {
		return c.m.Rename(c.work(), c.thread, in.Title)
	}))
	h.handle("POST /threads/{thread}/notes", ActionNote, changes(func(c *call, in work.Note) error {
		return c.pages.SetNote(c.work(), c.thread, in.Message, in.Text)
	}))
	h.handle("POST /threads/{thread}/fork", ActionFork, (*call).fork)
	h.handle("DELETE /threads/{thread}", ActionDelete, func(c *call) (any, error) {
		if err := c.exists(); err != nil {
			return nil, err
		}
		return struct{}{}, c.m.Delete(c.work(), c.thread)
	})
}

// turn names a message by the turn that it begins.
type turn struct {
	Turn string `json:"turn"`
}

// changes returns the answer of a route that changes a thread that exists, as its body
// says.
func changes[T any](do func(c *call, in T) error) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		var in T
		if err := c.readOf(&in); err != nil {
			return nil, err
		}
		return struct{}{}, do(c, in)
	}
}

// readOf reads the body of a request about a thread that exists.
func (c *call) readOf(in any) error {
	if err := c.read(in); err != nil {
		return err
	}
	return c.exists()
}

// work returns the context of what a page asks for: it counts also if the page has
// gone.
func (c *call) work() context.Context { return context.WithoutCancel(c.ctx) }

func (c *call) send() (any, error) {
	var in Message
	if err := c.read(&in); err != nil {
		return nil, err
	}
	m := page.Input{
		ID: cmp.Or(in.ID, rand.Text()), Decisions: in.Decisions, Fields: in.Fields, Replaces: in.Replaces,
	}
	var err error
	switch {
	case in.Text != "" && len(in.Parts) > 0:
		err = fmt.Errorf("%w: the message has a text and parts", workspace.ErrInvalid)
	case in.Text != "":
		m.Content = state.UserText(in.Text)
	case len(in.Parts) > 0:
		m.Content, err = c.pages.Content(in.Parts...)
	}
	for action, does := range map[Action]bool{
		ActionSend: m.Content != nil || m.Replaces != "", ActionDecide: len(m.Decisions) > 0, ActionEdit: len(m.Fields) > 0,
	} {
		if does {
			err = errors.Join(err, c.may(action))
		}
	}
	if err != nil {
		return nil, err
	}
	if m.Content == nil {
		if err := c.exists(); err != nil {
			return nil, err
		}
	}
	out, err := c.pages.Send(c.work(), c.thread, m)
	if err != nil {
		return nil, err
	}
	_, name := workspace.SplitThread(out.Thread)
	return Sent{Thread: name, ID: out.ID, Status: out.Outcome.Status}, nil
}

func (c *call) fork() (any, error) {
	var in struct {
		Message int `json:"message"`
	}
	if err := c.readOf(&in); err != nil {
		return nil, err
	}
	to := workspace.NewThread(c.who.User)
	_, name := workspace.SplitThread(to)
	return map[string]string{"thread": name}, c.m.Fork(c.work(), c.thread, to, workspace.ForkPoint{Message: in.Message})
}

// follow streams the changes of a thread.
func (c *call) follow() (any, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	end, ok := c.guard.Begin(c.w)
	if !ok {
		return nil, errAnswered
	}
	defer end()
	from := cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.FormValue("from"))
	out := pagehttp.NewWriter(c.w)
	each := func(ctx context.Context) iter.Seq2[page.Change, error] { return c.pages.Follow(ctx, c.thread, from) }
	pagehttp.Serve(c.ctx, out, each, func(change page.Change, err error) bool {
		if err == nil { // else the page comes back
			out.SendJSON(change.Version, change)
		}
		return err == nil
	})
	return nil, nil
}

// row returns what the list shows of a thread.
func (c *call) row(s workspace.Summary) (Thread, error) {
	_, name := workspace.SplitThread(s.UserID)
	t := Thread{ID: name, Active: s.LastActive, Running: s.Run != nil, Queued: s.Queued, Failed: s.DeadLetters, Deleted: s.Seq == 0}
	if c.opts.Titles {
		t.Title = s.Title
	}
	if s.Suspended > 0 {
		v, err := c.m.View(c.ctx, s.UserID)
		if err != nil {
			return t, err
		}
		t.Waiting = len(v.As(c.who.Agent).Suspended())
	}
	return t, nil
}

// list returns the threads of the user, the latest first.
func (c *call) list() (any, error) {
	rows := []Thread{}
	for s, err := range c.m.Threads(c.ctx, c.who.User, "") {
		if err = cmp.Or(err, s.Err); err != nil {
			return nil, err
		}
		t, err := c.row(s)
		if err != nil {
			return nil, err
		}
		if t.ID != "" { // all but what is the user's own workspace
			rows = append(rows, t)
		}
	}
	slices.SortStableFunc(rows, func(a, b Thread) int { return b.Active.Compare(a.Active) })
	return rows, nil
}

// followAll streams the threads of the user that change.
func (c *call) followAll() (any, error) {
	end, ok := c.guard.Begin(c.w)
	if !ok {
		return nil, errAnswered
	}
	defer end()
	out, shared := pagehttp.NewWriter(c.w), workspace.Shared(c.who.User)
	each := func(ctx context.Context) iter.Seq2[workspace.Event, error] {
		return c.m.Watch(ctx, shared).As(c.who.Agent)
	}
	pagehttp.Serve(c.ctx, out, each, func(e workspace.Event, err error) bool {
		if err != nil {
			return false
		}
		if e.UserID == shared { // first: the page knows that from now on nothing is missed
			return out.Alive() == nil
		}
		s, err := c.m.Summary(c.ctx, e.UserID) // an event has no title
		if err != nil {
			return false
		}
		t, err := c.row(s)
		if err == nil && t.ID != "" {
			out.SendJSON("", t)
		}
		return err == nil
	})
	return nil, nil
}
