package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// members returns the members of an object, none if raw is no object.
func members(raw []byte) jsontext.Object {
	list, err := jsontext.Members(raw)
	if err != nil {
		return nil
	}
	return list
}

// elements returns the elements of an array, none if raw is no array.
func elements(raw []byte) [][]byte {
	list, err := jsontext.Elements(raw)
	if err != nil {
		return nil
	}
	return list
}

// text returns the content of a string, "" for null and what is missing, and
// the JSON of anything else.
func text(raw []byte) string {
	switch jsontext.Kind(raw) {
	case "nothing", "null":
		return ""
	case "string":
		return jsontext.Unquote(raw)
	}
	return string(raw)
}

// takeText returns a member for which a message wants a string, and the others.
// If it is no string, its JSON becomes one, and it stays among the others.
func takeText(o jsontext.Object, name string) (taken jsontext.Member, rest jsontext.Object) {
	raw := o.Get(name)
	switch jsontext.Kind(raw) {
	case "nothing", "null", "string":
		return jsontext.Member{Name: name, Value: raw}, o.Without(name)
	}
	return jsontext.Member{Name: name, Value: jsontext.AppendQuote(nil, string(raw))}, o
}

// object returns an object of its own members and then of the rest, members of
// the file under their names there. If a name is taken, the file's member gets
// another: it must not be lost.
func object(own, rest jsontext.Object) []byte {
	taken := make(map[string]bool, len(own)+len(rest))
	all := make(jsontext.Object, 0, len(own)+len(rest))
	for _, list := range []jsontext.Object{own, rest} {
		for _, m := range list {
			if m.Value == nil { // missing
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

// message makes a message by decoding it, not with a constructor: so it keeps
// null apart from missing, numbers as spelled, and all members of the file.
func message(typ string, own, rest jsontext.Object) (state.Message, error) {
	with := func(typ string) []byte {
		return object(append(jsontext.Object{}.WithString("type", typ), own...), rest)
	}
	m, err := state.DecodeMessage(with(typ))
	if err != nil && typ == "text" {
		// Content of a shape that a text message does not have passes through
		// in a message of a type of its own.
		return state.DecodeMessage(with("other"))
	}
	return m, err
}

// inputDepth is how deep arguments may nest if they are to be JSON in a message
// and not text.
const inputDepth = 56

// input returns the arguments of a call: an object as it is, and so one that is
// written as a string. Any other string stays a string.
func input(arguments []byte) []byte {
	if jsontext.Kind(arguments) != "string" {
		return arguments
	}
	inner := []byte(jsontext.Unquote(arguments))
	if jsontext.Kind(inner) != "object" || jsontext.Check(inner, jsontext.Limits{Depth: inputDepth}) != nil {
		return arguments
	}
	return inner
}
