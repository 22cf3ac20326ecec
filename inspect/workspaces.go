package inspect

import (
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

const (
	// pageRows is the number of rows of one page of a list.
	pageRows = 50
	// maxHidden is the number of workspaces that one page skips because the
	// request may not see them. The next page continues behind them.
	maxHidden = 500
)

// workspacesData is the data of the page with all workspaces.
type workspacesData struct {
	Query string         `json:"query,omitempty"`
	After string         `json:"after,omitempty"`
	Rows  []workspaceRow `json:"workspaces"`
	// Next is the user after whom the next page begins, or "".
	Next string    `json:"next,omitempty"`
	Held []heldRow `json:"held"` // runs that the Manager of the handler holds
	// Read is when the list was read. Only the runs above it change by themselves.
	Read time.Time `json:"read"`
	// Sweep is the last sweep, if there was one.
	Sweep *sweepData `json:"sweep,omitempty"`
}

type workspaceRow struct {
	User    string    `json:"-"`
	ID      string    `json:"user"`
	Version uint64    `json:"version"`
	Updated time.Time `json:"updated,omitzero"`
	Bytes   int       `json:"bytes"`
	Status  []status  `json:"status"`
}

// workspaces lists the workspaces by key, from a user on or with a prefix.
func (h *Handler) workspaces(c *call) (*page, error) {
	data := workspacesData{Query: c.query.Get("q"), After: c.query.Get("after"), Rows: []workspaceRow{}, Read: time.Now()}
	p := &page{Name: "workspaces", Title: "Workspaces", Tab: "workspaces", Live: data.After == "", Events: "/events"}
	var pulse heldPulse
	data.Held, pulse = c.held()
	p.Seq = pulse.Seq
	if c.query.Get("fragment") == "held" { // which needs nothing of the store
		p.Data = data
		return p, nil
	}
	if sweep := h.sweeper.last(); !sweep.Began.IsZero() && c.access.User == nil {
		sweep.Longest = nil
		for i := range sweep.Findings {
			sweep.Findings[i].Rows = nil // which the page about it has
		}
		data.Sweep = &sweep
	}
	if err := data.list(c); err != nil {
		return nil, err
	}
	if data.Query != "" && data.After == "" && len(data.Rows) == 1 && data.Next == "" && c.query.Get("format") == "" {
		c.redirect(c.link("/workspace", "user", data.Rows[0].ID))
		return nil, nil
	}
	p.Data = data
	return p, nil
}

// list reads one page of workspaces.
func (data *workspacesData) list(c *call) error {
	after := data.After
	if data.Query != "" && after == "" {
		// Those that the prefix begins sort after a user of that id.
		after = data.Query
		s, err := c.h.manager.Summary(c.ctx(), data.Query)
		if status, _ := explain(err); err != nil && status == 400 {
			return nil // no id can begin so
		}
		if (s.Seq > 0 || s.Err != nil) && c.access.sees(data.Query) {
			data.Rows = append(data.Rows, newWorkspaceRow(s))
		}
	}
	hidden, last := 0, after
	for s, err := range c.h.manager.Summaries(c.ctx(), after) {
		if err != nil {
			return err
		}
		if data.Query != "" && !strings.HasPrefix(s.UserID, data.Query) {
			return nil
		}
		if len(data.Rows) == pageRows || hidden == maxHidden {
			data.Next = last
			return nil
		}
		last = s.UserID
		if !c.access.sees(s.UserID) {
			hidden++
			continue
		}
		data.Rows = append(data.Rows, newWorkspaceRow(s))
	}
	return nil
}

// About is the path of the page that says more about the status, or "" if there
// is no more to say.
func (r workspaceRow) About() string {
	switch r.Status[0].Kind {
	case "idle":
		return ""
	case "damaged":
		return "/workspace/integrity"
	}
	return "/workspace/queue"
}

func newWorkspaceRow(s workspace.Summary) workspaceRow {
	return workspaceRow{safetext.Visible(s.UserID, false), s.UserID, s.Version, s.LastActive, s.Bytes, statusOf(s)}
}
