// Package jsontext reads JSON the way a store of record must. What encoding/json
// accepts and silently changes is an error here: members that occur twice,
// bytes that are no UTF-8, halves of a surrogate pair. Numbers keep their
// spelling, and hostile nesting or size costs neither stack nor surprise.
//
// All functions are safe for concurrent use; none changes its input.
package jsontext

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// Limits bound what is read. A field that is 0 or negative sets no limit.
type Limits struct {
	Bytes int // length of the text
	Depth int // arrays and objects inside one another; [] has depth 1
}

// Check reports whether data is exactly one JSON value within lim: RFC 8259
// grammar, UTF-8, every member name once per object (compared after
// unescaping), no lone surrogates. The error is a
// *fault.Error or a *fault.LimitError.
func Check(data []byte, lim Limits) error {
	s := scanner{data: data, lim: lim}
	_, err := s.run()
	return err
}

// Decode checks data and returns its value as nil, bool, string, json.Number
// (as spelled), []any or map[string]any. The value shares no memory with data.
func Decode(data []byte, lim Limits) (any, error) {
	s := scanner{data: data, lim: lim, build: true}
	return s.run()
}

// scanner walks a text once, without recursion. The open arrays and objects
// are its stack.
type scanner struct {
	data   []byte
	pos    int
	lim    Limits
	build  bool // whether to make the values, or only to check
	stack  []frame
	names  [][]byte // member names of the open objects, unescaped
	naming bool     // whether it is in a member name
}

// frame is an open array or object.
type frame struct {
	object bool
	count  int // elements or members before the current one
	base   int // where its names begin in scanner.names
	seen   map[string]struct{}
	list   []any
	dict   map[string]any
}

// manyNames is the number of members from which a map finds duplicates faster
// than comparing names one by one.
const manyNames = 8

func (s *scanner) run() (any, error) {
	if s.lim.Bytes > 0 && len(s.data) > s.lim.Bytes {
		return nil, &fault.LimitError{Path: "$", Name: "Bytes", Limit: s.lim.Bytes, Got: len(s.data)}
	}
	s.space()
	for {
		value, open, err := s.value()
		if err != nil {
			return nil, err
		}
		for !open {
			if len(s.stack) == 0 {
				s.space()
				if s.pos < len(s.data) {
					return nil, s.problem("nothing after the value")
				}
				return value, nil
			}
			if s.build {
				s.add(value)
			}
			if value, open, err = s.next(); err != nil {
				return nil, err
			}
		}
	}
}

// value reads a scalar or an empty array or object, or opens one that is not
// empty and stops at its first element.
func (s *scanner) value() (value any, open bool, err error) {
	switch c := s.peek(); c {
	case '{', '[':
		if err := s.push(c == '{'); err != nil {
			return nil, false, err
		}
		s.pos++
		s.space()
		if s.peek() == c+2 { // '{'+2 is '}', '['+2 is ']'
			s.pos++
			return s.pop(), false, nil
		}
		if c == '{' {
			err = s.name()
		}
		return nil, true, err
	case '"':
		raw, escaped, err := s.string()
		if err == nil && s.build {
			value = text(raw, escaped)
		}
		return value, false, err
	case 't':
		return true, false, s.word("true")
	case 'f':
		return false, false, s.word("false")
	case 'n':
		return nil, false, s.word("null")
	}
	start := s.pos
	if err := s.number(); err != nil {
		return nil, false, err
	}
	if s.build {
		value = json.Number(s.data[start:s.pos])
	}
	return value, false, nil
}

// next reads what follows an element: a comma, and the next one begins, or
// the end, and the container is the value that is complete.
func (s *scanner) next() (value any, open bool, err error) {
	s.space()
	f := &s.stack[len(s.stack)-1]
	switch c := s.peek(); {
	case c == ',':
		s.pos++
		s.space()
		f.count++
		if f.object {
			err = s.name()
		}
		return nil, true, err
	case c == '}' && f.object, c == ']' && !f.object:
		s.pos++
		return s.pop(), false, nil
	case f.object:
		return nil, false, s.problem("',' or '}' after it")
	}
	return nil, false, s.problem("',' or ']' after it")
}

func (s *scanner) push(object bool) error {
	if s.lim.Depth > 0 && len(s.stack) >= s.lim.Depth {
		return &fault.LimitError{Path: s.path(), Name: "Depth", Limit: s.lim.Depth, Got: len(s.stack) + 1}
	}
	f := frame{object: object, base: len(s.names)}
	if s.build && object {
		f.dict = map[string]any{}
	} else if s.build {
		f.list = []any{}
	}
	if s.stack == nil { // most texts need no more
		s.stack = make([]frame, 0, 4)
		s.names = make([][]byte, 0, 8)
	}
	s.stack = append(s.stack, f)
	return nil
}

func (s *scanner) pop() any {
	f := &s.stack[len(s.stack)-1]
	var value any
	if f.object && s.build {
		value = f.dict
	} else if s.build {
		value = f.list
	}
	s.names = s.names[:f.base]
	*f = frame{}
	s.stack = s.stack[:len(s.stack)-1]
	return value
}

