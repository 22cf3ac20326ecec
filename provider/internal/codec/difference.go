package codec

import (
	"bytes"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// A decoder derives messages from what a provider sends, and an encoder derives
// from messages the plainest JSON that says the same. The message keeps the
// difference between the two, and the encoder of the same format restores it.
// The round trip is therefore exact whatever the provider sends: unknown
// members, null in place of a missing member, other spellings.
//
// A difference is an object with these members.
const (
	more    = "more"    // an object of the members that differ or are added
	without = "without" // an array of the names of missing members
)

// Difference returns what [Restore] needs to make sent of plain. It has no
// members if the two are equal.
func Difference(sent, plain jsontext.Object) jsontext.Object {
	var added jsontext.Object
	var missing [][]byte
	for _, m := range sent {
		if value := plain.Get(m.Name); value == nil || !EqualJSON(value, m.Value) {
			added = append(added, m)
		}
	}
	for _, m := range plain {
		if m.Value != nil && sent.Get(m.Name) == nil {
			missing = append(missing, jsontext.AppendQuote(nil, m.Name))
		}
	}
	var kept jsontext.Object
	if added != nil {
		kept = kept.With(more, added.JSON())
	}
	if missing != nil {
		kept = kept.With(without, jsontext.Array(missing))
	}
	return kept
}

// Restore returns plain with the difference that was kept. The members named in
// changed stay as plain has them: what was kept of them no longer holds,
// because the message says something else since.
func Restore(plain, kept jsontext.Object, changed ...string) jsontext.Object {
	var added jsontext.Object
	for _, m := range kept.Object(more) {
		if !slices.Contains(changed, m.Name) {
			added = append(added, m)
		}
	}
	missing := missingNames(kept)
	restored := make(jsontext.Object, 0, len(plain)+len(added))
	for _, m := range plain {
		if value := added.Get(m.Name); value != nil {
			m.Value = value
		} else if slices.Contains(missing, m.Name) && !slices.Contains(changed, m.Name) {
			continue
		}
		restored = append(restored, m)
	}
	for _, m := range added {
		if plain.Get(m.Name) == nil {
			restored = append(restored, m)
		}
	}
	return restored
}

// SentMember returns the value of a member as it was sent, nil if it was
// missing. It returns false if the member does not differ from the plain one.
func SentMember(kept jsontext.Object, name string) (value []byte, differs bool) {
	value = kept.Object(more).Get(name)
	return value, value != nil || slices.Contains(missingNames(kept), name)
}

func missingNames(kept jsontext.Object) []string {
	if kept.Get(without) == nil {
		return nil
	}
	elements, _ := kept.Elements(without) // none if another program wrote the member
	names := make([]string, 0, len(elements))
	for _, element := range elements {
		if jsontext.Kind(element) == "string" {
			names = append(names, jsontext.Unquote(element))
		}
	}
	return names
}

// EqualJSON reports whether two checked texts have the same value.
func EqualJSON(a, b []byte) bool {
	return bytes.Equal(a, b) || state.JSON(a).Equal(state.JSON(b))
}

// ArgumentsInput returns the input of a call whose arguments are written as a
// string: an object, the string itself if its text is not an object, nil if the
// text is empty.
func ArgumentsInput(arguments []byte) []byte {
	if jsontext.Kind(arguments) != "string" {
		return arguments
	}
	inner := []byte(jsontext.Unquote(arguments))
	if len(inner) == 0 {
		return nil
	}
	limits := jsontext.Limits{Depth: InputDepth}
	if jsontext.Kind(inner) != "object" || jsontext.Check(inner, limits) != nil {
		return arguments
	}
	return jsontext.AppendCompact(inner[:0], inner)
}

// InputArguments returns the input of a call as a JSON string of its text. A
// missing input becomes an object without members.
func InputArguments(input state.JSON) []byte {
	if input == "" || input == "null" {
		return []byte(`"{}"`)
	}
	return jsontext.AppendQuote(nil, input.Text())
}

// InputObject returns the input of a call for formats that take nothing but an
// object: a missing input becomes one without members, and any other value the
// member arguments of one.
func InputObject(input []byte) []byte {
	switch jsontext.Kind(input) {
	case "object":
		return input
	case "nothing", "null":
		return []byte("{}")
	}
	return jsontext.Object{{Name: "arguments", Value: input}}.JSON()
}

// ValueOrNil returns a value, nil if it is missing.
func ValueOrNil(value state.JSON) []byte {
	if value == "" {
		return nil
	}
	return []byte(value)
}
