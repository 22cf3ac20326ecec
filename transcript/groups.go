package transcript

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Groups returns the indexes of the messages that belong together: a provider
// accepts all messages of a group or none of them. The indexes of a group are
// in order, the groups are in the order of their first indexes, and each
// message is in one group.
//
// These belong together:
//   - calls and their results, wherever they are,
//   - the calls of one turn,
//   - what the assistant said or thought in the same entry,
//   - reasoning and what it led to,
//   - items of a provider's own tools that refer to each other,
//   - a system message of Anthropic in the middle, and the message before it.
//
// Every other message is a separate group.
func Groups(msgs []state.Message) [][]int {
	p := pairCalls(msgs)
	return p.groups(msgs)
}

func (p *pairing) groups(msgs []state.Message) [][]int {
	f := newForest(len(msgs))
	for _, c := range p.calls {
		if c.result != none {
			f.unite(c.message, c.result)
		}
	}
	f.uniteEntries(msgs)
	f.uniteTurns(msgs)
	f.uniteSystems(msgs)
	f.uniteReferences(msgs)
	return f.groups()
}

// uniteEntries unites what is in one entry of a provider: all results, and all
// messages if they are more than text.
func (f forest) uniteEntries(msgs []state.Message) {
	for entry := range providerEntries(msgs) {
		result, united := none, false
		for _, i := range entry {
			united = united || isMoreThanText(msgs[i])
			if isResult(msgs[i]) {
				if result != none {
					f.unite(result, i)
				}
				result = i
			}
		}
		for _, i := range entry {
			if united {
				f.unite(entry[0], i)
			}
		}
	}
}

// isMoreThanText reports whether a message of the assistant has calls,
// reasoning or tools of the provider.
func isMoreThanText(m state.Message) bool {
	if _, ok := m.(state.ToolCallMessage); ok {
		return true
	}
	if !origin.FromAssistant(m) {
		return false
	}
	if isReasoning(m) {
		return true
	}
	for _, part := range textParts(m) {
		if call, result := serverToolIDs(part); call != "" || result != "" || isReasoningPart(part) {
			return true
		}
	}
	return false
}

// uniteTurns unites calls with the calls that the assistant makes before any of
// them is answered. It unites reasoning with what the assistant does next, or
// with the calls before it if there is nothing next.
func (f forest) uniteTurns(msgs []state.Message) {
	before, calls, reasoning := none, none, none
	for i, m := range msgs {
		if !internal.IsMessage(m) {
			continue
		}
		if reasoning != none && origin.FromAssistant(m) {
			f.unite(reasoning, i)
		} else if reasoning != none && calls != none {
			f.unite(calls, reasoning)
		}
		reasoning = none
		switch _, isCall := m.(state.ToolCallMessage); {
		case isCall:
			if calls != none {
				f.unite(calls, i)
			}
			calls = i
		case origin.FromAssistant(m) && isReasoning(m):
			reasoning = i
		case origin.FromAssistant(m) && before != none && origin.Joins(msgs[before], m):
		default:
			calls = none
		}
		before = i
	}
	if reasoning != none && calls != none {
		f.unite(calls, reasoning)
	}
}

// uniteSystems unites a system message in the middle of a conversation of
// Anthropic with the message before it, because it must follow the user's turn.
func (f forest) uniteSystems(msgs []state.Message) {
	before := none
	for i, m := range msgs {
		if !internal.IsMessage(m) {
			continue
		}
		if isSystem(m) && before != none {
			if kept, own := origin.Of(m, origin.Anthropic); own && kept.String("in") != "system" {
				f.unite(before, i)
			}
		}
		before = i
	}
}

// uniteReferences unites items and parts of a provider's own tools that share
// an id, and the calls that such a tool makes.
func (f forest) uniteReferences(msgs []state.Message) {
	firstUse := map[string]int{}
	addIDs := func(i int, ids ...string) {
		for _, id := range ids {
			if id == "" {
				continue
			}
			if first, ok := firstUse[id]; ok {
				f.unite(first, i)
			} else {
				firstUse[id] = i
			}
		}
	}
	for i, m := range msgs {
		switch m := m.(type) {
		case state.UnknownMessage:
			item := providerItem(m)
			addIDs(i, item.String("id"), item.String("call_id"), item.String("approval_request_id"))
		case state.TextMessage:
			for _, part := range textParts(m) {
				call, result := serverToolIDs(part)
				addIDs(i, call, result)
			}
		case state.ToolCallMessage:
			if strings.Contains(string(m.Raw()), `"caller"`) {
				for _, c := range m.Calls() {
					addIDs(i, callerIDs(c)...)
				}
			}
		}
	}
}

// callerIDs returns the ids of the provider's own tool whose code made the
// call.
func callerIDs(c state.ToolCall) []string {
	var ids []string
	extra, _ := jsontext.Members([]byte(c.Extra)) // none if Extra is empty
	for _, format := range extra {
		kept, _ := jsontext.Members(format.Value) // none if it is not an object
		caller := jsontext.Object(kept).Object("more").Object("caller")
		ids = append(ids, caller.String("tool_id"), caller.String("caller_id"))
	}
	return ids
}

// forest is a set of disjoint sets of indexes, with union and find. It holds
// for each index another one of the same set, or the index itself if it is the
// root: the first of its set.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

func (f forest) root(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

func (f forest) unite(i, j int) {
	i, j = f.root(i), f.root(j)
	f[max(i, j)] = min(i, j)
}

// groups returns the sets, in three allocations.
func (f forest) groups() [][]int {
	sizes := make([]int, len(f))
	n := 0
	for i := range f {
		root := f.root(i)
		if sizes[root]++; root == i {
			n++
		}
	}
	groups, room := make([][]int, 0, n), make([]int, len(f))
	numbers := sizes // once a root has its group, its size is no longer needed
	for i := range f {
		root := f.root(i)
		if root == i {
			size := sizes[i]
			numbers[i] = len(groups)
			groups, room = append(groups, room[:0:size]), room[size:]
		}
		group := &groups[numbers[root]]
		*group = append(*group, i)
	}
	return groups
}