func (s *scanner) add(value any) {
	f := &s.stack[len(s.stack)-1]
	if f.object {
		f.dict[string(s.names[len(s.names)-1])] = value
	} else {
		f.list = append(f.list, value)
	}
}

// name reads a member's name up to its value.
func (s *scanner) name() error {
	s.naming = true
	if s.peek() != '"' {
		return s.problem("a member name")
	}
	raw, escaped, err := s.string()
	if err != nil {
		return err
	}
	s.naming = false
	f := &s.stack[len(s.stack)-1]
	name := raw[1 : len(raw)-1]
	if escaped {
		name = appendUnquoted(make([]byte, 0, len(raw)), name)
	}
	double := f.has(s.names[f.base:], name)
	s.names = append(s.names, name)
	if double {
		return &fault.Error{Path: s.path(), Got: "the member occurs twice"}
	}
	s.space()
	if s.peek() != ':' {
		return s.problem("':' after the member name")
	}
	s.pos++
	s.space()
	return nil
}

// has reports whether name is among the names already read, and remembers it.
func (f *frame) has(names [][]byte, name []byte) bool {
	if len(names) < manyNames {
		for _, n := range names {
			if string(n) == string(name) {
				return true
			}
		}
		return false
	}
	if f.seen == nil {
		f.seen = make(map[string]struct{}, 2*manyNames)
		for _, n := range names {
			f.seen[string(n)] = struct{}{}
		}
	}
	if _, ok := f.seen[string(name)]; ok {
		return true
	}
	f.seen[string(name)] = struct{}{}
	return false
}

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// string reads a string and returns it with its quotes.
func (s *scanner) string() (raw []byte, escaped bool, err error) {
	start := s.pos
	data, i := s.data, s.pos+1
	for {
		for i < len(data) && plain[data[i]] {
			i++
		}
		s.pos = i
		if i == len(data) {
			return nil, false, s.problem("the end of the string")
		}
		switch c := data[i]; {
		case c == '"':
			s.pos++
			return data[start:s.pos], escaped, nil
		case c == '\\':
			escaped = true
			n := escape(data[i:])
			if n == 0 {
				return nil, false, s.invalid("invalid escape")
			}
			i += n
		case c < 0x20:
			return nil, false, s.invalid("control character in a string")
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return nil, false, s.invalid("invalid UTF-8")
			}
			i += n
		}
	}
}

// escape returns the length of the escape that b begins with, a surrogate
// pair counting as one, or 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if unescaped(b[1]) == 0 {
			return 0
		}
		return 2
	}
	switch u := hex4(b[2:]); {
	case u < 0, u >= 0xDC00 && u <= 0xDFFF:
		return 0
	case u >= 0xD800 && u < 0xDC00:
		if len(b) < 8 || b[6] != '\\' || b[7] != 'u' {
			return 0
		}
		if low := hex4(b[8:]); low < 0xDC00 || low > 0xDFFF {
			return 0
		}
		return 12
	}
	return 6
}

// unescaped returns what an escape of one letter stands for, or 0.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// hex4 returns the value of four hexadecimal digits, or -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return s.problem("a value")
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return s.problem("a digit")
		}
	}
	if s.peek()|0x20 == 'e' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.problem("a digit")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) word(w string) error {
	if end := s.pos + len(w); end <= len(s.data) && string(s.data[s.pos:end]) == w {
		s.pos = end
		return nil
	}
	return s.problem("a value")
}

// peek returns the next byte, or 0 at the end; a NUL is valid nowhere.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// problem reports text that is not what the grammar wants.
func (s *scanner) problem(want string) error {
	got := "the end of the text"
	if s.pos < len(s.data) {
		got = fmt.Sprintf("other text at byte %d", s.pos)
	}
	return &fault.Error{Path: s.path(), Want: want, Got: got, Offset: s.pos}
}

// invalid reports text that is never valid where the scanner is.
func (s *scanner) invalid(what string) error {
	return &fault.Error{Path: s.path(), Got: fmt.Sprintf("%s at byte %d", what, s.pos), Offset: s.pos}
}

// shownLevels is how much of a path an error shows at either end.
const shownLevels = 32

// path returns where the scanner is: at a value, or while it reads a member
// name at the object.
func (s *scanner) path() string {
	levels := len(s.stack)
	if s.naming {
		levels--
	}
	path := []byte("$")
	for i := 0; i < levels; i++ {
		if levels > 2*shownLevels && i == shownLevels {
			path = append(path, "…"...)
			i = levels - shownLevels
		}
		f := &s.stack[i]
		switch end := s.namesEnd(i); {
		case !f.object:
			path = appendIndex(path, f.count)
		case end > f.base:
			path = appendMember(path, string(s.names[end-1]))
		}
	}
	return string(path)
}

// namesEnd returns where the names of frame i end.
func (s *scanner) namesEnd(i int) int {
	if i+1 < len(s.stack) {
		return s.stack[i+1].base
	}
	return len(s.names)
}

// text returns what a checked string with quotes stands for.
func text(raw []byte, escaped bool) string {
	raw = raw[1 : len(raw)-1]
	if !escaped {
		return string(raw)
	}
	return string(appendUnquoted(make([]byte, 0, len(raw)), raw))
}
