package view

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// maxSkipped is the number of workspaces that one page of a list skips because
// the reader may not see them. The next page continues behind them.
const maxSkipped = 500

// sealAfter is the purpose of the sealed parameter after.
const sealAfter = "after"

// usersData is the data of the page with workspaces by id.
type usersData struct {
	Query string         `json:"query,omitempty"`
	After string         `json:"after,omitempty"`
	Rows  []workspaceRow `json:"workspaces"`
	// Next is where the next page begins, or "". It names a user that the reader
	// may not see, perhaps, and is sealed.
	Next string `json:"next,omitempty"`
}

// Users lists the workspaces by id, from a user on or with the prefix q.
func (src *Source) Users(ctx context.Context, q Query) (*Page, error) {
	data := usersData{Query: visible(q.Get("q"), false), After: q.Get("after"), Rows: []workspaceRow{}}
	if err := src.list(ctx, q, &data); err != nil {
		return nil, err
	}
	p := &Page{Name: "users", Title: "Workspaces by id", Tab: "users", Data: data}
	if data.Next != "" {
		p.Next = url.Values{"q": {q.Get("q")}, "after": {data.Next}}
	}
	if data.Query != "" && data.After == "" && len(data.Rows) == 1 && data.Next == "" {
		p.GoTo = data.Rows[0].ID
	}
	return p, nil
}

// list reads one page of workspaces.
func (src *Source) list(ctx context.Context, q Query, data *usersData) error {
	prefix, after := q.Get("q"), ""
	if data.After != "" && !src.Unseal(sealAfter, "", data.After, &after) {
		return &Error{http.StatusConflict, "This address is of an earlier process. Begin with the first page."}
	}
	if prefix != "" && data.After == "" {
		// Those that the prefix begins sort after a user of that id.
		after = prefix
		s, err := src.manager.Summary(ctx, prefix)
		if status, _ := Explain(err); err != nil && status == http.StatusBadRequest {
			return nil // no id can begin so
		}
		if (s.Seq > 0 || s.Err != nil) && q.sees(prefix) {
			data.Rows = append(data.Rows, newWorkspaceRow(s))
		}
	}
	skipped, last := 0, after
	for s, err := range src.manager.Summaries(ctx, after) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(s.UserID, prefix) {
			return nil
		}
		if len(data.Rows) == pageRows || skipped == maxSkipped {
			data.Next = src.Seal(sealAfter, "", last)
			return nil
		}
		if last = s.UserID; q.sees(last) {
			data.Rows = append(data.Rows, newWorkspaceRow(s))
		} else {
			skipped++
		}
	}
	return nil
}
