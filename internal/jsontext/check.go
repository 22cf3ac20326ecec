// Package jsontext reads JSON for a store of record. It refuses what
// encoding/json accepts and silently changes: members that occur twice, invalid
// UTF-8, halves of a surrogate pair. Numbers keep their spelling. Deep nesting
// takes no stack.
//
// [Check] and [Decode] read any text. The other functions read texts that have
// passed Check, which is faster: they find a value's end by its brackets and
// quotes. On other texts they return an error or a part of the text, but they
// do not panic. The package uses the words of encoding/json/jsontext, which may
// replace most of it when it is part of Go.
//
// All functions are safe for concurrent use. They do not change their input.
package jsontext

import (
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// Limits bound what is read. A field that is 0 or negative sets no limit.
type Limits struct {
	Bytes int // length of the text
	Depth int // arrays and objects inside one another; [] has depth 1

	// Halves says that strings may have halves of surrogate pairs and bytes that
	// are not UTF-8, as the pieces of a text that was cut anywhere. [Unquote]
	// returns them, and [Whole] makes a text of what they make together.
	Halves bool
}

// Check returns nil if data is exactly one JSON value within the limits: the
// grammar of RFC 8259, UTF-8, every member name once per object (compared after
// unescaping), no lone surrogates. The error is a *fault.Error or a
// *fault.LimitError.
func Check(data []byte, limits Limits) error {
	s := newChecker(data)
	defer s.release()
	s.limits = limits
	_, err := s.readText()
	return err
}

// CheckMembers is [Check] without limits, and reads members in the same pass. It
// calls visit for each member that is in at most so many levels of arrays and
// objects: those of the value itself have level 1. A member comes after those
// of its value. The name is unescaped and valid during the call only.
// CheckMembers reports whether the text is compact: whether it has no space
// between its tokens.
func CheckMembers(
	data []byte, levels int, visit func(level int, name []byte, value Span),
) (compact bool, err error) {
	s := newChecker(data)
	defer s.release()
	s.levels, s.visit = levels, visit
	_, err = s.readText()
	return !s.spaced, err
}

// Checker checks many texts with the memory that one takes. The zero Checker is
// ready.
type Checker struct{ checker checker }

// Check is the function [Check].
func (c *Checker) Check(data []byte, limits Limits) error {
	c.checker = checker{
		cursor: cursor{data: data}, limits: limits, stack: c.checker.stack[:0], names: c.checker.names[:0],
	}
	_, err := c.checker.readText()
	c.checker.data = nil
	return err
}

// IsCompact reports whether the text that was checked last has no space between
// its tokens.
func (c *Checker) IsCompact() bool { return !c.checker.spaced }

// Decode checks data and returns its value as nil, bool, string, json.Number
// (as spelled), []any or map[string]any. The value shares no memory with data.
func Decode(data []byte, limits Limits) (any, error) {
	s := checker{cursor: cursor{data: data}, limits: limits, build: true}
	return s.readText()
}

// A checker reads a text once, without recursion: the depth of a text is chosen
// by its author. The open arrays and objects are its stack.
type checker struct {
	cursor
	limits Limits
	build  bool // whether to make the values, or only to check
	stack  []frame
	values []container // of the stack, if build
	names  [][]byte    // member names of the open objects, unescaped
	naming bool        // whether it is in a member name
	levels int         // of the members for which visit is called
	visit  func(level int, name []byte, value Span)
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

// newChecker returns a checker of a text, with the memory of an earlier one.
func newChecker(data []byte) *checker {
	s := checkers.Get().(*checker)
	s.data = data
	return s
}

// release gives the memory of a checker back, unless a text has made it large.
func (s *checker) release() {
	const most = 64
	if cap(s.stack) > most || cap(s.names) > most {
		return
	}
	clear(s.stack[:cap(s.stack)])
	clear(s.names[:cap(s.names)]) // parts of the text
	*s = checker{stack: s.stack[:0], names: s.names[:0]}
	checkers.Put(s)
}

// A frame is an open array or object.
type frame struct {
	object bool
	count  int // elements or members before the current one
	base   int // where its names begin in checker.names
	start  int // where the value of the current part begins, if it is visited
	sorted int // names so far, if each is greater than the one before
	seen   map[string]struct{}
}

// A container is the value of an open array or object.
type container struct {
	list []any
	dict map[string]any
}

// manyNames is the number of members from which a map finds duplicates faster
// than comparing names one by one.
const manyNames = 16

func (s *checker) readText() (any, error) {
	if s.limits.Bytes > 0 && len(s.data) > s.limits.Bytes {
		return nil, &fault.LimitError{Path: "$", Name: "Bytes", Limit: s.limits.Bytes, Got: len(s.data)}
	}
	s.skipSpace()
	for {
		if level := len(s.stack); level > 0 && level <= s.levels {
			s.stack[level-1].start = s.pos
		}
		value, open, err := s.startValue()
		if err != nil {
			return nil, err
		}
		for !open {
			if len(s.stack) == 0 {
				s.skipSpace()
				if s.pos < len(s.data) {
					return nil, s.problem("nothing after the value")
				}
				return value, nil
			}
			if s.build {
				s.addPart(value)
			}
			if level := len(s.stack); level <= s.levels && s.stack[level-1].object {
				s.visit(level, s.names[len(s.names)-1], Span{s.stack[level-1].start, s.pos})
			}
			if value, open, err = s.readNext(); err != nil {
				return nil, err
			}
		}
	}
}

// startValue reads a scalar or an empty container, or opens a container that is
// not empty and stops at its first part.
func (s *checker) startValue() (value any, open bool, err error) {
	switch c := s.peek(); c {
	case '{', '[':
		if err := s.openContainer(c == '{'); err != nil {
			return nil, false, err
		}
		s.pos++
		s.skipSpace()
		if s.peek() == c+2 { // '{'+2 is '}', '['+2 is ']'
			s.pos++
			return s.closeContainer(), false, nil
		}
		if c == '{' {
			err = s.readName()
		}
		return nil, true, err
	case '"':
		raw, escaped, err := s.readString()
		if err == nil && s.build {
			value = unquoteRaw(raw, escaped)
		}
		return value, false, err
	case 't':
		return true, false, s.readWord("true")
	case 'f':
		return false, false, s.readWord("false")
	case 'n':
		return nil, false, s.readWord("null")
	}
	start := s.pos
	if err := s.readNumber(); err != nil {
		return nil, false, err
	}
	if s.build {
		value = json.Number(s.data[start:s.pos])
	}
	return value, false, nil
}

// readNext reads what follows a part of a container: a comma and the start of
// the next part, or the end, which makes the container the value that is
// complete.
func (s *checker) readNext() (value any, open bool, err error) {
	s.skipSpace()
	f := &s.stack[len(s.stack)-1]
	switch c := s.peek(); {
	case c == ',':
		s.pos++
		s.skipSpace()
		f.count++
		if f.object {
			err = s.readName()
		}
		return nil, true, err
	case c == '}' && f.object, c == ']' && !f.object:
		s.pos++
		return s.closeContainer(), false, nil
	case f.object:
		return nil, false, s.problem("',' or '}' after it")
	}
	return nil, false, s.problem("',' or ']' after it")
}

func (s *checker) openContainer(object bool) error {
	if s.limits.Depth > 0 && len(s.stack) >= s.limits.Depth {
		return &fault.LimitError{Path: s.path(), Name: "Depth", Limit: s.limits.Depth, Got: len(s.stack) + 1}
	}
	f := frame{object: object, base: len(s.names)}
	if s.build && object {
		s.values = append(s.values, container{dict: map[string]any{}})
	} else if s.build {
		s.values = append(s.values, container{list: []any{}})
	}
	if s.stack == nil { // the sizes that most texts need
		s.stack = make([]frame, 0, 4)
		s.names = make([][]byte, 0, 8)
	}
	s.stack = append(s.stack, f)
	return nil
}

func (s *checker) closeContainer() any {
	f := &s.stack[len(s.stack)-1]
	var value any
	if s.build {
		last := len(s.values) - 1
		if value = s.values[last].list; f.object {
			value = s.values[last].dict
		}
		s.values[last] = container{}
		s.values = s.values[:last]
	}
	s.names = s.names[:f.base]
	*f = frame{}
	s.stack = s.stack[:len(s.stack)-1]
	return value
}

func (s *checker) addPart(value any) {
	if c := &s.values[len(s.values)-1]; c.dict != nil {
		c.dict[string(s.names[len(s.names)-1])] = value
	} else {
		c.list = append(c.list, value)
	}
}

// readName reads a member's name up to its value.
func (s *checker) readName() error {
	s.naming = true
	if s.peek() != '"' {
		return s.problem("a member name")
	}
	raw, escaped, err := s.readString()
	if err != nil {
		return err
	}
	s.naming = false
	f := &s.stack[len(s.stack)-1]
	name := raw[1 : len(raw)-1]
	if escaped {
		name = appendUnquoted(make([]byte, 0, len(raw)), name)
	}
	double := f.noteName(s.names[f.base:], name)
	s.names = append(s.names, name)
	if double {
		return &fault.Error{Path: s.path(), Got: "the member occurs twice"}
	}
	s.skipSpace()
	if s.peek() != ':' {
		return s.problem("':' after the member name")
	}
	s.pos++
	s.skipSpace()
	return nil
}

// noteName reports whether a name is among those that the frame has already.
// Names in increasing order, as most programs write them, are compared with the
// last one only.
func (f *frame) noteName(names [][]byte, name []byte) bool {
	if n := len(names); f.sorted == n && (n == 0 || string(names[n-1]) < string(name)) {
		f.sorted++
		return false
	}
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

// readString reads a string and returns it with its quotes.
func (s *checker) readString() (raw []byte, escaped bool, err error) {
	start := s.pos
	data, i := s.data, s.pos+1
	for {
		for i < len(data) && plainBytes[data[i]] {
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
			n := escapeLen(data[i:])
			if n == 0 && s.limits.Halves && halfAt(data[i:]) >= 0 {
				n = halfLen
			}
			if n == 0 {
				return nil, false, s.invalid("invalid escape")
			}
			i += n
		case c < 0x20:
			return nil, false, s.invalid("control character in a string")
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 && !s.limits.Halves {
				return nil, false, s.invalid("invalid UTF-8")
			}
			i += n
		}
	}
}

func (s *checker) readNumber() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.readDigits() {
		return s.problem("a value")
	}
	if s.peek() == '.' {
		s.pos++
		if !s.readDigits() {
			return s.problem("a digit")
		}
	}
	if s.peek()|0x20 == 'e' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.readDigits() {
			return s.problem("a digit")
		}
	}
	return nil
}

func (s *checker) readDigits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > start
}

func (s *checker) readWord(w string) error {
	if end := s.pos + len(w); end <= len(s.data) && string(s.data[s.pos:end]) == w {
		s.pos = end
		return nil
	}
	return s.problem("a value")
}

// problem reports text that is not what the grammar wants.
func (s *checker) problem(want string) error { return s.problemAt(s.path(), want) }

// invalid reports text that no grammar rule allows in a string.
func (s *checker) invalid(what string) error {
	return &fault.Error{Path: s.path(), Got: fmt.Sprintf("%s at byte %d", what, s.pos), Offset: s.pos}
}

// shownLevels is the number of levels that an error shows at either end of a
// path.
const shownLevels = 32

// path returns the place of the value that is being read. While a member's name
// is being read, that is the object.
func (s *checker) path() string {
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
func (s *checker) namesEnd(i int) int {
	if i+1 < len(s.stack) {
		return s.stack[i+1].base
	}
	return len(s.names)
}
