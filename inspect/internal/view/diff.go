package view

import (
	"context"
	"net/http"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// diffData is the data of the page that compares two versions.
type diffData struct {
	From   uint64      `json:"from"`
	To     uint64      `json:"to"`
	Fields []fieldDiff `json:"fields"`
	// Others are the edits of everything but fields.
	Others []otherDiff `json:"others"`
	// Partly is set if there are more edits than the page shows.
	Partly bool `json:"partly,omitempty"`
	// Unread is set if there are so many records that only those from this version
	// on were looked at.
	Unread uint64 `json:"unread,omitempty"`
}

// fieldDiff is what differs in one field.
type fieldDiff struct {
	Name   text       `json:"name"`
	Secret bool       `json:"secret,omitempty"` // only that it changed is shown
	Before *value     `json:"before,omitempty"` // nil if it was not set
	After  *value     `json:"after,omitempty"`
	Unit   string     `json:"unit,omitempty"` // of Lines: "line" or "element"
	Lines  []diffLine `json:"lines,omitempty"`
	changesOf
}

// otherDiff is an edit of the conversation, the memory or the settings.
type otherDiff struct {
	effectRow
	changesOf
}

// changesOf are the changes that led to a difference.
type changesOf struct {
	Changes []lastChange `json:"changes,omitempty"` // the last ones, the newest first
	More    int          `json:"more,omitempty"`    // changes that are left out
}

func newChangesOf(list []lastChange) changesOf {
	shown := list[:min(len(list), maxChanges)]
	return changesOf{shown, len(list) - len(shown)}
}

const (
	// maxChanges is the number of changes that are listed for a difference.
	maxChanges = 5
	// maxEffects is the number of other edits that a page shows.
	maxEffects = 100
)

// Diff compares two versions of a workspace. Without from, it is the version
// before to.
func (src *Source) Diff(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	from, to, err := s.interval(q)
	if err != nil {
		return nil, err
	}
	data := diffData{From: from, To: to, Fields: []fieldDiff{}, Others: []otherDiff{}}
	if from != to {
		if err := data.compare(ctx, src, s); err != nil {
			return nil, err
		}
	}
	return s.page("diff", "Changes", "history", data, false), nil
}

// interval returns the two versions that the request names.
func (s *shown) interval(q Query) (from, to uint64, err error) {
	to, ok, err := q.number("to")
	if err != nil {
		return 0, 0, err
	}
	if !ok {
		to = s.Version
	}
	if from, ok, err = q.number("from"); err != nil {
		return 0, 0, err
	}
	if !ok {
		from = max(s.Oldest, to-min(to, 1))
	}
	if max(from, to) > s.Newest {
		return 0, 0, &Error{http.StatusNotFound, "There is no such version."}
	}
	return from, to, nil
}

// compare fills in what differs.
func (data *diffData) compare(ctx context.Context, src *Source, s *shown) error {
	effects, err := src.manager.Diff(ctx, s.ID, data.From, data.To)
	if err != nil {
		return err
	}
	var views [2]*workspace.View
	for i, version := range []uint64{data.From, data.To} {
		if version == s.Newest {
			views[i] = s.now
			continue
		}
		v, err := src.view(ctx, viewKey{s.ID, s.Revision, version, true}, s.bytes)
		if err != nil {
			return err
		}
		views[i] = v.view
	}
	mask := newMasker(s.now, views[0], views[1])
	changes, err := data.led(ctx, src, s, mask)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, e := range effects {
		part, name := partOf(e)
		switch {
		case part == "field" && !seen[name]:
			seen[name] = true
			d := newFieldDiff(mask, [2]*state.State{views[0].State(), views[1].State()}, name)
			d.changesOf = newChangesOf(changes[placeOf(e)])
			data.Fields = append(data.Fields, d)
		case part == "field" || isVersion(e):
		case len(data.Others) == maxEffects:
			data.Partly = true
		default:
			data.Others = append(data.Others, otherDiff{newEffectRow(mask, e), newChangesOf(changes[placeOf(e)])})
		}
	}
	return nil
}

// place is what effects edit: a part and the name of what is edited in it.
type place struct{ part, name string }

func placeOf(e state.Effect) place {
	if part, name := partOf(e); part == "field" {
		return place{part, name}
	}
	return place{e.Part, e.Field}
}

// led returns the changes of each place between the two versions, the newest
// first.
func (data *diffData) led(ctx context.Context, src *Source, s *shown, mask *masker) (map[place][]lastChange, error) {
	changes := map[place][]lastChange{}
	low, high := min(data.From, data.To), max(data.From, data.To)
	rest, err := src.recordsBack(ctx, s.ID, low, high, func(r work.Record) bool {
		conversation := conversationAuthors(r)
		seen := map[place]bool{}
		for _, e := range r.Effects {
			at := placeOf(e)
			if seen[at] {
				continue
			}
			seen[at] = true
			by := []author{{e.Agent, e.Cause}}
			if e.Part == "message" && len(conversation) > 0 {
				by = conversation
			}
			for _, a := range by {
				changes[at] = append(changes[at], lastChange{
					Version: r.Version, Agent: mask.name(a.agent), Cause: mask.id(a.cause),
				})
			}
		}
		return true
	})
	if rest > low {
		data.Unread = rest + 1
	}
	return changes, err
}

// author is the agent that made an edit, with its cause.
type author struct{ agent, cause string }

// conversationAuthors returns the authors of the edits of the conversation and
// of the results in a record. The messages have no author themselves: the lists
// that refer to them have.
func conversationAuthors(r work.Record) []author {
	var list []author
	for _, e := range r.Effects {
		if a := (author{e.Agent, e.Cause}); e.Part == "conversation" && !isVersion(e) && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// newFieldDiff compares a field in two versions.
func newFieldDiff(mask *masker, states [2]*state.State, name string) fieldDiff {
	d := fieldDiff{Name: mask.name(name)}
	for _, f := range states[1].Schema().Fields() {
		if f.Name == name && f.Secret {
			d.Secret = true
			return d
		}
	}
	var texts [2]string
	for i, st := range states {
		j, ok := st.KV().JSON(name)
		if !ok {
			continue
		}
		shown := mask.json(j)
		if i == 0 {
			d.Before = &shown
		} else {
			d.After = &shown
		}
		if !mask.Blind && len(j) <= maxCompared {
			texts[i] = mask.whole(string(j))
		}
	}
	d.Unit, d.Lines = compare(texts[0], texts[1])
	return d
}

// isVersion reports whether an effect only counts the versions of the state.
func isVersion(e state.Effect) bool { return e.Part == "conversation" && e.Field == "version" }
