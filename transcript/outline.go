package transcript

import (
	"iter"

	"github.com/agentstate/state"
)

// outline is what groups and trims have to know of a conversation. It is made of
// shapes, which it does not hold: a conversation may be long.
type outline struct {
	pairing
	traits []trait     // of each message
	refs   []reference // of all messages, in order
}

// reference is a name that a message has in common with others.
type reference struct {
	name    string
	message int
}

// outlineOf returns the outline of messages of package state.
func outlineOf(msgs []state.Message) *outline {
	var r shapeReader
	return newOutline(len(msgs), func(i int) Shape { return r.read(msgs[i]) })
}

// newOutline returns the outline of n messages. It calls shape once for each of
// them in their order, and does not retain the answers of a Shape.
func newOutline(n int, shape func(i int) Shape) *outline {
	o := &outline{traits: make([]trait, n)}
	o.pairing = pairAll(n, nil, func(i int) (calls, answers []state.ToolCall) {
		s := shape(i)
		o.traits[i] = s.traits()
		for _, ref := range s.Refs {
			if ref != "" {
				o.refs = append(o.refs, reference{ref, i})
				o.traits[i] |= traitRefs
			}
		}
		return s.Calls, s.Answers
	})
	return o
}

// entries yields the indexes of the messages of each entry of the provider's
// conversation. It uses one slice for all of them.
func (o *outline) entries() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var entry []int
		for i, t := range o.traits {
			if t.has(traitAbsent) {
				continue
			}
			if len(entry) > 0 && !t.has(traitJoined) {
				if !yield(entry) {
					return
				}
				entry = entry[:0]
			}
			entry = append(entry, i)
		}
		if len(entry) > 0 {
			yield(entry)
		}
	}
}

func (s Shapes) outline() *outline {
	return newOutline(len(s), func(i int) Shape { return s[i] })
}
