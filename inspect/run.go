package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// runData is the data of the page about one run.
type runData struct {
	ID      text        `json:"run"`
	Message text        `json:"message,omitempty"`
	Ending  string      `json:"ending,omitempty"`
	Reason  *value      `json:"reason,omitempty"`
	Reply   *value      `json:"reply,omitempty"`
	Began   time.Time   `json:"began,omitzero"` // the time of its first record
	Ended   time.Time   `json:"ended,omitzero"`
	Holders int         `json:"holders"` // that have written records
	Rows    []recordRow `json:"records"`
	// Partly is set if there are more records than the page shows.
	Partly bool `json:"partly,omitempty"`
}

// effectRow is one edit of the stored content.
type effectRow struct {
	Part   string `json:"part"`
	Name   text   `json:"name"`
	Kind   string `json:"kind"`
	N      int    `json:"n,omitempty"`
	Agent  text   `json:"agent,omitempty"`
	Cause  text   `json:"cause,omitempty"`
	Secret bool   `json:"secret,omitempty"`
	Value  value  `json:"value"`
}

// callChanges are the fields that were changed because of one tool call.
type callChanges struct {
	ID     text   `json:"id"`
	Name   text   `json:"name"`
	Input  value  `json:"input"`
	Fields []text `json:"fields"`
}

// maxRunRecords is the number of records of a run that its page shows.
const maxRunRecords = 100

// run shows the records of one run, the oldest first. The parameter v is the
// version of one of them, or of a later record.
func (h *Handler) run(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	from, ok, err := c.number("v")
	if err != nil {
		return nil, err
	}
	if !ok {
		from = s.Newest
	}
	var data runData
	records, err := h.recordsOfRun(c, s, c.params["id"], min(from, s.Newest), &data)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, workspace.ErrNotFound
	}
	data.fill(h, s.mask, records)
	return &page{Name: "run", Title: "Run", Tab: "timeline", Data: data, Head: s.head}, nil
}

// recordsOfRun returns the records of a run, the oldest first. Nothing else
// changes a workspace during a run, so they follow one another.
func (h *Handler) recordsOfRun(c *call, s *shown, id string, from uint64, data *runData) ([]workspace.Record, error) {
	var found []workspace.Record
	_, err := h.recordsBack(c.ctx(), c.user, s.Oldest, from, func(r workspace.Record) bool {
		if r.RunID == "" || h.runLink(s.mask, r.RunID) != id {
			return len(found) == 0
		}
		if len(found) == maxRunRecords {
			data.Partly = true
			return false
		}
		found = append(found, r)
		return true
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	slices.Reverse(found)
	// Those that come after the one of the address.
	for r, err := range h.manager.RecordsBetween(c.ctx(), c.user, from, s.Newest) {
		switch {
		case err != nil:
			return nil, err
		case r.RunID != found[0].RunID:
			return found, nil
		case len(found) == maxRunRecords:
			data.Partly = true
			return found, nil
		}
		found = append(found, r)
	}
	return found, nil
}

func (data *runData) fill(h *Handler, mask *masker, records []workspace.Record) {
	data.ID = mask.name(records[0].RunID)
	holders := map[string]bool{}
	shownBytes := 0
	for _, r := range records {
		row := newRecordRow(mask, h, r)
		if r.Message != "" {
			data.Message = row.Message
		}
		if r.Lease != "" {
			holders[r.Lease] = true
		}
		for _, e := range r.Effects {
			if isVersion(e) {
				continue
			}
			row.Effects = append(row.Effects, newEffectRow(mask, e, shownBytes > openBytes))
			shownBytes += len(row.Effects[len(row.Effects)-1].Value.Text)
		}
		row.Calls = callsOf(mask, r.Effects)
		if r.Ending != "" {
			data.Ending, data.Reason, data.Ended = row.Ending, row.Reason, r.Time
		}
		if r.Reply != "" {
			reply := mask.lines(r.Reply)
			data.Reply = &reply
		}
		data.Rows = append(data.Rows, row)
	}
	data.Began, data.Holders = records[0].Time, max(1, len(holders))
}

// newEffectRow returns an effect; with brief, without the text of its value.
func newEffectRow(mask *masker, e state.Effect, brief bool) effectRow {
	row := effectRow{
		Part: safetext.Visible(e.Part, false), Name: nameOf(mask, e.Part, e.Field), Kind: safetext.Visible(string(e.Kind), false), N: e.N,
		Agent: mask.name(e.Agent), Cause: mask.id(e.Cause), Secret: e.Secret, Value: value{Bytes: len(e.Value)},
	}
	switch {
	case brief:
	case e.Part == "setting" && e.Field == "mcp_servers":
		// Nothing marks the secrets in the configuration of a server.
		row.Value.Text = safetext.Hidden
	default:
		row.Value = mask.json(e.Value)
	}
	return row
}

// callsOf returns the tool calls in the messages that effects add, with the
// fields that have their ids as the cause of a change.
func callsOf(mask *masker, effects []state.Effect) []callChanges {
	var list []callChanges
	for _, e := range effects {
		if e.Part != "message" || !strings.Contains(string(e.Value), `"tool_call"`) {
			continue
		}
		m, err := state.DecodeMessage([]byte(e.Value))
		if err != nil {
			continue // it was masked
		}
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for _, call := range calls.Calls() {
			list = append(list, callChanges{
				ID: mask.id(call.ID), Name: mask.id(call.Name), Input: mask.json(call.Input),
				Fields: fieldsCausedBy(mask, effects, call.ID),
			})
		}
	}
	return list
}

func fieldsCausedBy(mask *masker, effects []state.Effect, cause string) []text {
	names := []text{}
	for _, e := range effects {
		if part, name := partOf(e); cause != "" && e.Cause == cause && part == "field" {
			names = append(names, mask.name(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
