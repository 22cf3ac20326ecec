package codec

import (
	"slices"

	"github.com/agentstate/state/internal/jsontext"
)

// Growing is a JSON value as far as it has come in a stream: nothing, a value
// that came whole, a text, a list or an object. A value that came whole becomes
// a text, a list or an object of the same content as soon as it grows.
type Growing struct {
	whole    []byte
	text     []byte
	elements []*Growing
	names    []string // of the members, in the order in which they began
	members  map[string]*Growing
}

// NewGrowing returns an object with the members.
func NewGrowing(members jsontext.Object) *Growing {
	g := &Growing{members: make(map[string]*Growing, len(members))}
	for _, m := range members {
		g.Member(m.Name).Set(m.Value)
	}
	return g
}

// IsEmpty reports whether nothing has come.
func (g *Growing) IsEmpty() bool {
	return !g.IsWhole() && !g.IsText() && !g.IsList() && !g.IsObject()
}

// IsWhole reports whether the value came whole and has not grown.
func (g *Growing) IsWhole() bool { return g.whole != nil }

// IsText reports whether it is a text that has grown.
func (g *Growing) IsText() bool { return g.text != nil }

// IsList reports whether it is a list that has grown.
func (g *Growing) IsList() bool { return g.elements != nil }

// IsObject reports whether it is an object that has grown.
func (g *Growing) IsObject() bool { return g.members != nil }

// Len returns the number of elements of a list.
func (g *Growing) Len() int { return len(g.elements) }

// Set makes it a value that came whole.
func (g *Growing) Set(value []byte) { *g = Growing{whole: value} }

// SetMembers sets members of an object, except those of the names. A member
// that has a value does not become null.
func (g *Growing) SetMembers(members jsontext.Object, except ...string) {
	for _, m := range members {
		if slices.Contains(except, m.Name) {
			continue
		}
		if member := g.Member(m.Name); member.IsEmpty() || string(m.Value) != "null" {
			member.Set(m.Value)
		}
	}
}

// AsObject makes it an object. A value of another kind becomes an object
// without members.
func (g *Growing) AsObject() *Growing {
	if !g.IsObject() {
		members, _ := jsontext.Members(g.whole) // none if it is not an object
		*g = *NewGrowing(members)
	}
	return g
}

// Member returns a member of the object that AsObject makes, a new one if there
// is none.
func (g *Growing) Member(name string) *Growing {
	member := g.AsObject().members[name]
	if member == nil {
		member = &Growing{}
		g.names, g.members[name] = append(g.names, name), member
	}
	return member
}

// AsList makes it a list. A value of another kind becomes a list without
// elements.
func (g *Growing) AsList() *Growing {
	if !g.IsList() {
		elements, _ := jsontext.Elements(g.whole) // none if it is not an array
		*g = Growing{elements: make([]*Growing, 0, len(elements))}
		g.Append(elements...)
	}
	return g
}

// Element returns an element of the list that AsList makes, a new one if there
// is none. Elements that are skipped are nil. The caller limits i.
func (g *Growing) Element(i int) *Growing {
	g.AsList()
	for len(g.elements) <= i {
		g.elements = append(g.elements, nil)
	}
	if g.elements[i] == nil {
		g.elements[i] = &Growing{}
	}
	return g.elements[i]
}

// Append appends elements that came whole to the list that AsList makes.
func (g *Growing) Append(elements ...[]byte) {
	g.AsList()
	for _, element := range elements {
		g.elements = append(g.elements, &Growing{whole: element})
	}
}

// AppendText appends to a text. A value of another kind becomes an empty text
// first.
func (g *Growing) AppendText(text string) {
	if !g.IsText() {
		begin := []byte{}
		if jsontext.Kind(g.whole) == "string" {
			begin = append(begin, jsontext.Unquote(g.whole)...)
		}
		*g = Growing{text: begin}
	}
	g.text = append(g.text, text...)
}

// JSON returns the value as if it had come whole. Elements that were skipped
// are left out, and so are members that have not come. Another value that has
// not come is null.
func (g *Growing) JSON() []byte {
	switch {
	case g.IsWhole():
		return g.whole
	case g.IsText():
		return jsontext.AppendQuote(nil, jsontext.Whole(string(g.text)))
	case g.IsList():
		elements := make([][]byte, 0, len(g.elements))
		for _, element := range g.elements {
			if element != nil {
				elements = append(elements, element.JSON())
			}
		}
		return jsontext.Array(elements)
	case g.IsObject():
		return g.Object().JSON()
	}
	return []byte("null")
}

// Object returns the members of an object.
func (g *Growing) Object() jsontext.Object {
	object := make(jsontext.Object, 0, len(g.names))
	for _, name := range g.names {
		if m := g.members[name]; !m.IsEmpty() {
			object = append(object, jsontext.Member{Name: name, Value: m.JSON()})
		}
	}
	return object
}
