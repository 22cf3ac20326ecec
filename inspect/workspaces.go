package inspect

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

const (
	// pageRows is the number of rows of one page of a list.
	pageRows = 50
	// maxSkipped is the number of workspaces that one page skips because the
	// request may not see them, or did not ask for them. The next page continues
	// behind them.
	maxSkipped = 500
)

// showTrouble is the value of the parameter show for workspaces that need an
// operator.
const showTrouble = "trouble"

// sealAfter is the purpose of the sealed parameter after.
const sealAfter = "after"

var errPlace = &httpError{http.StatusConflict, "This address is of an earlier process. Begin with the first page."}

// workspacesData is the data of the page with all workspaces.
type workspacesData struct {
	Query string `json:"query,omitempty"`
	After string `json:"after,omitempty"`
	Show  string `json:"show,omitempty"` // trouble, or all
	// Looked is the number of workspaces that this page is about, of which those
	// that it lists are some. Counts are of the same.
	Looked int            `json:"looked"`
	Counts []kindCount    `json:"counts"`
	Rows   []workspaceRow `json:"workspaces"`
	// Next is where the next page begins, or "". It names a user that the request
	// may not see, perhaps, and is sealed.
	Next string `json:"next,omitempty"`
}

// kindCount is the number of workspaces with a status.
type kindCount struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
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
	data := workspacesData{Query: c.query.Get("q"), After: c.query.Get("after"), Show: c.query.Get("show"), Counts: []kindCount{}, Rows: []workspaceRow{}}
	p := &page{Name: "workspaces", Title: "Workspaces", Tab: "workspaces", Live: data.After == ""}
	if data.Show != "" && data.Show != showTrouble {
		return nil, &httpError{http.StatusBadRequest, "The parameter show has no such value."}
	}
	if err := data.list(c); err != nil {
		return nil, err
	}
	slices.SortStableFunc(data.Rows, compareRows)
	slices.SortFunc(data.Counts, func(a, b kindCount) int {
		return cmp.Compare(status{Kind: a.Kind}.urgency(), status{Kind: b.Kind}.urgency())
	})
	if data.Query != "" && data.After == "" && data.Show == "" && len(data.Rows) == 1 && data.Next == "" && c.query.Get("format") == "" {
		c.redirect(c.link("/workspace", "user", data.Rows[0].ID))
		return nil, nil
	}
	p.Data = data
	return p, nil
}

// list reads one page of workspaces.
func (data *workspacesData) list(c *call) error {
	var after string
	if data.After != "" && !c.h.unseal(sealAfter, "", data.After, &after) {
		return errPlace
	}
	if data.Query != "" && data.After == "" {
		// Those that the prefix begins sort after a user of that id.
		after = data.Query
		s, err := c.h.manager.Summary(c.ctx(), data.Query)
		if status, _ := explain(err); err != nil && status == 400 {
			return nil // no id can begin so
		}
		if (s.Seq > 0 || s.Err != nil) && c.access.sees(data.Query) {
			data.add(newWorkspaceRow(s))
		}
	}
	skipped, last := 0, after
	for s, err := range c.h.manager.Summaries(c.ctx(), after) {
		if err != nil {
			return err
		}
		if data.Query != "" && !strings.HasPrefix(s.UserID, data.Query) {
			return nil
		}
		if len(data.Rows) == pageRows || skipped == maxSkipped {
			data.Next = c.h.seal(sealAfter, "", last)
			return nil
		}
		last = s.UserID
		if !c.access.sees(s.UserID) {
			skipped++
		} else if !data.add(newWorkspaceRow(s)) {
			skipped++
		}
	}
	return nil
}

// add counts a workspace, and reports whether it is listed.
func (data *workspacesData) add(row workspaceRow) bool {
	data.Looked++
	for _, st := range row.Status {
		if st.Kind == "idle" {
			continue
		}
		i := slices.IndexFunc(data.Counts, func(n kindCount) bool { return n.Kind == st.Kind })
		if i < 0 {
			i = len(data.Counts)
			data.Counts = append(data.Counts, kindCount{Kind: st.Kind})
		}
		data.Counts[i].Count++
	}
	if data.Show == showTrouble && !row.troubled() {
		return false
	}
	data.Rows = append(data.Rows, row)
	return true
}

// troubled reports whether the workspace needs an operator.
func (r workspaceRow) troubled() bool { return r.Status[0].urgency() < troubleKinds }

// compareRows puts those that need an operator first, the runs that have begun
// first before others.
func compareRows(a, b workspaceRow) int {
	if !a.troubled() && !b.troubled() {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Status[0].urgency(), b.Status[0].urgency()), a.Status[0].Since.Compare(b.Status[0].Since))
}

// About is the path of the page that says more about the status, or "" if there
// is no more to say.
func (r workspaceRow) About() string {
	switch r.Status[0].Kind {
	case "idle":
		return ""
	case "damaged":
		return "/workspace/integrity"
	case "suspended":
		return "/workspace/conversation"
	}
	return "/workspace/queue"
}

func newWorkspaceRow(s workspace.Summary) workspaceRow {
	return workspaceRow{safetext.Visible(s.UserID, false), s.UserID, s.Version, s.LastActive, s.Bytes, statusOf(s)}
}
