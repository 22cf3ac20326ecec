package jsontext

import (
	"strings"

	"github.com/agentstate/state/internal/fault"
)

// A Member is a member of an object: its unescaped name and the text of its
// value, which is a part of the object's text.
type Member struct {
	Name  string
	Value []byte
}

// An Object is the members of an object in their order. The zero value has
// none.
type Object []Member

// Members returns the members of an object in their order. The text must have
// passed [Check]. Of other texts it returns what it finds, or a *fault.Error.
// The values are parts of data.
func Members(data []byte) (Object, error) {
	s := cursor{data: data}
	s.skipSpace()
	return s.readObject(nil)
}

// readObject reads the members of the object that begins at the cursor, into the
// memory of dst if it is large enough.
func (s *cursor) readObject(dst Object) (Object, error) {
	// The places of most objects fit in the arrays. The names share one string.
	values, ends, names := make([]Span, 0, 8), make([]int, 0, 8), make([]byte, 0, 64)
	err := s.eachMember(func(name []byte, value Span) error {
		names = append(names, name...)
		values, ends = append(values, value), append(ends, len(names))
		return nil
	})
	if dst = dst[:0]; dst == nil || cap(dst) < len(values) { // never nil: an object may be empty
		dst = make(Object, 0, len(values))
	}
	shared, start := string(names), 0
	for i, value := range values {
		dst = append(dst, Member{Name: shared[start:ends[i]], Value: value.In(s.data)})
		start = ends[i]
	}
	return dst, err
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

// Get returns the value of a member, or nil if it is missing.
func (o Object) Get(name string) []byte {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Lookup returns the function Get for a caller that asks for many names. Get
// looks at each member.
func (o Object) Lookup() func(name string) []byte {
	if len(o) <= 16 {
		return o.Get
	}
	values := make(map[string][]byte, len(o))
	for _, m := range o {
		if _, again := values[m.Name]; !again { // unchecked text may have a name twice
			values[m.Name] = m.Value
		}
	}
	return func(name string) []byte { return values[name] }
}

// String returns the content of a member that is a string, and "" otherwise.
func (o Object) String(name string) string {
	value := o.Get(name)
	if Kind(value) != "string" {
		return ""
	}
	return Unquote(value)
}

// Bool reports whether a member is true.
func (o Object) Bool(name string) bool { return string(o.Get(name)) == "true" }

// Object returns the members of a member that is an object, and nil otherwise.
func (o Object) Object(name string) Object {
	value := o.Get(name)
	if Kind(value) != "object" {
		return nil
	}
	members, _ := Members(value) // checked text
	return members
}

// Elements returns the elements of a member that must be an array.
func (o Object) Elements(name string) ([][]byte, error) {
	elements, err := Elements(o.Get(name))
	if err != nil {
		return nil, fault.Under(Path("$", name), err)
	}
	return elements, nil
}

// Members returns the members of a member that must be an object.
func (o Object) Members(name string) (Object, error) {
	members, err := Members(o.Get(name))
	if err != nil {
		return nil, fault.Under(Path("$", name), err)
	}
	return members, nil
}

// EachObject calls read with each element of an array of objects, and stops at
// the first error. The text must have passed [Check]. The members of an element,
// but not their names and values, are valid during the call only.
func EachObject(data []byte, read func(i int, raw []byte, element Object) error) error {
	s, i := cursor{data: data}, 0
	s.skipSpace()
	if s.peek() != '[' {
		return &fault.Error{Path: "$", Want: "array", Got: Kind(data)}
	}
	var element Object
	return s.eachPart(']', func() (err error) {
		start := s.pos
		if element, err = s.readObject(element); err != nil {
			return fault.Under(Index("$", i), err)
		}
		i++
		return read(i-1, Span{start, s.pos}.In(data), element)
	})
}

// EachObject is the function [EachObject] for a member. A member that is null or
// missing has no elements. The path of an error that read returns begins at the
// element.
func (o Object) EachObject(name string, read func(raw []byte, element Object) error) error {
	array := o.Get(name)
	if IsNull(array) {
		return nil
	}
	err := EachObject(array, func(i int, raw []byte, element Object) error {
		if err := read(raw, element); err != nil {
			return fault.Under(Index("$", i), err)
		}
		return nil
	})
	if err != nil {
		return fault.Under(Path("$", name), err)
	}
	return nil
}

// Want returns a *fault.Error unless the member is of one of the kinds, of
// which "nothing" is a missing member.
func (o Object) Want(name string, kinds ...string) error {
	got := Kind(o.Get(name))
	for _, kind := range kinds {
		if kind == got {
			return nil
		}
	}
	return &fault.Error{Path: Path("$", name), Want: strings.Join(kinds, " or "), Got: got}
}

// IsNull reports whether a value is missing or null.
func IsNull(value []byte) bool {
	kind := Kind(value)
	return kind == "nothing" || kind == "null"
}

// Without returns a new Object without these members.
func (o Object) Without(names ...string) Object {
	kept := make(Object, 0, len(o))
next:
	for _, m := range o {
		for _, name := range names {
			if m.Name == name {
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// With returns a new Object with the member set to value: in its place, or at
// the end if it is missing. It returns o itself if value is nil.
func (o Object) With(name string, value []byte) Object {
	if value == nil {
		return o
	}
	for i, m := range o {
		if m.Name == name {
			set := append(Object(nil), o...)
			set[i].Value = value
			return set
		}
	}
	return append(o[:len(o):len(o)], Member{Name: name, Value: value})
}

// WithString is With for a text.
func (o Object) WithString(name, text string) Object {
	return o.With(name, AppendQuote(nil, text))
}

// JSON returns the object as text. Members without a value are left out.
func (o Object) JSON() []byte {
	size := 2
	for _, m := range o {
		size += len(m.Name) + len(m.Value) + 4
	}
	return o.AppendJSON(make([]byte, 0, size))
}

// AppendJSON appends what [Object.JSON] returns.
func (o Object) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for _, m := range o {
		dst = AppendMember(dst, m.Name, m.Value)
	}
	return append(dst, '}')
}

// AppendMember appends a member to an object whose last bracket is missing. It
// appends nothing if value is nil.
func AppendMember(dst []byte, name string, value []byte) []byte {
	if value == nil {
		return dst
	}
	return append(AppendName(dst, name), value...)
}

// AppendName appends what stands in front of the value of a member, as
// [AppendMember] does.
func AppendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' { // which no value ends with
		dst = append(dst, ',')
	}
	return append(AppendQuote(dst, name), ':')
}

// Array returns an array of the elements as text.
func Array(elements [][]byte) []byte {
	size := 2
	for _, element := range elements {
		size += len(element) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']')
}
