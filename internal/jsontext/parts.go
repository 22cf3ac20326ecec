package jsontext

import (
	"strconv"

	"github.com/agentstate/state/internal/fault"
)

// A Span is the place of a value in a text.
type Span struct{ From, To int }

// Within returns the place in the text that outer is a part of, if s is a place
// in that part.
func (s Span) Within(outer Span) Span { return Span{outer.From + s.From, outer.From + s.To} }

// In returns the value's text.
func (s Span) In(data []byte) []byte { return data[s.From:s.To:s.To] }

// EachMember calls visit for the members of an object in their order, until one
// returns an error. The name is unescaped and valid during the call only. The
// text must have passed [Check].
func EachMember(data []byte, visit func(name []byte, value Span) error) error {
	s := cursor{data: data}
	s.skipSpace()
	return s.eachMember(visit)
}

// MemberOf returns the value of a member of an object, nil if it is missing or the
// text is no object. The text must have passed [Check].
func MemberOf(data []byte, name string) (value []byte) {
	_ = EachMember(data, func(other []byte, span Span) error { // nothing if it is no object
		if string(other) == name {
			value = span.In(data)
		}
		return nil
	})
	return value
}

// EachElement calls visit for the elements of an array in their order, until
// one returns an error. The text must have passed [Check].
func EachElement(data []byte, visit func(element Span) error) error {
	s := cursor{data: data}
	s.skipSpace()
	if s.peek() != '[' {
		return &fault.Error{Path: "$", Want: "array", Got: Kind(data)}
	}
	return s.eachPart(']', func() error {
		start := s.pos
		if err := s.skipValue(); err != nil {
			return err
		}
		return visit(Span{start, s.pos})
	})
}

// Kind returns the kind of the value at the start of a text: "object", "array",
// "string", "number", "bool", "null", or "nothing" if there is no value.
func Kind(data []byte) string {
	s := cursor{data: data}
	s.skipSpace()
	switch c := s.peek(); {
	case c == '{':
		return "object"
	case c == '[':
		return "array"
	case c == '"':
		return "string"
	case c == 't', c == 'f':
		return "bool"
	case c == 'n':
		return "null"
	case c == '-', c >= '0' && c <= '9':
		return "number"
	}
	return "nothing"
}

// AppendCompact appends a checked text without the space between its tokens.
// The spelling of numbers and strings and the order of members stay.
func AppendCompact(dst, src []byte) []byte {
	s := cursor{data: src}
	done := 0
	for s.skipToSpace() {
		dst = append(dst, src[done:s.pos]...)
		s.skipSpace()
		done = s.pos
	}
	return append(dst, src[done:]...)
}

// skipToSpace moves to the next space between the tokens of a checked text, and
// reports whether there is one.
func (s *cursor) skipToSpace() bool {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
			continue
		case ' ', '\t', '\n', '\r':
			return true
		}
		s.pos++
	}
	return false
}

// shownName is the number of bytes of a member name that a path shows.
const shownName = 128

// Path returns the path of a member: parent.name, or parent["odd name"] if the
// name is not an identifier. It cuts very long names.
func Path(parent, member string) string {
	return string(appendMember([]byte(parent), member))
}

// Index returns the path of an element: parent[i].
func Index(parent string, i int) string {
	return string(appendIndex([]byte(parent), i))
}

func appendIndex(path []byte, i int) []byte {
	return append(strconv.AppendInt(append(path, '['), int64(i), 10), ']')
}

func appendMember(path []byte, name string) []byte {
	if identifier(name) {
		return append(append(path, '.'), name...)
	}
	path = append(path, '[')
	return append(strconv.AppendQuote(path, fault.ClipTo(name, shownName)), ']')
}

func identifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= shownName
}
