package inspect

import (
	"fmt"
	"net/http"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// head is what the pages about a workspace show above their own content.
type head struct {
	// User is the id as it is shown, ID as it is in links.
	User    string `json:"-"`
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
	bytes    int
}

// summary reads the head of the workspace of the request.
func (c *call) summary() (*head, error) {
	s, err := c.h.manager.Summary(c.ctx(), c.user)
	if err != nil {
		return nil, err
	}
	if s.Seq == 0 {
		c.h.views.drop(c.user)
		return nil, errNoWorkspace
	}
	if s.Run == nil && c.has(s.Revision) { // a run has heartbeats, which are no writes
		return nil, errNotModified
	}
	at, past, err := c.number("at")
	if err != nil {
		return nil, err
	}
	if !past {
		at = s.Version
	}
	if at > s.Version {
		return nil, &httpError{http.StatusNotFound, fmt.Sprintf("There is no version %d. The newest one is %d.", at, s.Version)}
	}
	h := newHead(c.user, s)
	h.Version, h.Past = at, past
	return h, nil
}

// has reports whether the browser has what the page shows.
func (c *call) has(revision string) bool {
	return revision != "" && c.r.Header.Get("If-None-Match") == `"`+revision+`"`
}

func newHead(user string, s workspace.Summary) *head {
	return &head{
		User: safetext.Visible(user, false), ID: user, Version: s.Version, Newest: s.Version, Oldest: s.Oldest, Seq: s.Seq, Revision: s.Revision,
		Updated: s.LastActive, Status: statusOf(s), bytes: s.Bytes,
	}
}

// shown is a workspace as a page shows it.
type shown struct {
	*head
	now  *workspace.View // the present
	view *workspace.View // the version of the request
	mask *masker         // for both
	// cached is the entry of view.
	cached *cachedView
}

// open reads the workspace of the request, at its version.
func (c *call) open() (*shown, error) {
	head, err := c.summary()
	if err != nil {
		return nil, err
	}
	s := &shown{head: head}
	now, err := c.h.view(c.ctx(), viewKey{user: c.user, revision: head.Revision}, head.bytes)
	if err != nil {
		return nil, err
	}
	s.now, s.cached = now.view, now
	if head.Past {
		key := viewKey{c.user, head.Revision, head.Version, true}
		if s.cached, err = c.h.view(c.ctx(), key, head.bytes); err != nil {
			return nil, err
		}
	}
	s.view = s.cached.view
	s.mask = newMasker(s.now, s.view)
	return s, nil
}
