package provider

import (
	"bytes"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// A decoder derives messages from what a provider sends, and an encoder derives
// from messages the plainest JSON that says the same. Where that is not what
// was sent, the difference is kept, and put back when the messages are encoded
// for the same format again. So the round trip is exact whatever the provider
// does: unknown members, null for missing, other spellings.
const (
	more    = "more"    // an object of the members that differ or are added
	without = "without" // an array of the names that are missing
)

// difference returns what restore needs to make sent of plain: no members if
// they are equal.
func difference(sent, plain jsontext.Object) jsontext.Object {
	var added jsontext.Object
	var missing [][]byte
	for _, m := range sent {
		if value := plain.Get(m.Name); value == nil || !equal(value, m.Value) {
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

// restore returns plain with the difference that was kept. The members in said
// are as plain has them nevertheless: a message that was changed since says
// something else than what was kept.
func restore(plain, kept jsontext.Object, said ...string) jsontext.Object {
	members, _ := jsontext.Members(kept.Get(more)) // none of what is no object
	var added jsontext.Object
	for _, m := range members {
		if !slices.Contains(said, m.Name) {
			added = append(added, m)
		}
	}
	var missing []string
	names, _ := jsontext.Elements(kept.Get(without))
	for _, name := range names {
		if name := stringOf(name); plain.Get(name) != nil && !slices.Contains(said, name) {
			missing = append(missing, name)
		}
	}
	restored := make(jsontext.Object, 0, len(plain)+len(added))
	for _, m := range plain {
		if value := added.Get(m.Name); value != nil {
			m.Value = value
		} else if slices.Contains(missing, m.Name) {
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

func equal(a, b []byte) bool {
	return bytes.Equal(a, b) || state.JSON(a).Equal(state.JSON(b))
}
