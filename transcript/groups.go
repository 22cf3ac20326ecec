package transcript

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Groups returns the places of the messages that belong together: a provider
// takes all of a group or nothing of it. A group's places are in order, the groups
// are in the order of their first places, and each message is in one group.
//
// These belong together: calls and their results, wherever they are; the calls of
// one turn; what the assistant said or thought in the same entry, and reasoning
// with what it led to; the items of a provider's own tools that refer to each
// other; and what Anthropic's system says in the middle with what is before it.
// Every other message is a group of its own.
func Groups(msgs []state.Message) [][]int {
	p := pair(msgs)
	return p.groups(msgs)
}

func (p *pairing) groups(msgs []state.Message) [][]int {
	f := newForest(len(msgs))
	for _, c := range p.calls {
		if c.result != none {
			f.union(c.message, c.result)
		}
	}
	f.entries(msgs)
	f.turns(msgs)
	f.systems(msgs)
	f.references(msgs)
	return f.groups()
}

// entries unites what a provider has in one entry: all of what an assistant said
// if that is more than text, and all results of one entry.
func (f forest) entries(msgs []state.Message) {
	before, start, whole, result := none, none, false, none
	end := func(next int) {
		for i := start; whole && i < next; i++ {
			if isMessage(msgs[i]) {
				f.union(start, i)
			}
		}
	}
	for i, m := range msgs {
		if !isMessage(m) {
			continue
		}
		if before == none || !origin.Joins(msgs[before], m) {
			end(i)
			start, whole, result = i, false, none
		}
		before = i
		if _, ok := m.(state.ToolResultMessage); ok {
			if result != none {
				f.union(result, i)
			}
			result = i
		}
		whole = whole || isMoreThanText(m)
	}
	end(len(msgs))
}

// isMoreThanText reports whether a message of an assistant's has calls, reasoning
// or the provider's own tools.
func isMoreThanText(m state.Message) bool {
	if _, ok := m.(state.ToolCallMessage); ok {
		return true
	}
	if !origin.IsAssistants(m) {
		return false
	}
	if isReasoning(m) {
		return true
	}
	for _, part := range partsOf(m) {
		if call, result := serverTool(part); call != "" || result != "" || isThought(part) {
			return true
		}
	}
	return false
}

// turns unites calls with those that the assistant makes before any of them is
// answered, and reasoning with what the assistant does next, or if that is
// nothing with the calls before it.
func (f forest) turns(msgs []state.Message) {
	before, called, thought := none, none, none
	for i, m := range msgs {
		if !isMessage(m) {
			continue
		}
		if thought != none && origin.IsAssistants(m) {
			f.union(thought, i)
		} else if thought != none && called != none {
			f.union(called, thought)
		}
		thought = none
		switch _, isCall := m.(state.ToolCallMessage); {
		case isCall:
			if called != none {
				f.union(called, i)
			}
			called = i
		case origin.IsAssistants(m) && isReasoning(m):
			thought = i
		case origin.IsAssistants(m) && before != none && origin.Joins(msgs[before], m):
		default:
			called = none
		}
		before = i
	}
	if thought != none && called != none {
		f.union(called, thought)
	}
}

// systems unites what the system says in the middle of a conversation of
// Anthropic's with what is before it: it has to follow the user's turn.
func (f forest) systems(msgs []state.Message) {
	before := none
	for i, m := range msgs {
		if !isMessage(m) {
			continue
		}
		if isSystems(m) && before != none {
			if kept, own := origin.Of(m, origin.Anthropic); own && kept.String("in") != "system" {
				f.union(before, i)
			}
		}
		before = i
	}
}

// references unites the items and parts of a provider's own tools that have an
// id in common, and the calls that such a tool makes.
func (f forest) references(msgs []state.Message) {
	places := map[string]int{}
	refer := func(i int, ids ...string) {
		for _, id := range ids {
			if id == "" {
				continue
			}
			if place, ok := places[id]; ok {
				f.union(place, i)
			} else {
				places[id] = i
			}
		}
	}
	for i, m := range msgs {
		switch m := m.(type) {
		case state.UnknownMessage:
			item := itemOf(m)
			refer(i, item.String("id"), item.String("call_id"), item.String("approval_request_id"))
		case state.TextMessage:
			for _, part := range partsOf(m) {
				call, result := serverTool(part)
				refer(i, call, result)
			}
		case state.ToolCallMessage:
			if strings.Contains(string(m.Raw()), `"caller"`) {
				for _, c := range m.Calls() {
					refer(i, callerOf(c)...)
				}
			}
		}
	}
}

// callerOf returns the ids of the provider's own tool that made the call, as its
// code did. What is kept of the call says so.
func callerOf(c state.ToolCall) []string {
	var ids []string
	extra, _ := jsontext.Members([]byte(c.Extra)) // none if there is no more
	for _, mark := range extra {
		kept, _ := jsontext.Members(mark.Value) // none if it is no object
		caller := kept.Object("more").Object("caller")
		ids = append(ids, caller.String("tool_id"), caller.String("caller_id"))
	}
	return ids
}

// forest holds of each place another one of the same set, or the place itself if
// it is the first of its set.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

// first returns the first place of the set.
func (f forest) first(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

func (f forest) union(i, j int) {
	i, j = f.first(i), f.first(j)
	f[max(i, j)] = min(i, j)
}

// groups returns the sets.
func (f forest) groups() [][]int {
	sizes := make([]int, len(f))
	n := 0
	for i := range f {
		first := f.first(i)
		if sizes[first]++; first == i {
			n++
		}
	}
	groups, places := make([][]int, 0, n), make([]int, 0, len(f))
	numbers := sizes // of a first place, from when its group is made
	for i := range f {
		if f[i] == i {
			size := sizes[i]
			numbers[i] = len(groups)
			at := len(places)
			places = places[:at+size]
			groups = append(groups, places[at:at:at+size])
		}
		group := &groups[numbers[f.first(i)]]
		*group = append(*group, i)
	}
	return groups
}
