package view

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agentstate/state/workspace"
)

// Head is what the pages about a workspace show above their own content.
type Head struct {
	// User is the id as it is shown, ID as it is in links. Thread is set if it is a
	// thread of the user.
	User    string `json:"-"`
	Thread  string `json:"-"`
	ID      string `json:"user"`
	Version uint64 `json:"version"` // that the page shows
	Newest  uint64 `json:"newest"`
	Oldest  uint64 `json:"oldest"`
	Seq     uint64 `json:"seq"`
	// Revision is a name for what the store has, see [workspace.Summary].
	Revision string    `json:"-"`
	Past     bool      `json:"past"` // the request has at
	Updated  time.Time `json:"updated,omitzero"`
	Status   []status  `json:"status"`
	Title    text      `json:"title,omitempty"`
	bytes    int
	keyID    string
	title    string
}

// summary reads the head of the workspace of the query.
func (src *Source) summary(ctx context.Context, q Query) (*Head, error) {
	s, err := src.Summary(ctx, q.User)
	if err != nil {
		return nil, err
	}
	if q.Known == s.Revision && s.Run == nil { // a run has heartbeats, which are no writes
		return nil, ErrNotModified
	}
	at, past, err := q.number("at")
	if err != nil {
		return nil, err
	}
	if !past {
		at = s.Version
	}
	if at > s.Version {
		return nil, &Error{http.StatusNotFound, fmt.Sprintf("There is no version %d. The newest one is %d.", at, s.Version)}
	}
	h := newHead(q.User, s)
	h.Version, h.Past = at, past
	return h, nil
}

// namesOf returns a user and a thread, if it is one, as they are shown.
func namesOf(id string) (user, thread string) {
	if user, thread = workspace.SplitThread(id); thread == "" {
		user = id
	}
	return visible(user, false), visible(thread, false)
}

func newHead(user string, s workspace.Summary) *Head {
	name, thread := namesOf(user)
	return &Head{
		User: name, Thread: thread, ID: user, Version: s.Version, Newest: s.Version, Oldest: s.Oldest, Seq: s.Seq,
		Revision: s.Revision,
		Updated:  s.LastActive, Status: statusOf(s), bytes: s.Bytes, keyID: s.KeyID, title: s.Title,
	}
}

// shown is a workspace as a page shows it.
type shown struct {
	*Head
	now  *workspace.View // the present
	view *workspace.View // the version of the request
	mask *masker         // for both
	// cached is the entry of view.
	cached *cachedView
}

// open reads the workspace of the request, at its version.
func (src *Source) open(ctx context.Context, q Query) (*shown, error) {
	head, err := src.summary(ctx, q)
	if err != nil {
		return nil, err
	}
	s := &shown{Head: head}
	now, err := src.view(ctx, viewKey{user: q.User, revision: head.Revision}, head.bytes)
	if err != nil {
		return nil, err
	}
	s.now, s.cached = now.view, now
	if head.Past {
		key := viewKey{q.User, head.Revision, head.Version, true}
		if s.cached, err = src.view(ctx, key, head.bytes); err != nil {
			return nil, err
		}
	}
	s.view = s.cached.view
	s.mask = newMasker(s.now, s.view)
	s.Title = s.mask.id(s.title)
	return s, nil
}

// page returns a page about the workspace. With live, it changes with the
// workspace, unless it is about the past.
func (s *shown) page(name, title, tab string, data any, live bool) *Page {
	return &Page{Name: name, Title: title, Tab: tab, Data: data, Head: s.Head, Live: live && !s.Past, Seq: s.Revision}
}
