package statehttp

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
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
	h.handle("POST /threads", ActionSend, reads(func(c *call, _ struct{}) (any, error) {
		_, name := workspace.SplitThread(workspace.NewThread(c.who.User))
		return map[string]string{"thread": name}, nil
	}))
	h.handle("GET /events", ActionRead, (*call).followAll)
	h.handle("POST /files", ActionUpload, (*call).addFile)
	h.handle("GET /files/{file}", ActionRead, (*call).file)
	h.handleThread("GET /threads/{thread}", ActionRead, func(c *call) (any, error) { return c.pages.Read(c.ctx, c.thread) })
	h.handleThread("GET /threads/{thread}/view", ActionRead, func(c *call) (any, error) {
		v, err := c.m.View(c.ctx, c.thread)
		if err != nil {
			return nil, err
		}
		return v.As(c.who.Agent), nil
	})
	h.handleThread("GET /threads/{thread}/branches", ActionRead, func(c *call) (any, error) {
		list, err := c.pages.Branches(c.ctx, c.thread)
		return append([]page.Branch{}, list...), err
	})
	h.handle("GET /threads/{thread}/events", ActionRead, (*call).follow)
	h.handle("POST /threads/{thread}/messages", ActionSend, reads((*call).send))
	h.handle("POST /threads/{thread}/decisions", ActionDecide, reads((*call).send))
	h.handleThread("POST /threads/{thread}/fields", ActionEdit, changes(func(c *call, fields map[string]state.JSON) error {
		_, err := c.pages.Send(c.ctx, c.thread, page.Input{Fields: fields})
		return err
	}))
	h.handleThread("POST /threads/{thread}/stop", ActionStop, changes(func(c *call, of turn) error {
		return c.pages.Stop(c.ctx, c.thread, of.Turn)
	}))
	h.handleThread("POST /threads/{thread}/retry", ActionRetry, changes(func(c *call, of turn) error {
		return c.m.Retry(c.ctx, c.thread, of.Turn)
	}))
	h.handleThread("POST /threads/{thread}/discard", ActionDiscard, changes(func(c *call, of turn) error {
		return c.m.Discard(c.ctx, c.thread, of.Turn)
	}))
	h.handleThread("POST /threads/{thread}/title", ActionRename, changes(func(c *call, in naming) error {
		return c.m.Rename(c.ctx, c.thread, in.Title)
	}))
	h.handleThread("POST /threads/{thread}/notes", ActionNote, changes(func(c *call, in note) error {
		return c.pages.SetNote(c.ctx, c.thread, in.Message, in.Text)
	}))
	h.handleThread("POST /threads/{thread}/fork", ActionFork, reads(func(c *call, at place) (any, error) {
		to := workspace.NewThread(c.who.User)
		_, name := workspace.SplitThread(to)
		return map[string]string{"thread": name}, c.m.Fork(c.ctx, c.thread, to, workspace.ForkPoint{Message: at.Message})
	}))
	h.handleThread("DELETE /threads/{thread}", ActionDelete, func(c *call) (any, error) {
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

// naming gives a thread a title.
type naming struct {
	Title string `json:"title"`
}

// note is what a person notes about a message.
type note struct {
	Message int    `json:"message"`
	Text    string `json:"text"`
}

// reads returns the answer of a route with a body. A member that the route does not know
// is an error: what the page says with it would be lost.
func reads[T any](answer func(c *call, in T) (any, error)) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		var in T
		data, ok := c.guard.Body(c.w, c.r)
		if !ok {
			return nil, errAnswered
		}
		body := json.NewDecoder(bytes.NewReader(data))
		body.DisallowUnknownFields()
		err := body.Decode(&in)
		if err == nil {
			if _, end := body.Token(); end != io.EOF {
				err = errors.New("want nothing behind the JSON")
			}
		}
		if err != nil {
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
		m.Content, err = c.pages.Content(in.Parts...)
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

// follow streams the changes of a thread. One that does not exist may begin: only a page
// that has seen something of it is told that it is gone.
func (c *call) follow() (any, error) {
	from := cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.FormValue("from"))
	if err := c.exists(); err != nil && (!errors.Is(err, workspace.ErrNotFound) || c.hasSeen(from)) {
		return nil, err
	}
	out, ok := c.guard.Begin(c.w, c.r)
	if !ok {
		return nil, errAnswered
	}
	defer out.End()
	for change, err := range pagehttp.Each(out, c.pages.Follow(out.Context, c.thread, from)) {
		if err == nil { // else the page comes back
			out.SendJSON(change.Version, change)
		}
	}
	return nil, nil
}

// hasSeen reports whether a page that knows a version of a thread which does not exist
// has seen another one.
func (c *call) hasSeen(version string) bool {
	empty, err := c.pages.Read(c.ctx, c.thread)
	return version != "" && (err != nil || version != empty.Version)
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
