package transcript

import (
	"iter"

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

	own trait // what only a state.Message says of itself
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

// Pending yields the calls that have no answer, in their order, with the indexes
// of their messages. It leaves out suspended calls, as [PendingAt] does.
func (s Shapes) Pending(suspended ...state.ToolCall) iter.Seq2[int, state.ToolCall] {
	return pendingCalls(func(except map[int]bool) pairing {
		return pairAll(len(s), except, func(i int) (calls, answers []state.ToolCall) { return s[i].Calls, s[i].Answers })
	}, suspended)
}

// Groups returns the indexes of the messages that belong together, as the
// function [Groups] does.
func (s Shapes) Groups() [][]int { return s.outline().groups() }

// KeepLast returns the indexes of at most n messages, as the Trim of the function
// [KeepLast] keeps them.
func (s Shapes) KeepLast(n int) []int { return s.outline().keep(n, countOne) }

// KeepTokens returns the indexes of messages of at most max tokens in total, as
// the Trim of the function [KeepTokens] keeps them. It calls count at most once
// for each message, with its index. A nil count counts each message as 1.
func (s Shapes) KeepTokens(max int, count func(i int) int) []int {
	if count == nil {
		count = countOne
	}
	return s.outline().keep(max, count)
}

func (s Shapes) outline() *outline {
	return newOutline(len(s), func(i int) Shape { return s[i] })
}
