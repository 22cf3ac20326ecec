package inspect

import (
	"slices"
	"strings"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// timelineData is the data of the page with the records of a workspace.
type timelineData struct {
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

// timeline shows the records of a workspace, the newest first.
func (h *Handler) timeline(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	data := timelineData{
		Rows: []recordRow{}, Field: c.query.Get("field"), Agent: c.query.Get("agent"), Run: c.query.Get("run"),
	}
	before, isPage, err := c.number("before")
	if err != nil {
		return nil, err
	}
	to := s.Version
	if isPage {
		data.Before, to = before, min(to, before-min(before, 1))
	}
	rest, err := h.recordsBack(c.ctx(), c.user, s.Oldest, to, func(r workspace.Record) bool {
		if !data.wants(h, s.mask, r) {
			return true
		}
		if len(data.Rows) == pageRows {
			return false
		}
		data.Rows = append(data.Rows, newRecordRow(s.mask, h, r))
		return true
	})
	if err != nil {
		return nil, err
	}
	if rest > s.Oldest {
		data.Next, data.Partly = rest+1, len(data.Rows) < pageRows
	}
	return &page{
		Name: "timeline", Title: "Timeline", Tab: "timeline", Data: data, Head: s.head, Live: !s.Past && !isPage,
	}, nil
}

// wants reports whether the filters let a record pass. They compare what is
// shown, so that they tell nothing of a secret.
func (data *timelineData) wants(h *Handler, mask *masker, r workspace.Record) bool {
	if data.Run != "" && h.runLink(mask, r.RunID) != data.Run {
		return false
	}
	if data.Agent != "" {
		agents, _ := authors(mask, r.Effects)
		if !slices.Contains(agents, text(safetext.Visible(data.Agent, false))) {
			return false
		}
	}
	if data.Field == "" {
		return true
	}
	return slices.ContainsFunc(changeSizes(mask, r.Effects), func(s changeSize) bool {
		return strings.EqualFold(string(s.Name), safetext.Visible(data.Field, false))
	})
}
