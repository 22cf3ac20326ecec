package transcript

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// ShapesOf returns the shapes of messages of package state, with which the
// functions of this package group and trim them. They have more than the
// exported members of a Shape. Whether a message is joined depends on the
// message before it.
func ShapesOf(msgs []state.Message) Shapes {
	var r shapeReader
	shapes := make(Shapes, len(msgs))
	for i, m := range msgs {
		shapes[i] = r.read(m)
		shapes[i].Calls = append([]state.ToolCall(nil), shapes[i].Calls...)
		shapes[i].Answers = slices.Clone(shapes[i].Answers)
	}
	return shapes
}

// shapeReader reads the shapes of the messages of a conversation, in their order.
type shapeReader struct {
	before state.Message
	answer [1]state.ToolCall // of the shape that was read last
}

// read returns the shape of a message. Its calls are shared with the message,
// and its answers are valid until the next one is read.
func (r *shapeReader) read(m state.Message) Shape {
	if !inside.IsMessage(m) {
		return Shape{own: shapeAbsent}
	}
	s := Shape{Role: m.Role(), Joined: origin.Joins(r.before, m)}
	r.before = m
	switch m := m.(type) {
	case state.TextMessage:
		s.readText(m)
	case state.ToolCallMessage:
		s.readCalls(m)
	case state.ToolResultMessage:
		r.answer[0] = m.Call()
		s.Answers = r.answer[:]
	case state.UnknownMessage:
		s.readItem(m)
	}
	return s
}

func (s *Shape) readText(m state.TextMessage) {
	parts := partsOf(m)
	s.Reasoning = onlyReasoning(parts)
	for _, part := range parts {
		if origin.IsReasoning(part) {
			s.own |= shapeReasons
		}
		call, result := serverToolIDs(part)
		s.addRefs(call, result)
	}
	// A system message of Anthropic in the middle of a conversation must follow
	// the user's turn.
	if origin.IsSystem(m) {
		if kept, own := origin.Of(m, origin.Anthropic); own && kept.String("in") != "system" {
			s.own |= shapeFollowing
		}
	}
}

func (s *Shape) readCalls(m state.ToolCallMessage) {
	s.Calls, s.own = sharedCalls(m), shapeCall
	if strings.Contains(string(m.Raw()), `"caller"`) {
		for _, c := range s.Calls {
			s.addRefs(callerIDs(c)...)
		}
	}
}

func (s *Shape) readItem(m state.UnknownMessage) {
	item := providerItem(m)
	s.own, s.Reasoning = shapeItem, isReasoning(m)
	s.addRefs(item.String("id"), item.String("call_id"), item.String("approval_request_id"))
}

// addRefs adds ids of a provider's own tools, unless they are empty.
func (s *Shape) addRefs(ids ...string) {
	for _, id := range ids {
		if id != "" {
			s.Refs = append(s.Refs, id)
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
