package jsontext

import (
	"bytes"
	"fmt"

	"github.com/agentstate/state/internal/fault"
)

// A cursor moves through a text that has been checked. It looks only at the
// bytes that it needs to find the next part.
type cursor struct {
	data []byte
	pos  int
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

// skipValue moves past a value.
func (s *cursor) skipValue() error {
	start, depth := s.pos, 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
			if depth == 0 {
				return nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what the value is in
				return s.checkMoved(start)
			}
			if depth--; depth == 0 {
				s.pos++
				return nil
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.checkMoved(start)
			}
		}
		s.pos++
	}
	if depth > 0 {
		return s.problem("the end of the value")
	}
	return s.checkMoved(start)
}

// skipColon moves from a member's name to its value.
func (s *cursor) skipColon() {
	s.skipSpace()
	s.pos++
	s.skipSpace()
}

// skipString moves past a string and returns it with its quotes. It searches
// for the quote and the backslash, which is faster than to look at every byte.
func (s *cursor) skipString() (raw []byte, escaped bool) {
	start, quote := s.pos, -1
	for i := s.pos + 1; ; {
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
