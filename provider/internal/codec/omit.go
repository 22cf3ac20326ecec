package codec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// identity are members that identify an entry or say what it is, for the
// provider that sent it. They mean nothing to another one, and are left out
// without a report.
var identity = []string{"id", "type", "object", "index", "status", "model"}

// expressed are the members of entries and calls that a message has as content,
// calls and so on. A message keeps another spelling of them.
var expressed = []string{
	"role", "content", "tool_calls", "function_call", "name", "arguments", "input", "args", "call_id", "output",
	"response", "is_error",
}

// OmitParts reports parts that the format cannot express.
func (e *Encoder) OmitParts(i int, parts []Part) {
	for _, p := range parts {
		e.Omit(i, "part of type "+p.typeName())
	}
}

// OmitRest reports what a part has besides what its reader has read, except the
// members that were written all the same.
func (e *Encoder) OmitRest(i int, p Part, written ...string) {
	e.omitRest(i, p, p.Members, "", written)
}

// omitRest reports each member that says something and is not read. A path in
// Part.Read stands for a member, with all that is in it if no longer path begins
// with it.
func (e *Encoder) omitRest(i int, p Part, members jsontext.Object, prefix string, written []string) {
	for _, m := range members {
		path := prefix + m.Name
		switch {
		case m.Name == e.Mark && prefix == "":
		case origin.IsForeign(m.Name) && prefix == "":
			held, _ := jsontext.Members(m.Value) // none if another program wrote it
			for _, kept := range keptMembers(held) {
				if !saysNothing(kept.Value) && !slices.Contains(identity, kept.Name) {
					e.Omit(i, "member "+kept.Name+" of part "+strconv.Itoa(p.Index))
				}
			}
		case path == "type", saysNothing(m.Value), slices.Contains(p.Read, path), slices.Contains(written, path):
		case jsontext.Kind(m.Value) == "object" && slices.ContainsFunc(p.Read, func(r string) bool {
			return strings.HasPrefix(r, path+".")
		}):
			inner, _ := jsontext.Members(m.Value) // checked with the message
			e.omitRest(i, p, inner, path+".", written)
		default:
			e.Omit(i, "member "+path+" of part "+strconv.Itoa(p.Index))
		}
	}
}

// saysNothing reports whether a value is as good as missing.
func saysNothing(value []byte) bool {
	switch string(value) {
	case "", "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// OmitIsError reports that a result is an error, for a format that has no place
// for this. The text of one that stands for a missing result says so.
func (e *Encoder) OmitIsError(i int, m state.ToolResultMessage) {
	if m.IsError() && m.Text() != origin.NoResult {
		e.Omit(i, "is_error")
	}
}

// OmitMembers reports the members of a message and of its calls that belong to
// no format, or to another one. own are the members that the format has for
// such a message, and ownOfCall for a call.
func (e *Encoder) OmitMembers(i int, m state.Message, own, ownOfCall []string) {
	typ := m.Type()
	if typ != TypeText && typ != TypeCall && typ != TypeResult {
		return // reported as a whole, or restored as a whole
	}
	for k := 0; ; k++ {
		name, value, ok := messages_.ExtraMember(m, k)
		if !ok {
			break
		}
		switch {
		case name == e.Mark, name == "is_error", slices.Contains(own, name):
		case origin.IsFormat(name):
			e.omitKept(i, []byte(value), keptBy{isResult: typ == TypeResult, call: none})
		default:
			e.omitMember(i, name, []byte(value), none)
		}
	}
	if typ != TypeCall {
		return
	}
	for call := 0; ; call++ {
		extra, ok := messages_.CallExtra(m, call)
		switch {
		case !ok:
			return
		case extra == "":
			continue
		}
		text := []byte(extra)
		_ = jsontext.EachMember(text, func(name []byte, span jsontext.Span) error { // checked with the message
			value := span.In(text)
			switch name := string(name); {
			case name == e.Mark, slices.Contains(ownOfCall, name):
			case origin.IsFormat(name):
				e.omitKept(i, value, keptBy{call: call})
			default:
				e.omitMember(i, name, value, call)
			}
			return nil
		})
	}
}

// none stands for no call.
const none = -1

// keptBy says what keeps a difference: a call of a message, or the message,
// which may be a result, or the block of one.
type keptBy struct {
	call     int
	isResult bool
}

// omitKept reports the members of an entry that a message keeps for another
// format: those of the entry and of its part, at any depth.
func (e *Encoder) omitKept(i int, kept []byte, by keptBy) {
	if len(kept) <= len("{}") {
		return
	}
	_ = jsontext.EachMember(kept, func(name []byte, span jsontext.Span) error { // nothing if another program wrote it
		switch value := span.In(kept); string(name) {
		case more:
			e.omitAdded(i, value, by)
		case "part", "entry":
			by := by
			by.isResult = by.isResult || by.call == none
			e.omitKept(i, value, by)
		case inside:
			_ = jsontext.EachMember(value, func(_ []byte, span jsontext.Span) error { // nothing if it is the place of a prompt
				e.omitKept(i, span.In(value), by)
				return nil
			})
		}
		return nil
	})
}

// omitAdded reports the members that are kept besides the plain ones. A name is
// that of a participant, or that of a tool, which a call has.
func (e *Encoder) omitAdded(i int, added []byte, by keptBy) {
	_ = jsontext.EachMember(added, func(name []byte, span jsontext.Span) error { // as above
		ofPerson := string(name) == "name" && !by.isResult && by.call == none
		if name := string(name); ofPerson || !slices.Contains(expressed, name) {
			e.omitMember(i, name, span.In(added), by.call)
		}
		return nil
	})
}

// OmitOwnMembers reports the members of a message that is not sent.
func (e *Encoder) OmitOwnMembers(i int, m state.Message, names []string) {
	for _, member := range OwnMembers(m, names) {
		e.omitMember(i, member.Name, member.Value, none)
	}
}

func (e *Encoder) omitMember(i int, name string, value []byte, call int) {
	if slices.Contains(identity, name) || saysNothing(value) {
		return
	}
	what := "member " + name
	if call != none {
		what += " of call " + strconv.Itoa(call)
	}
	e.Omit(i, what)
}

// Placeholder returns a text that stands for parts that were left out, where
// nothing else would be left of a message. It is nil if nothing but reasoning
// was left out, which no other provider is sent.
func Placeholder(omitted []Part) []byte {
	var kinds []string
	for _, p := range omitted {
		if kind := p.kindName(); !origin.IsReasoning(p.Members) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if kinds == nil {
		return nil
	}
	return jsontext.AppendQuote(nil, "["+strings.Join(kinds, " and ")+" left out]")
}

// OwnMembers returns the members of a message that the format has for it.
func OwnMembers(m state.Message, names []string) (own jsontext.Object) {
	for _, name := range names {
		if value, ok := m.Extra(name); ok {
			own = own.With(name, []byte(value))
		}
	}
	return own
}

// OwnMembersOfCall is OwnMembers for a call.
func (e *Encoder) OwnMembersOfCall(c state.ToolCall, names []string) (own jsontext.Object) {
	if c.Extra == "" {
		return nil
	}
	extra, _ := jsontext.Members([]byte(c.Extra)) // checked with the message
	for _, name := range names {
		own = own.With(name, extra.Get(name))
	}
	return own
}
