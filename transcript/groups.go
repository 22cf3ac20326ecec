package transcript

import (
	"iter"

	"github.com/agentstate/state"
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
//   - a system message of Anthropic in the middle, and the messages before and behind it.
//
// Every other message is a separate group.
func Groups(msgs []state.Message) [][]int { return packShapes(msgs).groups() }

func (o *packedShapes) groups() [][]int {
	f := newForest(len(o.shapes))
	for _, c := range o.calls {
		if c.result != none {
			f.unite(c.message, c.result)
		}
	}
	f.uniteEntries(o)
	f.uniteTurns(o.shapes)
	f.uniteFollowing(o.shapes)
	f.uniteReferences(o.refs)
	return f.groups()
}

// uniteEntries unites what is in one entry of a provider: all results, and all
// messages if they are more than text.
func (f forest) uniteEntries(o *packedShapes) {
	for entry := range o.entries() {
		result, united := none, false
		for _, i := range entry {
			united = united || o.shapes[i].isMoreThanText()
			if o.shapes[i].has(shapeAnswer) {
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

// uniteTurns unites calls with the calls that the assistant makes before any of
// them is answered. It unites reasoning with what the assistant does next, or
// with the calls before it if there is nothing next.
func (f forest) uniteTurns(shapes []shapeBits) {
	first, calls, reasoning := true, none, none
	for i, t := range shapes {
		if t.has(shapeAbsent) {
			continue
		}
		if reasoning != none && t.has(shapeAssistant) {
			f.unite(reasoning, i)
		} else if reasoning != none && calls != none {
			f.unite(calls, reasoning)
		}
		reasoning = none
		switch {
		case t.has(shapeCall):
			if calls != none {
				f.unite(calls, i)
			}
			if calls = i; t.has(shapeAnswer) {
				calls = none // they are answered in the same message
			}
		case t.has(shapeAssistant | shapeReasoning):
			reasoning = i
		case t.has(shapeAssistant|shapeJoined) && !first:
		default:
			calls = none
		}
		first = false
	}
	if reasoning != none && calls != none {
		f.unite(calls, reasoning)
	}
}

// uniteFollowing unites messages that must stay behind the message before them
// with that message, and a system message of Anthropic in the middle with the one
// behind it as well. Items and reasoning between them may not be sent.
func (f forest) uniteFollowing(shapes []shapeBits) {
	unite := func(i, step int) {
		for k := i + step; k >= 0 && k < len(shapes); k += step {
			if shapes[k].has(shapeAbsent) {
				continue
			}
			f.unite(k, i)
			if shapes[k]&(shapeItem|shapeReasoning) == 0 {
				break
			}
		}
	}
	for i, t := range shapes {
		if t.has(shapeFollowing) {
			unite(i, -1)
		}
		if t.has(shapeFollowing | shapeSystem) {
			unite(i, 1)
		}
	}
}

// uniteReferences unites messages that have a reference in common.
func (f forest) uniteReferences(refs []reference) {
	if len(refs) == 0 {
		return
	}
	firstUse := map[string]int{}
	for _, ref := range refs {
		if first, ok := firstUse[ref.name]; ok {
			f.unite(first, ref.message)
		} else {
			firstUse[ref.name] = ref.message
		}
	}
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

// Groups returns the indexes of the messages that belong together, as the
// function [Groups] does.
func (s Shapes) Groups() [][]int { return s.pack().groups() }

// Pending yields the calls that have no answer and are not suspended, in their
// order, with the indexes of their messages. See [Policy] for the meaning of
// suspended.
func (s Shapes) Pending(suspended ...state.ToolCall) iter.Seq2[int, state.ToolCall] {
	pair := func(except map[int]bool) pairing {
		spoken := func(i int) bool { return s[i].bits().has(shapeAssistant) }
		return pairAll(len(s), except, spoken, func(i int) (calls, answers []state.ToolCall) {
			return s[i].Calls, s[i].Answers
		})
	}
	return func(yield func(int, state.ToolCall) bool) {
		p, waiting := pairOthers(pair, suspended)
		for number, c := range p.calls {
			if c.result == none && !waiting[number] && !yield(c.message, *c.ToolCall) {
				return
			}
		}
	}
}
