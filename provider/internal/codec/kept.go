package codec

import (
	"slices"

	"github.com/agentstate/state/internal/jsontext"
)

// For a format of another module, what is kept of a value is the difference
// between what was sent and what the codec makes of the message, at any depth.
// It is an object with some of these members. They hold as long as the codec
// makes the same of the message: a message that says something else is not
// overruled.
const (
	keptIs      = "is"      // the value in place of
	keptWas     = "was"     // the plain value
	keptWithout = "without" // an object of the plain members that are missing
	keptIn      = "in"      // an object of what is kept of members, by name
	// more is an object of the members that the plain object does not have
)

// keptDepth limits how deep differences are told apart. A message has a limit of
// depth, and each level of a difference takes two.
const keptDepth = 4

// Compare returns what [Apply] needs to make sent of plain, nothing if they are
// equal.
func Compare(sent, plain []byte) jsontext.Object { return compare(sent, plain, keptDepth) }

func compare(sent, plain []byte, depth int) jsontext.Object {
	switch {
	case EqualJSON(sent, plain):
		return nil
	case depth == 0 || jsontext.Kind(sent) != "object" || jsontext.Kind(plain) != "object":
		return jsontext.Object{{Name: keptIs, Value: sent}, {Name: keptWas, Value: plain}}
	}
	sentMembers, _ := jsontext.Members(sent) // both are objects
	plainMembers, _ := jsontext.Members(plain)
	ofSent, ofPlain := sentMembers.Lookup(), plainMembers.Lookup()
	var added, missing, inside jsontext.Object
	for _, m := range sentMembers {
		value := ofPlain(m.Name)
		if value == nil {
			added = append(added, m)
			continue
		}
		if difference := compare(m.Value, value, depth-1); difference != nil {
			inside = append(inside, jsontext.Member{Name: m.Name, Value: difference.JSON()})
		}
	}
	for _, m := range plainMembers {
		if ofSent(m.Name) == nil {
			missing = append(missing, m)
		}
	}
	var kept jsontext.Object
	for _, k := range []struct {
		name    string
		members jsontext.Object
	}{{more, added}, {keptWithout, missing}, {keptIn, inside}} {
		if k.members != nil {
			kept = kept.With(k.name, k.members.JSON())
		}
	}
	return kept
}

// Apply returns plain with what was kept.
func Apply(plain []byte, kept jsontext.Object) []byte {
	if len(kept) == 0 {
		return plain
	}
	if is := kept.Get(keptIs); is != nil {
		if EqualJSON(plain, kept.Get(keptWas)) {
			return is
		}
		return plain
	}
	members, err := jsontext.Members(plain)
	if err != nil {
		return plain
	}
	missing, inside := kept.Object(keptWithout).Lookup(), kept.Object(keptIn).Lookup()
	applied := make(jsontext.Object, 0, len(members))
	for _, m := range members {
		if value := missing(m.Name); value != nil && EqualJSON(value, m.Value) {
			continue
		}
		if difference, err := jsontext.Members(inside(m.Name)); err == nil {
			m.Value = Apply(m.Value, difference)
		}
		applied = append(applied, m)
	}
	ofPlain := members.Lookup()
	for _, m := range kept.Object(more) {
		if ofPlain(m.Name) == nil {
			applied = append(applied, m)
		}
	}
	return applied.JSON()
}

// keptMembers returns the members, at any depth, that are kept besides those
// that the codec makes.
func keptMembers(kept jsontext.Object) jsontext.Object {
	members := slices.Clip(kept.Object(more))
	for _, m := range kept.Object(keptIn) {
		inner, _ := jsontext.Members(m.Value) // none if another program wrote it
		if inner.Get(keptIs) != nil {
			continue // another spelling of what the message says
		}
		members = append(members, keptMembers(inner)...)
	}
	return members
}

// keptOfForeign returns the members that a message, a call, a part or a tool
// keeps for a format of another module.
func keptOfForeign(held []byte) jsontext.Object {
	kept, err := jsontext.Members(held)
	if err != nil {
		return nil
	}
	members := keptMembers(kept)
	members = append(members, keptMembers(kept.Object("entry"))...)
	return append(members, keptMembers(kept.Object("part"))...)
}
