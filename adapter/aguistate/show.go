package aguistate

import (
	"slices"
)

// show brings the client to the view that was read last: first to its messages, so
// that a client that has a version of the state has the messages of that version.
func (s *stream) show(snapshot bool) {
	s.storedText()
	s.showMessages(snapshot)
	s.showState()
}

// showMessages tells the messages that the client does not have, or sends all of
// them if it has others, or has them in another order.
func (s *stream) showMessages(snapshot bool) {
	want := s.conv.messages
	var added []*message
	shown, has := s.withoutLive(s.have), idsOf(s.have)
	for i := range want {
		if m := &want[i]; !has[m.ID] && !snapshot {
			added = append(added, m)
			shown = place(shown, *m)
			snapshot = m.hasParts() || len(added) > maxTold
		}
	}
	if snapshot || !slices.EqualFunc(shown, want, func(a, b message) bool { return a.equal(&b) }) {
		s.resetMessages(want)
		return
	}
	for _, m := range added {
		s.tellMessage(m)
		s.have = place(s.have, *m)
	}
}

// maxTold is how many messages are told one by one. More are sent as a snapshot.
const maxTold = 100

// withoutLive returns messages without the one whose text is open.
func (s *stream) withoutLive(list []message) []message {
	return slices.DeleteFunc(slices.Clone(list), func(m message) bool { return m.ID == s.live.id })
}

func idsOf(list []message) map[string]bool {
	ids := map[string]bool{}
	for i := range list {
		ids[list[i].ID] = true
	}
	return ids
}

// place puts a message where a client puts it that is told of it: a result behind
// its call and the results of others, and all else at the end.
func place(list []message, m message) []message {
	i := slices.IndexFunc(list, func(o message) bool {
		return m.Role == "tool" && slices.ContainsFunc(o.ToolCalls, func(c toolCall) bool { return c.ID == m.ToolCallID })
	})
	if i < 0 {
		return append(list, m)
	}
	for i++; i < len(list) && list[i].Role == "tool"; i++ {
	}
	return slices.Insert(list, i, m)
}

// resetMessages makes the client show just these messages. A client leaves a
// message that it has at its place, and adds others at the end: if that is another
// order, it has to forget all of them first, and for that time which version it
// has: what it says then is no edit of what was said.
func (s *stream) resetMessages(want []message) {
	s.endText()
	wanted := idsOf(want)
	order := slices.DeleteFunc(s.withoutLive(s.have), func(m message) bool { return !wanted[m.ID] })
	if len(order) > len(want) || !slices.EqualFunc(order, want[:len(order)], func(a, b message) bool { return a.ID == b.ID }) {
		if s.isSeen {
			s.send(event{Type: "STATE_DELTA", Delta: []operation{{Op: "remove", Path: pointer(versionKey)}}})
			s.isSeen, s.fields = false, nil
		}
		s.send(event{Type: "MESSAGES_SNAPSHOT", Messages: []message{}})
	}
	s.have = slices.Clone(want)
	s.send(event{Type: "MESSAGES_SNAPSHOT", Messages: append([]message{}, want...)})
}

// tellMessage sends a message as if it was streamed.
func (s *stream) tellMessage(m *message) {
	if m.agent != "" {
		s.send(event{Type: "STEP_STARTED", StepName: m.agent})
	}
	if m.reasoning != "" {
		id := m.ID + "-reasoning"
		s.send(event{Type: "REASONING_START", MessageID: id})
		s.send(event{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"})
		s.send(event{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: m.reasoning})
		s.send(event{Type: "REASONING_MESSAGE_END", MessageID: id})
		s.send(event{Type: "REASONING_END", MessageID: id})
	}
	switch {
	case m.Role == "tool":
		s.send(event{Type: "TOOL_CALL_RESULT", MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.text(), Role: "tool"})
	case len(m.ToolCalls) > 0:
		for _, c := range m.ToolCalls {
			s.send(event{Type: "TOOL_CALL_START", ToolCallID: c.ID, ToolCallName: c.Function.Name, ParentMessageID: m.ID})
			s.send(event{Type: "TOOL_CALL_ARGS", ToolCallID: c.ID, Delta: c.Function.Arguments})
			s.send(event{Type: "TOOL_CALL_END", ToolCallID: c.ID})
		}
	default:
		s.send(event{Type: "TEXT_MESSAGE_START", MessageID: m.ID, Role: m.Role, Name: m.Name})
		if text := m.text(); text != "" {
			s.send(event{Type: "TEXT_MESSAGE_CONTENT", MessageID: m.ID, Delta: text})
		}
		s.send(event{Type: "TEXT_MESSAGE_END", MessageID: m.ID})
	}
	if m.agent != "" {
		s.send(event{Type: "STEP_FINISHED", StepName: m.agent})
	}
}
