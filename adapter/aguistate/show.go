package aguistate

import (
	"slices"
	"strings"

	"github.com/agentstate/state/workspace/page"
)

// maxTold is how many messages are told one by one. More are sent as a snapshot.
const maxTold = 100

// had takes the messages of a client for what it shows: all but what is its own. One
// that sends no thoughts is taken to show those of the answers that it has.
func (s *stream) had() {
	if len(s.in.Messages) == 0 {
		return
	}
	sendsThoughts := slices.ContainsFunc(s.in.Messages, func(m *message) bool { return m.Role == "reasoning" })
	for _, m := range s.in.Messages {
		at, isWanted := s.wanted(m.ID)
		if isOwn := m.Role == "activity" || m.isInstruction() && !isWanted; isOwn {
			continue
		}
		if at > 0 && s.want[at-1].Role == "reasoning" && !sendsThoughts {
			s.have = append(s.have, s.want[at-1])
		}
		s.have = append(s.have, m)
		for _, c := range m.ToolCalls {
			args := content{text: c.Function.Arguments}
			s.have = append(s.have, &message{ID: c.ID, Role: roleCall, Name: c.Function.Name, Content: args, ToolCallID: m.ID})
		}
	}
}

// wanted returns the place of a message among those of the page.
func (s *stream) wanted(id string) (at int, ok bool) {
	if s.places == nil {
		s.places = make(map[string]int, len(s.want))
		for i, m := range s.want {
			s.places[m.ID] = i
		}
	}
	at, ok = s.places[id]
	return at, ok
}

func (m *message) isInstruction() bool { return m.Role == "system" || m.Role == "developer" }

// shown returns a message that the client shows, or nil.
func (s *stream) shown(id string) *message {
	if s.index == nil {
		s.index = make(map[string]*message, len(s.have))
		for _, m := range s.have {
			s.index[m.ID] = m
		}
	}
	return s.index[id]
}

// show brings the client to the page: first to its messages, so that a client that
// has a version of the state has the messages of that version.
func (s *stream) show(snapshot bool) {
	if snapshot || !s.tell() {
		s.reset()
	}
	s.showState()
}

// grow tells what has come of an answer that is being made.
func (s *stream) grow(item string) {
	at := slices.IndexFunc(s.page.Pending, func(i *page.Item) bool { return i.ID == item })
	if at < 0 {
		return
	}
	list := appendItem(nil, s.page.Pending[at])
	for _, m := range list {
		if has := s.shown(m.ID); has == nil || !has.canBecome(m) {
			s.want, s.places = messagesOf(&s.page), nil
			s.show(false)
			return
		}
	}
	for _, m := range list {
		s.send(s.shown(m.ID).become(m)...)
	}
}

// tell brings the client to the messages of the page by events. It reports false, and has done
// nothing, if only a snapshot can do that.
func (s *stream) tell() bool {
	order, made := slices.Clone(s.have), make([]*message, len(s.want))
	added := 0
	for i, w := range s.want {
		if made[i] = s.shown(w.ID); made[i] == nil {
			made[i] = &message{ID: w.ID, Role: w.Role, ToolCallID: w.ToolCallID, isNew: true}
			order = place(order, made[i])
			added++
		}
		if added > maxTold || !made[i].canBecome(w) {
			return false
		}
	}
	if !slices.Equal(order, made) {
		return false
	}
	s.have = order
	for i, m := range made {
		s.index[m.ID] = m
		s.send(m.become(s.want[i])...)
	}
	return true
}

// place puts a message where a client puts it that is told of it: a call behind those
// of its message, a result behind its call and the results of others, and all else at
// the end.
func place(list []*message, m *message) []*message {
	for i := len(list) - 1; m.ToolCallID != "" && i >= 0; i-- {
		if list[i].ID == m.ToolCallID {
			for i++; i < len(list) && (list[i].Role == roleCall || list[i].Role == m.Role); i++ {
			}
			return slices.Insert(list, i, m)
		}
	}
	return append(list, m)
}

// canBecome reports whether there are events that make another message of one that
// the client has.
func (m *message) canBecome(w *message) bool {
	if m.Role != w.Role || m.ToolCallID != w.ToolCallID || m.Role == roleCall && !m.isNew && m.Name != w.Name {
		return false
	}
	if hasParts := w.Content.parts != nil || m.Content.parts != nil; hasParts || m.Role == "tool" {
		return m.Content.equal(w.Content) || m.isNew && !hasParts
	}
	return strings.HasPrefix(w.Content.text, m.Content.text)
}

