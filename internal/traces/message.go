package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/strict"
)

// get returns the value of a member, nil if it is missing.
func get(members []strict.Member, names ...string) []byte {
	for _, m := range members {
		for _, name := range names {
			if m.Name == name {
				return m.Value
			}
		}
	}
	return nil
}

// without returns the members but for the named ones.
func without(members []strict.Member, names ...string) []strict.Member {
	kept := make([]strict.Member, 0, len(members))
next:
	for _, m := range members {
		for _, name := range names {
			if m.Name == name {
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// text returns the content of a string, "" for null and what is missing, and
// the JSON of anything else.
func text(raw []byte) string {
	switch strict.Kind(raw) {
	case "nothing", "null":
		return ""
	case "string":
		return strict.Unquote(raw)
	}
	return string(raw)
}

func str(name, value string) strict.Member {
	return strict.Member{Name: name, Value: strict.AppendString(nil, value)}
}

// takeText returns a member for which a message wants a string, and the others.
// If it is no string, its JSON becomes one, and it stays among the others.
func takeText(members []strict.Member, name string) (taken strict.Member, rest []strict.Member) {
	raw := get(members, name)
	switch strict.Kind(raw) {
	case "nothing", "null", "string":
		return strict.Member{Name: name, Value: raw}, without(members, name)
	}
	return str(name, string(raw)), members
}

// object returns an object of its own members and then of the rest, members of
// the file under their names there. If a name is taken, the file's member gets
// another: it must not be lost.
func object(own, rest []strict.Member) []byte {
	taken := make(map[string]bool, len(own)+len(rest))
	b := []byte{'{'}
	add := func(m strict.Member) {
		if m.Value == nil { // missing
			return
		}
		for taken[m.Name] {
			m.Name = "original_" + m.Name
		}
		taken[m.Name] = true
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strict.AppendString(b, m.Name), ':')
		b = append(b, m.Value...)
	}
	for _, m := range own {
		add(m)
	}
	for _, m := range rest {
		add(m)
	}
	return append(b, '}')
}

// message makes a message by decoding it, not with a constructor: so it keeps
// null apart from missing, numbers as spelled, and all members of the file.
func message(typ string, own, rest []strict.Member) (state.Message, error) {
	own = append([]strict.Member{str("type", typ)}, own...)
	m, err := state.DecodeMessage(object(own, rest))
	if err != nil && typ == "text" {
		// Content of a shape that a text message does not have passes through
		// in a message of a type of its own.
		own[0] = str("type", "other")
		return state.DecodeMessage(object(own, rest))
	}
	return m, err
}

// inputDepth is how deep arguments may nest if they are to be JSON in a message
// and not text.
const inputDepth = 56

// input returns the arguments of a call: an object as it is, and so one that is
// written as a string. Any other string stays a string.
func input(arguments []byte) []byte {
	if strict.Kind(arguments) != "string" {
		return arguments
	}
	inner := []byte(strict.Unquote(arguments))
	if strict.Kind(inner) != "object" || strict.Check(inner, strict.Limits{Depth: inputDepth}) != nil {
		return arguments
	}
	return inner
}
