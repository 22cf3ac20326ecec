package gemini

import (
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// place is where a content is.
type place struct {
	in   string
	role string // of a message whose content has no role
}

// decodeContent adds the messages of a content.
func decodeContent(d *codec.Decoder, at place, raw []byte, content jsontext.Object) error {
	role, err := at.messageRole(content)
	if err != nil {
		return err
	}
	lone := jsontext.Kind(content.Get("parts")) == "object"
	if lone { // Google takes the only part without an array
		content = content.With("parts", jsontext.Array([][]byte{content.Get("parts")}))
	}
	parts, err := at.readParts(content)
	if err != nil {
		return err
	}
	typ := codec.TypeText // of the first message
	if len(parts) > 0 {
		typ = parts[0].typ
	}
	for _, p := range parts {
		if p.typ == codec.TypeText && p.members.Get("type") != nil { // messages use this member
			return d.AddItem(role, at.in, raw)
		}
	}
	var kept jsontext.Object
	if at.in != inElement {
		kept = kept.WithString(keptIn, at.in)
	}
	roleSent := contentRole(typ, role)
	plain := jsontext.Object{{Name: "parts", Value: content.Get("parts")}, {Name: "role"}}
	if at.role != "system" {
		plain[1].Value = jsontext.AppendQuote(nil, roleSent)
	}
	if len(parts) == 0 {
		plain[0].Value = []byte("[]")
		kept = append(kept, codec.Difference(content, plain)...)
		return d.AddText(role, []byte("[]"), kept)
	}
	kept = append(kept, codec.Difference(content, plain)...)
	if lone {
		kept = kept.With(keptLone, []byte("true"))
	}
	if d.WouldJoin(typ, role) {
		kept = kept.With(keptJoined, []byte("false"))
	}
	for begin := 0; begin < len(parts); {
		end := endOfRun(parts, begin)
		if err := addRun(d, role, parts[begin:end], kept); err != nil {
			return fault.Under(jsontext.Index("$.parts", begin), err)
		}
		begin = end
		kept = jsontext.Object{}.With(keptJoined, []byte("true"))
		if begin < len(parts) && contentRole(parts[begin].typ, role) != roleSent {
			kept = kept.WithString(keptRole, roleSent)
		}
	}
	return nil
}

// messageRole returns the role of the messages of a content.
func (at place) messageRole(content jsontext.Object) (string, error) {
	if err := content.Want("role", "string", "null", "nothing"); err != nil {
		return "", err
	}
	role := content.String("role")
	switch {
	case at.role == "system", jsontext.IsNull(content.Get("role")):
		return at.role, nil
	case role == "model":
		return "assistant", nil
	}
	return role, nil
}

// contentRole returns the role of a content that has nothing but a message of
// this type and role.
func contentRole(typ, role string) string {
	if typ == codec.TypeCall || typ == codec.TypeText && role == "assistant" {
		return "model"
	}
	return "user"
}

// readParts reads the parts of a content. Those of a system instruction are all
// said, whatever they are.
func (at place) readParts(content jsontext.Object) ([]part, error) {
	var parts []part
	err := content.EachObject("parts", func(raw []byte, members jsontext.Object) error {
		p, err := readPart(raw, slices.Clone(members))
		if at.role == "system" {
			p.typ = codec.TypeText
		}
		parts = append(parts, p)
		return err
	})
	return parts, err
}

// endOfRun returns the end of the parts that become one message.
func endOfRun(parts []part, begin int) int {
	end := begin + 1
	for parts[begin].typ != codec.TypeResult && end < len(parts) && parts[end].typ == parts[begin].typ {
		end++
	}
	return end
}

// addRun adds the message of parts of one type.
func addRun(d *codec.Decoder, role string, parts []part, kept jsontext.Object) error {
	switch parts[0].typ {
	case codec.TypeCall:
		calls := make([]codec.Call, len(parts))
		for i, p := range parts {
			c := codec.Call{ID: p.id(), Name: p.name(), Input: p.inner.Get("args")}
			c.Kept = p.appendKept(nil, p.plain(c.Name, "args", c.Input))
			calls[i] = c
		}
		return d.AddCalls(role, calls, kept)
	case codec.TypeResult:
		p := parts[0]
		r := codec.Result{ID: p.id(), Name: p.name(), Content: p.inner.Get("response")}
		if r.Name == "" {
			r.Name = d.CallName(r.ID)
		}
		r.Kept = p.appendKept(kept, p.plain(r.Name, "response", r.Content))
		return d.AddResult(r)
	}
	return addText(d, role, parts, kept)
}

// addText adds a text message. Its content is a text if that is all, else the
// parts, where the type text marks those that readers see.
func addText(d *codec.Decoder, role string, parts []part, kept jsontext.Object) error {
	text := parts[0].members.Get("text")
	if len(parts) == 1 && len(parts[0].members) == 1 && jsontext.Kind(text) == "string" {
		if len(kept) == 0 && string(text) == `""` {
			// Other formats have an empty text next to calls, which is left
			// out.
			kept = kept.With(keptJoined, []byte("false"))
		}
		return d.AddText(role, text, kept)
	}
	content := make([][]byte, len(parts))
	for i, p := range parts {
		content[i] = p.raw
		if jsontext.Kind(p.members.Get("text")) == "string" && !p.members.Bool("thought") {
			content[i] = append(codec.TypedObject("text"), p.members...).JSON()
		}
	}
	return d.AddText(role, jsontext.Array(content), kept)
}
