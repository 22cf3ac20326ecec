package jsontext

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// Member is one member of an object: its unescaped name and the raw text of
// its value, which is a part of the object's text.
type Member struct {
	Name  string
	Value []byte
}

// Members returns the members of an object in their order. The text must have
// passed [Check]. Of other texts it returns what it finds, or a *fault.Error.
// The values are parts of data.
func Members(data []byte) (Object, error) {
	members := make(Object, 0, 6) // a message has 4 to 6
	err := EachMember(data, func(name []byte, value Span) error {
		members = append(members, Member{Name: string(name), Value: value.In(data)})
		return nil
	})
	return members, err
}

// Elements returns the texts of the elements of an array, which are parts of
// data. The text must have passed [Check], as with [Members].
func Elements(data []byte) ([][]byte, error) {
	var elements [][]byte
	err := EachElement(data, func(element Span) error {
		elements = append(elements, element.In(data))
		return nil
	})
	return elements, err
}

// A Span is the place of a value in a text.
type Span struct{ From, To int }

// Within returns the place in the text that outer is a part of, if s is a place
// in that part.
func (s Span) Within(outer Span) Span { return Span{outer.From + s.From, outer.From + s.To} }

// In returns the value's text.
func (s Span) In(data []byte) []byte { return data[s.From:s.To:s.To] }

// EachMember calls visit for the members of an object in their order, until one
// returns an error. The name is unescaped and valid during the call only. The
// text must have passed [Check], as with [Members].
func EachMember(data []byte, visit func(name []byte, value Span) error) error {
	s := scanner{data: data}
	s.space()
	if s.peek() != '{' {
		return &fault.Error{Path: "$", Want: "object", Got: Kind(data)}
	}
	return s.each('}', func() error {
		if s.peek() != '"' {
			return s.problem("a member name")
		}
		raw, escaped := s.skipString()
		name := raw[1 : len(raw)-1]
		if escaped {
			name = appendUnquoted(nil, name)
		}
		s.colon()
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		return visit(name, Span{start, s.pos})
	})
}

// EachElement calls visit for the elements of an array in their order, until one
// returns an error. The text must have passed [Check], as with [Members].
func EachElement(data []byte, visit func(element Span) error) error {
	s := scanner{data: data}
	s.space()
	if s.peek() != '[' {
		return &fault.Error{Path: "$", Want: "array", Got: Kind(data)}
	}
	return s.each(']', func() error {
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		return visit(Span{start, s.pos})
	})
}

// each calls read at the start of every element of the container at s.pos.
func (s *scanner) each(end byte, read func() error) error {
	s.pos++
	s.space()
	if s.peek() == end {
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case end:
			return nil
		default:
			return s.problem("',' or the end")
		}
	}
}

// skip moves past a checked value.
func (s *scanner) skip() error {
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
				return s.someSince(start)
			}
			if depth--; depth == 0 {
				s.pos++
				return nil
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.someSince(start)
			}
		}
		s.pos++
	}
	if depth > 0 {
		return s.problem("the end of the value")
	}
	return s.someSince(start)
}

// colon moves from a checked member name to its value.
func (s *scanner) colon() {
	s.space()
	s.pos++
	s.space()
}

// skipString moves past a checked string and returns it with its quotes. It
// searches for the quote and the backslash instead of looking at every byte.
func (s *scanner) skipString() (raw []byte, escaped bool) {
	start, quote := s.pos, -1
	for i := s.pos + 1; ; {
		if quote < i {
			n := -1
			if i < len(s.data) {
				n = bytes.IndexByte(s.data[i:], '"')
			}
			if n < 0 { // not checked: make it a string that ends
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

func (s *scanner) someSince(start int) error {
	if s.pos == start {
		return s.problem("a value")
	}
	return nil
}

// Kind names what the text begins like: "object", "array", "string",
// "number", "bool", "null", or "nothing" for a text without a value.
func Kind(data []byte) string {
	s := scanner{data: data}
	s.space()
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

// Unquote returns what a checked JSON string with its quotes stands for.
func Unquote(raw []byte) string {
	return text(raw, bytes.IndexByte(raw, '\\') >= 0)
}

// appendUnquoted appends the content of a checked string without its quotes.
func appendUnquoted(dst, content []byte) []byte {
	for {
		i := bytes.IndexByte(content, '\\')
		if i < 0 {
			return append(dst, content...)
		}
		dst = append(dst, content[:i]...)
		content = content[i:]
		n := escape(content)
		switch n {
		case 0: // not checked; kept as it is
			return append(dst, content...)
		case 2:
			dst = append(dst, unescaped(content[1]))
		case 6:
			dst = utf8.AppendRune(dst, hex4(content[2:]))
		case 12:
			dst = utf8.AppendRune(dst, utf16.DecodeRune(hex4(content[2:]), hex4(content[8:])))
		}
		content = content[n:]
	}
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Only what JSON forbids is escaped;
// invalid UTF-8 is replaced by U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; ; {
		for i < len(s) && plain[s[i]] {
			i++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[done:i]...)
				dst = append(dst, "\uFFFD"...)
				done = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[done:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// AppendCompact appends a checked text without the space between its tokens. The
// spelling of numbers and strings and the order of members stay.
func AppendCompact(dst, src []byte) []byte {
	s := scanner{data: src}
	done := 0
	for s.skipToSpace() {
		dst = append(dst, src[done:s.pos]...)
		s.space()
		done = s.pos
	}
	return append(dst, src[done:]...)
}

// IsCompact reports whether a checked text has no space between its tokens.
func IsCompact(data []byte) bool {
	s := scanner{data: data}
	return !s.skipToSpace()
}

// skipToSpace moves to the next space between the tokens of a checked text, and
// reports whether there is one.
func (s *scanner) skipToSpace() bool {
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

// shownName is how much of a member name a path shows.
const shownName = 128

// Path returns the path of a member: parent.name, or parent["odd name"] if
// the name is no identifier. Of a very long name only the beginning is shown.
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
	if len(name) > shownName {
		cut := shownName
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	return append(strconv.AppendQuote(path, name), ']')
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