// become returns the events that make another message of one.
func (m *message) become(w *message) (events []event) {
	rest, isNew := w.Content.text[len(m.Content.text):], m.isNew
	m.isNew, m.Name, m.Content = false, w.Name, w.Content
	switch {
	case m.Role == "tool" && isNew:
		return []event{{Type: "TOOL_CALL_RESULT", MessageID: m.ID, ToolCallID: m.ToolCallID, Content: w.Content.text, Role: "tool"}}
	case (rest != "" || isNew && !w.silent) && !m.open:
		events, m.open = m.begin(), true
	}
	if rest != "" {
		events = append(events, m.more(rest))
	}
	if !w.open {
		events = append(events, m.end()...)
	}
	return events
}

func (m *message) begin() []event {
	switch m.Role {
	case "reasoning":
		return []event{{Type: "REASONING_START", MessageID: m.ID}, {Type: "REASONING_MESSAGE_START", MessageID: m.ID, Role: m.Role}}
	case roleCall:
		return []event{{Type: "TOOL_CALL_START", ToolCallID: m.ID, ToolCallName: m.Name, ParentMessageID: m.ToolCallID}}
	}
	return []event{{Type: "TEXT_MESSAGE_START", MessageID: m.ID, Role: m.Role, Name: m.Name}}
}

func (m *message) more(text string) event {
	switch m.Role {
	case "reasoning":
		return event{Type: "REASONING_MESSAGE_CONTENT", MessageID: m.ID, Delta: text}
	case roleCall:
		return event{Type: "TOOL_CALL_ARGS", ToolCallID: m.ID, Delta: text}
	}
	return event{Type: "TEXT_MESSAGE_CONTENT", MessageID: m.ID, Delta: text}
}

// end ends what is open.
func (m *message) end() []event {
	isOpen := m.open
	m.open = false
	switch {
	case !isOpen:
		return nil
	case m.Role == "reasoning":
		return []event{{Type: "REASONING_MESSAGE_END", MessageID: m.ID}, {Type: "REASONING_END", MessageID: m.ID}}
	case m.Role == roleCall:
		return []event{{Type: "TOOL_CALL_END", ToolCallID: m.ID}}
	}
	return []event{{Type: "TEXT_MESSAGE_END", MessageID: m.ID}}
}

// close ends all that is open: a client refuses the end of a run before.
func (s *stream) close() {
	for _, m := range s.have {
		s.send(m.end()...)
	}
}

// reset makes the client show just the messages of the page. A client leaves a message
// that it has at its place, and adds others at the end; and it keeps its thoughts if a
// snapshot has none. If that is not what it is to show, it has to forget first what it
// has, and for that time which version it has: what it says then is no edit of what
// was said.
func (s *stream) reset() {
	s.close()
	want, thinks := s.want, count(s.want, "reasoning") > 0
	var thoughts, others []*message
	for _, m := range s.have {
		if m.Role == "reasoning" {
			thoughts, others = append(thoughts, m), append(others, &message{ID: m.ID, Role: "assistant"})
		}
	}
	if !s.inOrder() || len(thoughts) > 0 && !thinks && s.in.isNew() {
		if s.isSeen {
			s.send(event{Type: "STATE_DELTA", Delta: []operation{{Op: "remove", Path: pointer(versionKey)}}})
			s.isSeen, s.fields = false, nil
		}
		if thinks && len(thoughts) > 0 { // any thought makes it forget its own
			others = []*message{{ID: "thought", Role: "reasoning"}}
		}
		s.sendMessages(others)
	}
	if s.have, s.index = want, nil; !thinks && !s.in.isNew() { // 0.0.59 still has them
		s.have = append(thoughts, want...)
	}
	for _, m := range want {
		m.open = false
	}
	s.sendMessages(want)
}

// inOrder reports whether the messages of the client that are to stay are the first ones
// that it is to show.
func (s *stream) inOrder() bool {
	n := 0
	for _, m := range s.have {
		if at, stays := s.wanted(m.ID); stays && at != n {
			return false
		} else if stays {
			n++
		}
	}
	return true
}
