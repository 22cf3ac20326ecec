package statehttp

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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
	// Parts are texts and media in place of Text: see [page.Content].
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
	h.handle("POST /threads", ActionSend, reads(func(c *call, _ struct{}) (any, error) {
		_, name := workspace.SplitThread(workspace.NewThread(c.who.User))
		return map[string]string{"thread": name}, nil
	}))
	h.handle("GET /events", ActionRead, (*call).followAll)
	h.handle("GET /threads/{thread}", ActionRead, func(c *call) (any, error) { return c.pages.Read(c.ctx, c.thread) })
	h.handle("GET /threads/{thread}/view", ActionRead, func(c *call) (any, error) {
		v, err := c.m.View(c.ctx, c.thread)
		if err != nil {
			return nil, err
		}
		return v.As(c.who.Agent), nil
	})
	h.handle("GET /threads/{thread}/branches", ActionRead, func(c *call) (any, error) {
		list, err := c.pages.Branches(c.ctx, c.thread)
		return append([]page.Branch{}, list...), err
	})
	h.handle("GET /threads/{thread}/events", ActionRead, (*call).follow)
	h.handle("POST /threads/{thread}/messages", ActionSend, reads((*call).send))
	h.handle("POST /threads/{thread}/decisions", ActionDecide, reads((*call).send))
	h.handle("POST /threads/{thread}/fields", ActionEdit, changes(func(c *call, fields map[string]state.JSON) error {
		_, err := c.pages.Send(c.ctx, c.thread, page.Input{Fields: fields})
		return err
	}))
	h.handle("POST /threads/{thread}/stop", ActionStop, changes(func(c *call, of turn) error {
		return c.pages.Stop(c.ctx, c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/retry", ActionRetry, changes(func(c *call, of turn) error {
		return c.m.Retry(c.ctx, c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/discard", ActionDiscard, changes(func(c *call, of turn) error {
		return c.m.Discard(c.ctx, c.thread, of.Turn)
	}))
	h.handle("POST /threads/{thread}/title", ActionRename, changes(func(c *call, in Thread) error {
		return c.m.Rename(c.ctx, c.thread, in.Title)
	}))
	h.handle("POST /threads/{thread}/notes", ActionNote, changes(func(c *call, in work.Note) error {
		return c.pages.SetNote(c.ctx, c.thread, in.Message, in.Text)
	}))
	h.handle("POST /threads/{thread}/fork", ActionFork, reads(func(c *call, at place) (any, error) {
		to := workspace.NewThread(c.who.User)
		_, name := workspace.SplitThread(to)
		return map[string]string{"thread": name}, c.m.Fork(c.ctx, c.thread, to, workspace.ForkPoint{Message: at.Message})
	}))
	h.handle("DELETE /threads/{thread}", ActionDelete, func(c *call) (any, error) {
		return struct{}{}, c.m.Delete(c.ctx, c.thread)
	})
}

// turn names a message by the turn that it begins.
type turn struct {
	Turn string `json:"turn"`
}

// place is in front of a message.
type place struct {
	Message int `json:"message"`
}

// reads returns the answer of a route with a body.
func reads[T any](answer func(c *call, in T) (any, error)) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		var in T
		data, ok := c.guard.Body(c.w, c.r)
		if !ok {
			return nil, errAnswered
		}
		if err := json.Unmarshal(data, &in); err != nil {
			return nil, fmt.Errorf("%w: the body: %w", workspace.ErrInvalid, err)
		}
		return answer(c, in)
	}
}

// changes returns the answer of a route that does what its body says.
func changes[T any](do func(c *call, in T) error) func(c *call) (any, error) {
	return reads(func(c *call, in T) (any, error) { return struct{}{}, do(c, in) })
}

func (c *call) send(in Message) (any, error) {
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
		m.Content, err = page.Content(in.Parts...)
	}
	for _, action := range pagehttp.Actions(m) {
		err = errors.Join(err, c.may(Action(action)))
	}
	if err == nil && m.Content == nil {
		err = c.exists()
	}
	if err != nil {
		return nil, err
	}
	out, err := c.pages.Send(c.ctx, c.thread, m)
	if err != nil {
		return nil, err
	}
	_, name := workspace.SplitThread(out.Thread)
	return Sent{Thread: name, ID: out.ID, Status: out.Outcome.Status}, nil
}

// follow streams the changes of a thread.
func (c *call) follow() (any, error) {
	out, ok := c.guard.Begin(c.w, c.r)
	if !ok {
		return nil, errAnswered
	}
	defer out.End()
	from := cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.FormValue("from"))
	for change, err := range pagehttp.Each(out, c.pages.Follow(out.Context, c.thread, from)) {
		if err == nil { // else the page comes back
			out.SendJSON(change.Version, change)
		}
	}
	return nil, nil
}

// row returns what the list shows of a thread.
func (c *call) row(s workspace.Summary) (Thread, error) {
	_, name := workspace.SplitThread(s.UserID)
	t := Thread{
		ID: name, Active: s.LastActive, Running: s.Run != nil, Queued: s.Queued, Failed: s.DeadLetters,
		Deleted: s.Seq == 0,
	}
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
	out, ok := c.guard.Begin(c.w, c.r)
	if !ok {
		return nil, errAnswered
	}
	defer out.End()
	shared := workspace.Shared(c.who.User)
	for e, err := range pagehttp.Each(out, c.m.Watch(out.Context, shared).As(c.who.Agent)) {
		if err != nil {
			break
		}
		if e.UserID == shared { // first: the page knows that from now on nothing is missed
			_ = out.Alive()
			continue
		}
		s, err := c.m.Summary(c.ctx, e.UserID) // an event has no title
		if err != nil {
			break
		}
		t, err := c.row(s)
		if err != nil {
			break
		}
		if t.ID != "" {
			out.SendJSON("", t)
		}
	}
	return nil, nil
}
