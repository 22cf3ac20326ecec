package inspect

import (
	"time"

	"github.com/agentstate/state/workspace"
)

// head is what the pages about a workspace show above their own content.
type head struct {
	// User is the id as it is shown, ID as it is in links.
	User    string    `json:"-"`
	ID      string    `json:"user"`
	Version uint64    `json:"version"` // that the page shows
	Newest  uint64    `json:"newest"`
	Oldest  uint64    `json:"oldest"`
	Seq     uint64    `json:"seq"`
	Past    bool      `json:"past"` // the request has at
	Updated time.Time `json:"updated,omitzero"`
	Status  []status  `json:"status"`
}

// summary reads the head of the workspace of the request.
func (c *call) summary() (*head, error) {
	s, err := c.h.manager.Summary(c.ctx(), c.user)
	if err != nil {
		return nil, err
	}
	if s.Seq == 0 {
		return nil, errNoWorkspace
	}
	at, past, err := c.number("at")
	if err != nil {
		return nil, err
	}
	if !past {
		at = s.Version
	}
	return &head{
		User: visible(c.user, false), ID: c.user, Version: at, Newest: s.Version, Oldest: s.Oldest, Seq: s.Seq,
		Past: past, Updated: s.LastActive, Status: statusOf(s),
	}, nil
}

// shown is a workspace as a page shows it.
type shown struct {
	*head
	now  *workspace.View // the present
	view *workspace.View // the version of the request
	mask *masker         // for both
}

// open reads the workspace of the request, at its version.
func (c *call) open() (*shown, error) {
	head, err := c.summary()
	if err != nil {
		return nil, err
	}
	s := &shown{head: head}
	if s.now, err = c.h.manager.View(c.ctx(), c.user); err != nil {
		return nil, err
	}
	s.view = s.now
	if head.Past {
		if s.view, err = c.h.manager.ViewAt(c.ctx(), c.user, head.Version); err != nil {
			return nil, err
		}
	}
	s.mask = newMasker(s.now, s.view)
	return s, nil
}
