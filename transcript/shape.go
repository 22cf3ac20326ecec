package transcript

import (
	"github.com/agentstate/state"
)

// Shape is what determines where a message belongs in a conversation: who says
// it, which calls it makes and which calls it answers. It describes one message
// of any type, usually an entry of a request. It has no content.
type Shape struct {
	// Role is "system", "developer", "user", "assistant", or any other text.
	// Frameworks that say "model" or "ai" mean "assistant". The role of a
	// message with calls or answers does not matter.
	Role string

	// Calls are the calls of tools that the message makes. A call is identified
	// by its ID, or by its Name if the provider gives calls no ids. Input and
	// Extra are not read: [Shapes.Pending] yields them as they are.
	Calls []state.ToolCall

	// Answers are the calls whose results the message has. If there is an ID,
	// the Name may be missing. A message with answers is not a request of the
	// user, whatever else it says.
	Answers []state.ToolCall

	// Reasoning says that the message has nothing but reasoning of the model.
	// A message that has other content as well is not reasoning.
	Reasoning bool

	// Joined says that the message is in one entry of the provider's
	// conversation with the message before it.
	Joined bool

	// Refs are names of what the message depends on, such as the ids of calls
	// of a provider's own tools. Messages that have one in common belong
	// together.
	Refs []string

	own shapeBits // what only a state.Message says of itself
}

// Shapes are the shapes of the messages of a conversation, in their order. With
// them, this package works on messages of any type: the methods return indexes
// of messages, and [Select] returns the messages.
//
// A program that makes the shape of a message once, and appends it, pays nothing
// for the messages before it. The methods do not change the Shapes and are safe
// for concurrent use.
type Shapes []Shape

// ShapesFunc returns the shapes of messages of any type. It calls shape once for
// each message. It does not copy the slices of a Shape.
func ShapesFunc[M any](msgs []M, shape func(M) Shape) Shapes {
	shapes := make(Shapes, len(msgs))
	for i, m := range msgs {
		shapes[i] = shape(m)
	}
	return shapes
}

// Select returns the elements of a list that have the indexes, in the order of
// the indexes, in a new slice, or nil if there are none. It leaves out indexes
// that the list does not have.
func Select[M any](list []M, indexes []int) []M {
	if len(indexes) == 0 {
		return nil
	}
	selected := make([]M, 0, len(indexes))
	for _, i := range indexes {
		if i >= 0 && i < len(list) {
			selected = append(selected, list[i])
		}
	}
	return selected
}

// shapeBits is a Shape without its calls, answers and references: a set of facts
// about a message.
type shapeBits uint16

const (
	shapeAbsent    shapeBits = 1 << iota // nil or a zero value, of which nothing is sent
	shapeCall                            // it is for calls, even if it has none
	shapeAnswer                          // it has results
	shapeAssistant                       // an assistant says it or makes calls in it
	shapeSystem                          // it is a system prompt or a part of one
	shapeUser                            // the user says it
	shapeItem                            // it is an entry that is passed through
	shapeReasoning                       // it has nothing but reasoning
	shapeReasons                         // it has reasoning among other parts
	shapeRefs                            // it has references
	shapeJoined                          // it is in one entry with the message before it
	shapeFollowing                       // it must stay behind the message before it
)

// bits returns what the shape says of the message.
func (s *Shape) bits() shapeBits {
	t := s.own
	if s.Joined {
		t |= shapeJoined
	}
	if s.Reasoning {
		t |= shapeReasoning
	}
	if len(s.Answers) > 0 {
		t |= shapeAnswer
	}
	switch {
	case t.has(shapeCall), len(s.Calls) > 0:
		t |= shapeCall | shapeAssistant
	case t.has(shapeAnswer): // their role does not matter
	case s.Role == "assistant":
		t |= shapeAssistant
	case s.Role == "user":
		t |= shapeUser
	case (s.Role == "system" || s.Role == "developer") && !t.has(shapeItem):
		t |= shapeSystem
	}
	return t
}

// isMoreThanText reports whether a message of the assistant has calls,
// reasoning or tools of the provider.
func (t shapeBits) isMoreThanText() bool {
	return t.has(shapeCall) || t.has(shapeAssistant) &&
		(t&(shapeReasoning|shapeReasons) != 0 || t.has(shapeRefs) && !t.has(shapeItem))
}

func (t shapeBits) has(all shapeBits) bool { return t&all == all }
