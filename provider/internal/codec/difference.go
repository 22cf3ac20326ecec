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
	inside  = "in"      // an object of the differences of members that are objects
)

// Difference returns what [Restore] needs to make sent of plain. It has no
// members if the two are equal.
func Difference(sent, plain jsontext.Object) jsontext.Object {
	return difference(sent, plain, 4) // a message has a limit of depth, and each level takes two
}

func difference(sent, plain jsontext.Object, depth int) jsontext.Object {
	var added, inner jsontext.Object
	var missing [][]byte
	for _, m := range sent { // of any number, while plain has a few
		value := plain.Get(m.Name)
		switch {
		case bytes.Equal(value, m.Value):
		case depth > 0 && jsontext.Kind(value) == "object" && jsontext.Kind(m.Value) == "object":
			of, _ := jsontext.Members(m.Value) // both are objects
			from, _ := jsontext.Members(value)
			if kept := difference(of, from, depth-1); kept != nil {
				inner = append(inner, jsontext.Member{Name: m.Name, Value: kept.JSON()})
			}
		case value == nil || !EqualJSON(value, m.Value):
			added = append(added, m)
		}
	}
	for _, m := range plain {
		if m.Value != nil && sent.Get(m.Name) == nil {
			missing = append(missing, jsontext.AppendQuote(nil, m.Name))
		}
	}
	var kept jsontext.Object
	if len(added) > 0 {
		kept = kept.With(more, added.JSON())
	}
	if missing != nil {
		kept = kept.With(without, jsontext.Array(missing))
	}
	if inner != nil {
		kept = kept.With(inside, inner.JSON())
	}
	return kept
}

// Restore returns plain with the difference that was kept. The members named in
// changed, at any depth, stay as plain has them: what was kept of them no longer
// holds, because the message says something else since.
func Restore(plain, kept jsontext.Object, changed ...string) jsontext.Object {
	var added jsontext.Object
	for _, m := range kept.Object(more) {
		if !slices.Contains(changed, m.Name) {
			added = append(added, m)
		}
	}
	missing, inner := missingNames(kept), kept.Object(inside)
	restored := make(jsontext.Object, 0, len(plain)+len(added))
	for _, m := range plain {
		if value := added.Get(m.Name); value != nil {
			m.Value = value
		} else if m.Value == nil || slices.Contains(missing, m.Name) && !slices.Contains(changed, m.Name) {
			continue
		} else if kept := inner.Object(m.Name); kept != nil && jsontext.Kind(m.Value) == "object" {
			from, _ := jsontext.Members(m.Value) // it is an object
			m.Value = Restore(from, kept, changed...).JSON()
		}
		restored = append(restored, m)
	}
	fromPlain := restored // a few members, while a provider adds any number
	for _, m := range added {
		if fromPlain.Get(m.Name) == nil {
			restored = append(restored, m)
		}
	}
	return restored
}

// keptMembers returns the members, at any depth, that are kept besides those of
// the plain value.
func keptMembers(kept jsontext.Object) jsontext.Object {
	members := slices.Clip(kept.Object(more))
	for _, m := range kept.Object(inside) {
		inner, _ := jsontext.Members(m.Value) // none if another program wrote it
		members = append(members, keptMembers(inner)...)
	}
	return members
}

// More returns what is kept, and members that are added if none of that name is
// kept. Members without a value are not added.
func More(kept, added jsontext.Object) jsontext.Object {
	if len(added) == 0 {
		return kept
	}
	all := slices.Clip(kept.Object(more))
	has := make(map[string]bool, len(all)+len(added))
	for _, m := range all {
		has[m.Name] = true
	}
	for _, m := range added {
		if m.Value != nil && !has[m.Name] {
			has[m.Name] = true
			all = append(all, m)
		}
	}
	return kept.With(more, all.JSON())
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
	switch {
	case bytes.Equal(a, b):
		return true
	case jsontext.Kind(a) != jsontext.Kind(b):
		return false
	case jsontext.Kind(a) == "string":
		return jsontext.IsText(a, jsontext.Unquote(b))
	}
	return state.JSON(a).Equal(state.JSON(b))
}

// ArgumentsInput returns the input of a call whose arguments are written as a
// string: an object, the string itself if its text is not an object. It is nil
// for no arguments: null, a text without anything but spaces, or the text null,
// which some providers send for tools without arguments. As in encoding/json,
// U+FFFD stands for a half of a surrogate pair that is alone. plain is what [InputArguments] returns for
// the input, or nil if that is not what was sent: a [Difference] then has what
// was sent.
func ArgumentsInput(arguments []byte) (input, plain []byte) {
	switch jsontext.Kind(arguments) {
	case "nothing":
		return nil, InputArguments("")
	case "null":
		return nil, nil
	case "string":
	default:
		return arguments, nil
	}
	inner := jsontext.AppendUnquoted(make([]byte, 0, len(arguments)), arguments)
	if text := bytes.TrimSpace(inner); len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if jsontext.Kind(inner) != "object" {
		return arguments, arguments
	}
	limits := jsontext.Limits{Depth: InputDepth}
	if jsontext.Check(inner, limits) != nil {
		if input = jsontext.Mended(inner); jsontext.Check(input, limits) != nil {
			return arguments, arguments
		}
		return jsontext.AppendCompact(nil, input), nil
	}
	if input = jsontext.AppendCompact(inner[:0], inner); len(input) == len(inner) {
		plain = arguments
	}
	return input, plain
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
