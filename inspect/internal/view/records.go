package view

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

const (
	// recordChunk is the number of versions whose records are read at once.
	recordChunk = 128
	// maxRecords is the number of records that one page reads to find those that
	// it shows.
	maxRecords = 1024
)

// recordsBack calls yield for the records of a workspace from version to down to
// the one after oldest, the newest first, until it returns false or maxRecords
// were read. It returns the version below which nothing was read.
func (src *Source) recordsBack(
	ctx context.Context, user string, oldest, to uint64, yield func(work.Record) bool,
) (rest uint64, err error) {
	read, chunk := 0, uint64(pageRows+1)
	for to > oldest && read < maxRecords {
		after := max(oldest, to-min(to, chunk))
		var records []work.Record
		for r, err := range src.manager.RecordsBetween(ctx, user, after, to) {
			if err != nil {
				return 0, err
			}
			records = append(records, r)
		}
		slices.Reverse(records)
		for _, r := range records {
			if !yield(r) {
				return r.Version, nil
			}
		}
		read += len(records)
		to, chunk = after, recordChunk
	}
	return to, nil
}

// recordRow is a record as lists show it.
type recordRow struct {
	Version uint64       `json:"version"`
	Time    time.Time    `json:"time"`
	Kind    string       `json:"kind"`
	Run     text         `json:"run,omitempty"`
	RunLink string       `json:"-"` // the id as it is in links
	Message text         `json:"message,omitempty"`
	Ending  string       `json:"ending,omitempty"`
	Reason  *value       `json:"reason,omitempty"`
	Agents  []text       `json:"agents,omitempty"`
	Causes  []text       `json:"causes,omitempty"`
	Changes []changeSize `json:"changes"`
}

// changeSize is what a record has done to one field or one part.
type changeSize struct {
	Part  string `json:"part"`
	Name  text   `json:"name"`
	Kind  string `json:"kind"` // of the only effect, or "edit"
	Bytes int    `json:"bytes"`
}

func (src *Source) newRecordRow(mask *masker, r work.Record) recordRow {
	row := recordRow{
		Version: r.Version, Time: r.Time, Kind: visible(string(r.Kind), false), Run: mask.name(r.RunID),
		RunLink: src.runLink(mask, r.RunID), Message: mask.id(r.Message), Ending: visible(string(r.Ending), false),
		Changes: changeSizes(mask, r.Effects),
	}
	if r.Reason != "" {
		reason := mask.line(r.Reason)
		row.Reason = &reason
	}
	row.Agents, row.Causes = authors(mask, r.Effects)
	return row
}

// runLink returns the name of a run in addresses: its id, unless that has to be
// masked.
func (src *Source) runLink(mask *masker, id string) string {
	if id == "" || string(mask.name(id)) == id && !strings.ContainsAny(id, "/.") {
		return id
	}
	return src.Tag(id)
}

// authors returns the agents and the causes of effects, sorted. The host has no
// name.
func authors(mask *masker, effects []state.Effect) (agents, causes []text) {
	for _, e := range effects {
		if e.Agent != "" {
			agents = append(agents, mask.name(e.Agent))
		}
		if e.Cause != "" {
			causes = append(causes, mask.id(e.Cause))
		}
	}
	slices.Sort(agents)
	slices.Sort(causes)
	return slices.Compact(agents), slices.Compact(causes)
}

// changeSizes sums effects up by what they edit, in their order. The messages
// and the lists that refer to them are the conversation.
func changeSizes(mask *masker, effects []state.Effect) []changeSize {
	list := []changeSize{}
	places := map[[2]string]int{}
	for _, e := range effects {
		if isVersion(e) {
			continue
		}
		part, name := partOf(e)
		key := [2]string{part, name}
		i, known := places[key]
		if !known {
			i = len(list)
			places[key] = i
			list = append(list, changeSize{Part: part, Name: nameOf(mask, e.Part, name), Kind: visible(string(e.Kind), false)})
		} else {
			list[i].Kind = "edit"
		}
		list[i].Bytes += len(e.Value)
	}
	return list
}

// nameOf returns the name of what an effect edits. The keys of the memory and
// those of suspended calls are content: people and models choose them.
func nameOf(mask *masker, part, name string) text {
	if part == "memory" || part == "suspended" {
		return mask.id(name)
	}
	return mask.name(name)
}

// partOf returns what an effect edits, in words for people.
func partOf(e state.Effect) (part, name string) {
	switch e.Part {
	case state.EffectPartField, state.EffectPartKey:
		return "field", e.Field
	case "message", "conversation":
		return "conversation", "conversation"
	}
	return visible(e.Part, false), e.Field
}

// effectRow is one edit of the stored content.
type effectRow struct {
	Part   string `json:"part"`
	Name   text   `json:"name"`
	Kind   string `json:"kind"`
	N      int    `json:"n,omitempty"`
	Secret bool   `json:"secret,omitempty"`
	Value  value  `json:"value"`
}

func newEffectRow(mask *masker, e state.Effect) effectRow {
	row := effectRow{
		Part: visible(e.Part, false), Name: nameOf(mask, e.Part, e.Field), Kind: visible(string(e.Kind), false), N: e.N,
		Secret: e.Secret, Value: value{Bytes: len(e.Value)},
	}
	if e.Part == "setting" && e.Field == "mcp_servers" {
		// Nothing marks the secrets in the configuration of a server.
		row.Value.Text = hiddenValue
	} else {
		row.Value = mask.json(e.Value)
	}
	return row
}
