package aguistate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/workspace"
)

// liveText is the text that a model is streaming, as far as the client has it.
type liveText struct {
	id   string // of its message, or "" if there is none
	text strings.Builder
	rest string // the beginning of a character that is not whole yet
}

// tellText tells a piece of a text. A piece that does not continue what the client
// has is left out: it has the whole text when that is stored.
func (s *stream) tellText(e *workspace.Event) {
	id, at := messageID(e.Message), s.live.text.Len()+len(s.live.rest)
	delta := e.Delta
	switch {
	case s.live.id != id && (e.Offset > 0 || s.shows(id)), s.live.id == id && e.Offset > at:
		return
	case s.live.id == id && e.Offset == 0 && at > 0: // it begins anew
		s.resetMessages(slices.DeleteFunc(slices.Clone(s.have), func(m message) bool { return m.ID == id }))
		s.beginText(id)
	case s.live.id != id:
		s.endText()
		s.beginText(id)
	case e.Offset+len(delta) <= at:
		return
	default:
		delta = delta[at-e.Offset:]
	}
	delta = s.live.rest + delta
	last := max(0, len(delta)-1) // where the last character begins
	for last > 0 && !utf8.RuneStart(delta[last]) {
		last--
	}
	if utf8.FullRuneInString(delta[last:]) {
		last = len(delta)
	}
	s.live.rest = delta[last:]
	s.moreText(delta[:last])
}

// shows reports whether the client has a message.
func (s *stream) shows(id string) bool {
	return slices.ContainsFunc(s.have, func(m message) bool { return m.ID == id })
}

func (s *stream) beginText(id string) {
	s.live = liveText{id: id}
	s.send(event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"})
	s.have = append(s.have, message{ID: id, Role: "assistant", Content: quote("")})
}

func (s *stream) moreText(delta string) {
	if delta == "" {
		return
	}
	s.live.text.WriteString(delta)
	s.send(event{Type: "TEXT_MESSAGE_CONTENT", MessageID: s.live.id, Delta: delta})
}

// endText ends the text that is open. What the client shows of it is known.
func (s *stream) endText() {
	if s.live.id == "" {
		return
	}
	s.send(event{Type: "TEXT_MESSAGE_END", MessageID: s.live.id})
	for i := range s.have {
		if s.have[i].ID == s.live.id {
			s.have[i].Content = quote(s.live.text.String())
		}
	}
	s.live = liveText{}
}

// storedText completes the text that is open if it is stored now.
func (s *stream) storedText() {
	i := slices.IndexFunc(s.conv.messages, func(m message) bool { return m.ID == s.live.id })
	switch {
	case s.live.id == "":
	case i >= 0:
		if rest, ok := strings.CutPrefix(s.conv.messages[i].text(), s.live.text.String()); ok {
			s.moreText(rest)
		}
		s.endText()
	case s.view.Run == nil: // it never will be
		s.endText()
	}
}
