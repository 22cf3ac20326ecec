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

// Get returns the value of a member, or nil if it is missing.
func (o Object) Get(name string) []byte {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
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

// EachObject calls read with each element of a member that is an array of
// objects, and stops at the first error. A member that is null or missing has
// no elements.
func (o Object) EachObject(name string, read func(raw []byte, element Object) error) error {
	if IsNull(o.Get(name)) {
		return nil
	}
	elements, err := o.Elements(name)
	if err != nil {
		return err
	}
	for i, raw := range elements {
		element, err := Members(raw)
		if err == nil {
			err = read(raw, element)
		}
		if err != nil {
			return fault.Under(Index(Path("$", name), i), err)
		}
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
	b := append(make([]byte, 0, size), '{')
	for _, m := range o {
		if m.Value == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(AppendQuote(b, m.Name), ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
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
