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
