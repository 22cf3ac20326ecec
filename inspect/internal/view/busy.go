package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/workspace"
)

const (
	// maxBusy is the number of workspaces of the busy list that are looked at.
	maxBusy = 1000
	// maxReasons is the number of workspaces of one page whose content is read,
	// to say who is waited for and what has failed.
	maxReasons = 25
	// maxCounted is the number of workspaces that are counted.
	maxCounted = 500
)

// busyData is the data of the first page: the workspaces in which something is
// to be done.
type busyData struct {
	Counts []kindCount    `json:"counts"`
	Rows   []workspaceRow `json:"workspaces"`
	Window window         `json:"page"`
	// More is set if there are more than maxBusy.
	More bool `json:"more,omitempty"`
	// Others is the number of the workspaces with nothing to be done, as far as
	// they were counted: OthersMore is set if there are more.
	Others     int  `json:"others"`
	OthersMore bool `json:"others_more,omitempty"`
}

// kindCount is the number of workspaces with a status.
type kindCount struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// workspaceRow is a workspace in a list.
type workspaceRow struct {
	User    string    `json:"-"` // as it is shown
	Thread  string    `json:"-"` // if it is a thread of the user
	ID      string    `json:"user"`
	Title   text      `json:"title,omitempty"` // if the content was read, which masks it
	Version uint64    `json:"version"`
	Updated time.Time `json:"updated,omitzero"`
	Bytes   int       `json:"bytes"`
	Status  []status  `json:"status"`
	// Calls are the suspended calls that have waited longest, and Dead the latest
	// dead letter, of the first rows of the busy list.
	Calls []suspendedRow `json:"calls,omitempty"`
	Dead  *deadRow       `json:"dead_letter,omitempty"`

	revision, title string
}

func newWorkspaceRow(s workspace.Summary) workspaceRow {
	row := workspaceRow{
		ID: s.UserID, Version: s.Version, Updated: s.LastActive, Bytes: s.Bytes, Status: statusOf(s),
		revision: s.Revision, title: s.Title,
	}
	row.User, row.Thread = namesOf(s.UserID)
	return row
}

// since returns when what the row is about has begun.
func (r workspaceRow) since() time.Time {
	if began := r.Status[0].Since; !began.IsZero() {
		return began
	}
	return r.Updated
}

// Busy shows the workspaces in which something is to be done, what needs a person
// most first, and of each kind what has waited longest.
func (src *Source) Busy(ctx context.Context, q Query) (*Page, error) {
	var all []workspaceRow
	data := busyData{Counts: []kindCount{}, Rows: []workspaceRow{}}
	for s, err := range src.manager.Active(ctx) {
		switch {
		case err != nil:
			return nil, err
		case q.sees(s.UserID):
			all = append(all, newWorkspaceRow(s))
		}
		if data.More = len(all) == maxBusy; data.More {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b workspaceRow) int {
		return cmp.Or(cmp.Compare(a.Status[0].urgency(), b.Status[0].urgency()), a.since().Compare(b.since()))
	})
	var shown strings.Builder
	for _, row := range all {
		fmt.Fprintf(&shown, "%q %s", row.ID, row.revision)
		for _, st := range row.Status {
			fmt.Fprint(&shown, " ", st.Kind)
			data.count(st.Kind)
		}
	}
	p := &Page{Name: "busy", Title: "Workspaces", Tab: "busy", Live: true, Seq: src.Tag(shown.String())}
	if q.Known == p.Seq {
		return nil, ErrNotModified
	}
	slices.SortFunc(data.Counts, func(a, b kindCount) int {
		return cmp.Compare(slices.Index(statusKinds, a.Kind), slices.Index(statusKinds, b.Kind))
	})
	var err error
	if data.Window, err = q.window("skip", len(all)); err != nil {
		return nil, err
	}
	data.Rows = append(data.Rows, all[data.Window.From:data.Window.To]...)
	for i := range data.Rows[:min(len(data.Rows), maxReasons)] {
		if err := src.addReasons(ctx, &data.Rows[i]); err != nil {
			return nil, err
		}
	}
	if err := src.countOthers(ctx, q, &data, len(all)); err != nil {
		return nil, err
	}
	p.Data = data
	return p, nil
}

func (data *busyData) count(kind string) {
	for i := range data.Counts {
		if data.Counts[i].Kind == kind {
			data.Counts[i].Count++
			return
		}
	}
	data.Counts = append(data.Counts, kindCount{kind, 1})
}

// addReasons adds the title, who is waited for, and what has failed.
func (src *Source) addReasons(ctx context.Context, row *workspaceRow) error {
	needed := func(st status) bool { return st.Kind == "suspended" || st.Kind == "dead" }
	if row.title == "" && !slices.ContainsFunc(row.Status, needed) {
		return nil
	}
	cached, err := src.view(ctx, viewKey{user: row.ID, revision: row.revision}, row.Bytes)
	if err != nil {
		return ctx.Err() // the page about the workspace says what is wrong
	}
	mask := newMasker(cached.view)
	row.Title = mask.id(row.title)
	row.Calls = src.suspendedRows(mask, cached.view)
	row.Calls = row.Calls[:min(len(row.Calls), 3)]
	if n := len(cached.view.DeadLetters); n > 0 {
		dead := src.newDeadRow(mask, cached.view.DeadLetters[n-1])
		row.Dead = &dead
	}
	return nil
}

// countOthers counts the workspaces that are not busy.
func (src *Source) countOthers(ctx context.Context, q Query, data *busyData, busy int) error {
	n, seen := 0, 0
	for s, err := range src.manager.Summaries(ctx, "") {
		if err != nil {
			return err
		}
		if n++; n > maxCounted {
			data.OthersMore = true
			break
		}
		if q.sees(s.UserID) {
			seen++
		}
	}
	data.Others = max(0, seen-busy)
	return nil
}
