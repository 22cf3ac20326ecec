package jsontext

import (
	"bytes"
	"fmt"

	"github.com/agentstate/state/internal/fault"
)

// A cursor moves through a text that has been checked. It looks only at the
// bytes that it needs to find the next part.
type cursor struct {
	data   []byte
	pos    int
	spaced bool // whether it has skipped space
}

// peek returns the next byte, or 0 at the end. No rule of JSON allows a NUL, so
// that callers need not tell the two apart.
func (s *cursor) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *cursor) skipSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
			s.spaced = true
		default:
			return
		}
	}
}

// eachPart calls read at the start of every element or member of the container
// that begins at the cursor.
func (s *cursor) eachPart(end byte, read func() error) error {
	s.pos++
	s.skipSpace()
	if s.peek() == end {
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		s.skipSpace()
		switch s.peek() {
		case ',':
			s.pos++
			s.skipSpace()
		case end:
			return nil
		default:
			return s.problem("',' or the end")
		}
	}
}

// eachMember calls visit for every member of the object that begins at the
// cursor, and moves past the object.
func (s *cursor) eachMember(visit func(name []byte, value Span) error) error {
	if s.peek() != '{' {
		return &fault.Error{Path: "$", Want: "object", Got: Kind(s.data[s.pos:])}
	}
	err := s.eachPart('}', func() error {
		if s.peek() != '"' {
			return s.problem("a member name")
		}
		raw, escaped := s.skipString()
		name := raw[1 : len(raw)-1]
		if escaped {
			name = appendUnquoted(nil, name)
		}
		s.skipColon()
		start := s.pos
		if err := s.skipValue(); err != nil {
			return err
		}
		return visit(name, Span{start, s.pos})
	})
	s.pos++
	return err
}

// skipValue moves past a value.
func (s *cursor) skipValue() error {
	switch s.peek() {
	case '"':
		s.skipString()
		return nil
	case '{', '[':
		return s.skipContainer()
	}
	start := s.pos
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return s.checkMoved(start)
		}
		s.pos++
	}
	return s.checkMoved(start)
}

// skipContainer moves past an array or an object.
func (s *cursor) skipContainer() error {
	data, depth := s.data, 0
	for i := s.pos; i < len(data); i++ {
		switch data[i] {
		case '"':
			s.pos = i
			s.skipString()
			i = s.pos - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos = i + 1
				return nil
			}
		}
	}
	s.pos = len(data)
	return s.problem("the end of the value")
}

// skipColon moves from a member's name to its value.
func (s *cursor) skipColon() {
	s.skipSpace()
	s.pos++
	s.skipSpace()
}

// shortString is the length up to which a loop finds the end of a string faster
// than a search does.
const shortString = 16

// skipString moves past a string and returns it with its quotes. In a long one
// it searches for the quote and the backslash, which is faster than to look at
// every byte.
func (s *cursor) skipString() (raw []byte, escaped bool) {
	start, i, quote := s.pos, s.pos+1, -1
	for end := min(i+shortString, len(s.data)); i < end && s.data[i] != '\\'; i++ {
		if s.data[i] == '"' {
			s.pos = i + 1
			return s.data[start:s.pos], false
		}
	}
	for {
		if quote < i {
			n := -1
			if i < len(s.data) {
				n = bytes.IndexByte(s.data[i:], '"')
			}
			if n < 0 { // the text was not checked: return some string
				s.pos = len(s.data)
				return []byte(`""`), false
			}
			quote = i + n
		}
		n := bytes.IndexByte(s.data[i:quote], '\\')
		if n < 0 {
			s.pos = quote + 1
			return s.data[start:s.pos], escaped
		}
		escaped = true
		i += n + 2
	}
}

// checkMoved returns an error unless the cursor has moved from start.
func (s *cursor) checkMoved(start int) error {
	if s.pos == start {
		return s.problem("a value")
	}
	return nil
}

// problem reports text that is not what the grammar wants.
func (s *cursor) problem(want string) error { return s.problemAt("$", want) }

func (s *cursor) problemAt(path, want string) error {
	got := "the end of the text"
	if s.pos < len(s.data) {
		got = fmt.Sprintf("other text at byte %d", s.pos)
	}
	return &fault.Error{Path: path, Want: want, Got: got, Offset: s.pos}
}
