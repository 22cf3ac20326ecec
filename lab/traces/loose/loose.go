// Package loose reads JSON whose shape is not known: a part that is missing, or
// is not what the reader expects, is empty.
package loose

import "github.com/agentstate/state/internal/jsontext"

// Members returns the members of an object, none if raw is not an object.
func Members(raw []byte) jsontext.Object {
	list, err := jsontext.Members(raw)
	if err != nil {
		return nil
	}
	return list
}

// Elements returns the elements of an array, none if raw is not an array.
func Elements(raw []byte) [][]byte {
	list, err := jsontext.Elements(raw)
	if err != nil {
		return nil
	}
	return list
}

// Text returns the content of a string, "" for null and a missing value, and
// the JSON of any other value.
func Text(raw []byte) string {
	switch jsontext.Kind(raw) {
	case "nothing", "null":
		return ""
	case "string":
		return jsontext.Unquote(raw)
	}
	return string(raw)
}

// TakeText returns a member that must become a string, and the other members. A
// member that is not a string becomes the string of its JSON and also stays
// among the others.
func TakeText(o jsontext.Object, name string) (taken jsontext.Member, rest jsontext.Object) {
	raw := o.Get(name)
	switch jsontext.Kind(raw) {
	case "nothing", "null", "string":
		return jsontext.Member{Name: name, Value: raw}, o.Without(name)
	}
	return jsontext.Member{Name: name, Value: jsontext.AppendQuote(nil, string(raw))}, o
}

// Has returns a function that reports whether an object has one of the members.
func Has(names ...string) func(jsontext.Object) bool {
	return func(o jsontext.Object) bool {
		for _, name := range names {
			if o.Get(name) != nil {
				return true
			}
		}
		return false
	}
}

// Join returns an object of the members own and then rest, without those that
// are missing. A member of rest whose name is taken gets another name, because
// it must not be lost.
func Join(own, rest jsontext.Object) []byte {
	taken := make(map[string]bool, len(own)+len(rest))
	all := make(jsontext.Object, 0, len(own)+len(rest))
	for _, list := range []jsontext.Object{own, rest} {
		for _, m := range list {
			if m.Value == nil {
				continue
			}
			for taken[m.Name] {
				m.Name = "original_" + m.Name
			}
			taken[m.Name] = true
			all = append(all, m)
		}
	}
	return all.JSON()
}
