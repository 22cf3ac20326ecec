package view

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/workspace/work"
)

// historyData is the data of the page with the records of a workspace.
type historyData struct {
	Rows   []recordRow `json:"records"`
	Field  string      `json:"field,omitempty"`
	Agent  string      `json:"agent,omitempty"`
	Run    string      `json:"run,omitempty"`
	Before uint64      `json:"before,omitempty"` // the page has records of earlier versions only
	Next   uint64      `json:"next,omitempty"`   // before of the next page, or 0
	// Partly is set if the page ends because it has read enough, not because it
	// is full.
	Partly bool `json:"partly,omitempty"`
}

// History shows the records of a workspace, the newest first.
func (src *Source) History(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	data := historyData{
		Rows: []recordRow{}, Field: visible(q.Get("field"), false), Agent: visible(q.Get("agent"), false), Run: q.Get("run"),
	}
	before, isPage, err := q.number("before")
	if err != nil {
		return nil, err
	}
	to := s.Version
	if isPage {
		data.Before, to = before, min(to, before-min(before, 1))
	}
	rest, err := src.recordsBack(ctx, q.User, s.Oldest, to, func(r work.Record) bool {
		if !data.wants(src, s.mask, r) {
			return true
		}
		if len(data.Rows) == pageRows {
			return false
		}
		data.Rows = append(data.Rows, src.newRecordRow(s.mask, r))
		return true
	})
	if err != nil {
		return nil, err
	}
	if rest > s.Oldest {
		data.Next, data.Partly = rest+1, len(data.Rows) < pageRows
	}
	p := s.page("history", "History", "history", data, !isPage)
	if data.Next > 0 {
		p.Next = url.Values{
			"field": {data.Field}, "agent": {data.Agent}, "run": {data.Run},
			"before": {strconv.FormatUint(data.Next, 10)},
		}
	}
	return p, nil
}

// wants reports whether the filters let a record pass. They compare what is
// shown, so that they tell nothing of a secret.
func (data *historyData) wants(src *Source, mask *masker, r work.Record) bool {
	if data.Run != "" && src.runLink(mask, r.RunID) != data.Run {
		return false
	}
	if data.Agent != "" {
		agents, _ := authors(mask, r.Effects)
		if !slices.Contains(agents, text(data.Agent)) {
			return false
		}
	}
	if data.Field == "" {
		return true
	}
	return slices.ContainsFunc(changeSizes(mask, r.Effects), func(s changeSize) bool {
		return strings.EqualFold(string(s.Name), data.Field)
	})
}
