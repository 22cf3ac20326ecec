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

// trait is a set of facts about a message.
type trait uint16

const (
	traitAbsent    trait = 1 << iota // nil or a zero value, of which nothing is sent
	traitCall                        // it is for calls, even if it has none
	traitAnswer                      // it has results
	traitAssistant                   // an assistant says it or makes calls in it
	traitSystem                      // it is a system prompt or a part of one
	traitUser                        // the user says it
	traitItem                        // it is an entry that is passed through
	traitReasoning                   // it has nothing but reasoning
	traitReasons                     // it has reasoning among other parts
	traitRefs                        // it has references
	traitJoined                      // it is in one entry with the message before it
	traitFollowing                   // it must stay behind the message before it
)

func (t trait) has(all trait) bool { return t&all == all }

// isMoreThanText reports whether a message of the assistant has calls,
// reasoning or tools of the provider.
func (t trait) isMoreThanText() bool {
	return t.has(traitCall) || t.has(traitAssistant) &&
		(t&(traitReasoning|traitReasons) != 0 || t.has(traitRefs) && !t.has(traitItem))
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

func (s *Shape) traits() trait {
	t := s.own
	if s.Joined {
		t |= traitJoined
	}
	if s.Reasoning {
		t |= traitReasoning
	}
	if len(s.Answers) > 0 {
		t |= traitAnswer
	}
	switch {
	case t.has(traitCall), len(s.Calls) > 0:
		t |= traitCall | traitAssistant
	case t.has(traitAnswer): // their role does not matter
	case s.Role == "assistant":
		t |= traitAssistant
	case s.Role == "user":
		t |= traitUser
	case (s.Role == "system" || s.Role == "developer") && !t.has(traitItem):
		t |= traitSystem
	}
	return t
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
