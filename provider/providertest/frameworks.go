package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// RunMessages tests a format for the messages of a framework on a conversation
// of the framework, recorded or made, in which all kinds of messages and of
// parts occur. Messages are compared by their type and as encoding/json writes
// them, null being like a missing member. The laws are
//
//   - RoundTrip: each message comes back as it was, and so does each one in
//     which any part was replaced, emptied or removed. One that cannot be decoded
//     is an error, which the messages of the conversation are not.
//   - Neighbors: so do any two messages one after the other, decoded at once or
//     one by one, unless both are results: then they may become one message.
//   - Changes: what a message of the state says is encoded, if a program has
//     changed it.
//   - Omissions: what a message of any origin says is in the messages of the
//     framework, or in an [provider.Omission]. All calls and results are there.
//   - Zero: the zero message does not panic.
func RunMessages[M any](t *testing.T, format *provider.MessageFormat[M], conversation []M) {
	s := &messageSuite[M]{format, conversation}
	runLaws(t, []law{
		{"RoundTrip", s.roundTrip}, {"Neighbors", s.neighbors}, {"Changes", s.changes}, {"Omissions", s.omissions},
		{"Zero", s.zero},
	})
}

// messageSuite tests one format.
type messageSuite[M any] struct {
	format       *provider.MessageFormat[M]
	conversation []M
}

func (s *messageSuite[M]) roundTrip(t *testing.T) {
	s.requireBack(t, s.decode(t, s.conversation...), s.conversation)
	for _, m := range s.conversation {
		s.requireBack(t, s.decode(t, m), []M{m})
		for _, other := range variants(m) {
			if _, err := json.Marshal(other); err != nil {
				continue
			}
			msgs, err := s.format.Decode(other)
			if err != nil {
				requireKnown(t, err, []byte(show(other)))
				continue
			}
			s.requireBack(t, msgs, []M{other})
		}
	}
}

func (s *messageSuite[M]) neighbors(t *testing.T) {
	for _, a := range s.conversation {
		for _, b := range s.conversation {
			s.requireBack(t, s.decode(t, a, b), []M{a, b})
			if len(s.format.Shape(a).Answers) == 0 || len(s.format.Shape(b).Answers) == 0 {
				s.requireBack(t, slices.Concat(s.decode(t, a), s.decode(t, b)), []M{a, b})
			}
		}
	}
}

func (s *messageSuite[M]) changes(t *testing.T) {
	requireChanged(t, s.decode(t, s.conversation...), func(changed []state.Message) string {
		return show(s.encode(t, changed))
	})
}

func (s *messageSuite[M]) omissions(t *testing.T) {
	eachConversation(t, func(_ *writer, msgs []state.Message) {
		made, omitted, err := s.format.Encode(msgs...)
		if err != nil {
			t.Fatalf("Encode: %v\n%s", err, raws(msgs))
		}
		requireNamed(t, s.format.String(), msgs, []byte(show(made)), omitted)
		own := s.decode(t, made...)
		if want, got := callIDs(msgs), callIDs(own); !slices.Equal(got, want) {
			t.Fatalf("the calls and results %v became %v in\n%s\nof\n%s", want, got, show(made), raws(msgs))
		}
		s.requireBack(t, own, made)
	})
}

// callIDs returns the ids of calls and of results, in their order.
func callIDs(msgs []state.Message) (ids []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				ids = append(ids, "call "+c.ID)
			}
		case state.ToolResultMessage:
			ids = append(ids, "result "+m.Call().ID)
		}
	}
	return ids
}

func (s *messageSuite[M]) zero(t *testing.T) {
	defer func() {
		if cause := recover(); cause != nil {
			t.Fatalf("panic: %v", cause)
		}
	}()
	var none M
	s.format.Shape(none)
	if msgs, err := s.format.Decode(none); err == nil {
		s.requireBack(t, msgs, []M{none})
	}
	for _, e := range []string{"user", "assistant", "tool", "system", "developer", "x"} {
		_, _, err := s.format.Encode(state.Text(e, ""))
		if err != nil {
			t.Fatalf("Encode of an empty text of role %s: %v", e, err)
		}
	}
}

func (s *messageSuite[M]) decode(t *testing.T, own ...M) []state.Message {
	t.Helper()
	msgs, err := s.format.Decode(own...)
	if err != nil {
		t.Fatalf("Decode: %v\nof %s", err, show(own))
	}
	return msgs
}

func (s *messageSuite[M]) encode(t *testing.T, msgs []state.Message) []M {
	t.Helper()
	own, omitted, err := s.format.Encode(msgs...)
	if err != nil || len(omitted) > 0 {
		t.Fatalf("Encode: %v, omitted: %v\nof %s", err, omitted, raws(msgs))
	}
	return own
}

// requireBack requires that messages become those of the framework.
func (s *messageSuite[M]) requireBack(t *testing.T, msgs []state.Message, want []M) {
	t.Helper()
	if got := s.encode(t, msgs); show(got) != show(want) {
		t.Fatalf("the messages\n%s\nbecame\n%s\nmessages of the state:\n%s", show(want), show(got), raws(msgs))
	}
}

// show returns the type of each message and its JSON, with the members in order
// and without those that are null.
func show[M any](own ...M) string {
	var b strings.Builder
	for _, m := range own {
		if list := reflect.ValueOf(m); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				b.WriteString(show(list.Index(i).Interface()))
			}
			continue
		}
		var value any
		text, err := json.Marshal(m)
		if err == nil {
			err = state.JSON(text).Decode(&value)
		}
		if err == nil {
			eachObject(value, func(in object) {
				maps.DeleteFunc(in, func(_ string, value any) bool { return value == nil })
			})
			text, err = json.Marshal(value)
		}
		fmt.Fprintf(&b, "%T %s", m, text)
		if err != nil {
			fmt.Fprintf(&b, " %v", err)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
