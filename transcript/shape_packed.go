package transcript

import (
	"iter"

	"github.com/agentstate/state"
)

// packedShapes are the shapes of a conversation, packed for groups and trims: it
// may be long.
type packedShapes struct {
	pairing
	shapes []shapeBits // of each message
	refs   []reference // of all messages, in order
}

// reference is a name that a message has in common with others.
type reference struct {
	name    string
	message int
}

// packShapes packs the shapes of messages of package state.
func packShapes(msgs []state.Message) *packedShapes {
	var r shapeReader
	return packAll(len(msgs), func(i int) Shape { return r.read(msgs[i]) })
}

// packAll packs the shapes of n messages. It calls shape once for each of
// them in their order, and does not retain the answers of a Shape.
func packAll(n int, shape func(i int) Shape) *packedShapes {
	o := &packedShapes{shapes: make([]shapeBits, n)}
	spoken := func(i int) bool { return o.shapes[i].has(shapeAssistant) }
	o.pairing = pairAll(n, nil, spoken, func(i int) (calls, answers []state.ToolCall) {
		s := shape(i)
		o.shapes[i] = s.bits()
		for _, ref := range s.Refs {
			if ref != "" {
				o.refs = append(o.refs, reference{ref, i})
				o.shapes[i] |= shapeRefs
			}
		}
		return s.Calls, s.Answers
	})
	return o
}

// entries yields the indexes of the messages of each entry of the provider's
// conversation. It uses one slice for all of them.
func (o *packedShapes) entries() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var entry []int
		for i, t := range o.shapes {
			if t.has(shapeAbsent) {
				continue
			}
			if len(entry) > 0 && !t.has(shapeJoined) {
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

func (s Shapes) pack() *packedShapes {
	return packAll(len(s), func(i int) Shape { return s[i] })
}
