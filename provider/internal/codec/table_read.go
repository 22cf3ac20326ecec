package codec

import (
	"cmp"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// place is where an entry is.
type place struct {
	in       string // the member with it; "" for an element of the conversation
	noRole   string // the role of an entry that has none
	isPrompt bool
}

// TablePart is a part of an entry.
type TablePart struct {
	Raw     []byte
	Members jsontext.Object
	Typ     string          // of the message that it becomes
	As      string          // the member with the call or the result, if parts have no types
	Inner   jsontext.Object // what is in it, or the part
}

// decodeEntry adds the messages of an entry.
func (t *Table) decodeEntry(d *Decoder, at place, raw []byte, entry jsontext.Object) error {
	role, err := t.readRole(at, entry)
	var parts []TablePart
	content := entry.Get(t.Content)
	lone := t.Lone && jsontext.Kind(content) == "object"
	isText := t.Bare && jsontext.Kind(content) == "string"
	if err == nil && !isText {
		if lone {
			content = jsontext.Array([][]byte{content})
		}
		parts, err = t.readParts(at, role, content)
	}
	switch {
	case err == errTyped, err != nil && !t.Strict:
		return d.AddItem(role, cmp.Or(at.in, EntryType), raw)
	case err != nil:
		return err
	}
	typ := TypeText // of the first message
	if len(parts) > 0 {
		typ = parts[0].Typ
	}
	var kept jsontext.Object
	if at.in != "" {
		kept = kept.WithString(keptPlace, at.in)
	}
	plain := jsontext.Object{{Name: "role"}, {Name: t.Content, Value: entry.Get(t.Content)}}
	roleSent := t.entryRole(typ, role)
	if !at.isPrompt {
		if plain[0].Value = entry.Get("role"); !jsontext.IsText(plain[0].Value, roleSent) {
			plain[0].Value = jsontext.AppendQuote(nil, roleSent)
		}
	}
	if len(parts) == 0 && !isText {
		plain[1].Value = []byte("[]")
	}
	kept = append(kept, Difference(entry, plain)...)
	if lone {
		kept = kept.With(keptLone, []byte("true"))
	}
	if d.WouldJoin(typ, role) {
		kept = kept.With(keptJoined, []byte("false"))
	}
	switch {
	case isText:
		return fault.Under(jsontext.Path("$", t.Content), d.AddText(role, content, kept))
	case len(parts) == 0:
		return fault.Under(jsontext.Path("$", t.Content), d.AddText(role, []byte("[]"), kept))
	}
	for begin := 0; begin < len(parts); {
		end := begin + 1
		for parts[begin].Typ != TypeResult && end < len(parts) && parts[end].Typ == parts[begin].Typ {
			end++
		}
		if err := t.addRun(d, role, parts[begin:end], kept); err != nil {
			return fault.Under(jsontext.Index(jsontext.Path("$", t.Content), begin), err)
		}
		begin, kept = end, jsontext.Object{{Name: keptJoined, Value: []byte("true")}}
		if begin < len(parts) && t.entryRole(parts[begin].Typ, role) != t.entryRole(typ, role) {
			kept = kept.WithString(keptRole, roleSent)
		}
	}
	return nil
}

// readRole returns the role of the messages of an entry.
func (t *Table) readRole(at place, entry jsontext.Object) (string, error) {
	switch sent := entry.Get("role"); {
	case at.isPrompt && jsontext.Kind(sent) == "string", at.isPrompt && jsontext.IsNull(sent):
		return "system", nil
	case jsontext.IsNull(sent) && at.noRole != "":
		return at.noRole, nil
	}
	kinds := []string{"string"}
	if t.NoRole != "" {
		kinds = append(kinds, "null", "nothing")
	}
	return t.messageRole(entry.String("role")), entry.Want("role", kinds...)
}

// errTyped is returned for a part that has a type where parts have none:
// messages use this member.
var errTyped = &fault.Error{Path: "$", Got: "has a type"}

// readParts reads the parts of an entry. Those of a system prompt are all said,
// whatever they are.
func (t *Table) readParts(at place, role string, content []byte) (parts []TablePart, err error) {
	if jsontext.IsNull(content) && t.Strict {
		return nil, nil
	}
	elements, err := jsontext.Elements(content)
	if err != nil {
		return nil, fault.Under(jsontext.Path("$", t.Content), err)
	}
	parts = make([]TablePart, len(elements))
	for i, raw := range elements {
		p := &parts[i]
		if p.Members, err = jsontext.Members(raw); err == nil {
			p.Raw = raw
			err = t.ReadPart(p, role)
		}
		if err != nil {
			return nil, fault.Under(jsontext.Index(jsontext.Path("$", t.Content), i), err)
		}
		if at.isPrompt {
			p.Typ = TypeText
		}
	}
	if t.Untyped && slices.ContainsFunc(parts, func(p TablePart) bool { return p.Typ == TypeText && p.Members.Get("type") != nil }) {
		return nil, errTyped
	}
	return parts, nil
}

// ReadPart sets what a part is that has Raw and Members.
func (t *Table) ReadPart(p *TablePart, role string) error {
	p.Typ, p.Inner = TypeText, p.Members
	if t.Untyped {
		return t.readUntyped(p)
	}
	if err := p.Members.Want("type", "string"); err != nil {
		return err
	}
	switch typ := p.Members.Get("type"); {
	case jsontext.IsText(typ, t.Call.Type):
		p.Typ = TypeCall
		if role != "assistant" {
			return &fault.Error{Path: "$.type", Got: "a call that the model does not make"}
		}
	case jsontext.IsText(typ, t.Result.Type):
		p.Typ = TypeResult
	case jsontext.IsText(typ, "text"):
		return p.Members.Want("text", "string")
	}
	return nil
}

// readUntyped is readPart for parts without types. A member that is null counts
// as missing.
func (t *Table) readUntyped(p *TablePart) error {
	for _, m := range p.Members {
		typ, word := TypeText, (*Word)(nil)
		switch {
		case m.Name == "text":
			if err := p.Members.Want("text", "string", "null"); err != nil {
				return err
			}
			continue
		case slices.Contains(t.Call.In, m.Name):
			typ, word = TypeCall, &t.Call
		case slices.Contains(t.Result.In, m.Name):
			typ, word = TypeResult, &t.Result
		default:
			continue
		}
		if err := p.Members.Want(m.Name, "object", "null"); err != nil {
			return err
		}
		if p.As != "" || jsontext.IsNull(m.Value) {
			continue
		}
		p.Typ, p.As, p.Inner = typ, m.Name, p.Members.Object(m.Name)
		for _, name := range []string{word.ID, word.Name} {
			if name == "" {
				continue
			}
			if err := p.Inner.Want(name, "string", "null", "nothing"); err != nil {
				return fault.Under(jsontext.Path("$", p.As), err)
			}
		}
	}
	return nil
}

// addRun adds the message of parts of one type.
func (t *Table) addRun(d *Decoder, role string, parts []TablePart, kept jsontext.Object) error {
	switch parts[0].Typ {
	case TypeCall:
		calls := make([]Call, len(parts))
		for i := range parts {
			p := &parts[i]
			c := Call{ID: p.Inner.String(t.Call.ID), Name: p.Inner.String(t.Call.Name), Input: p.Inner.Get(t.Call.Value)}
			plain := t.Call.plain(SentText(p.Inner, t.Call.ID), SentText(p.Inner, t.Call.Name), t.callInput(c.Input), nil)
			c.Kept = t.Call.keep(nil, TypeCall, p, plain)
			calls[i] = c
		}
		return d.AddCalls(role, calls, kept)
	case TypeResult:
		return t.addResult(d, &parts[0], kept)
	}
	return t.addText(d, role, parts, kept)
}

// callInput returns the plain input of a call.
func (t *Table) callInput(input []byte) []byte {
	if t.Untyped {
		return input
	}
	return InputObject(input)
}

func (t *Table) addResult(d *Decoder, p *TablePart, kept jsontext.Object) error {
	w := &t.Result
	r := Result{ID: p.Inner.String(w.ID), Content: p.Inner.Get(w.Value)}
	name := []byte(nil)
	if w.Name != "" {
		if r.Name, name = p.Inner.String(w.Name), SentText(p.Inner, w.Name); r.Name == "" {
			r.Name = d.CallName(r.ID)
			name = jsontext.AppendQuote(nil, r.Name)
		}
	}
	if failed := p.Inner.Get(w.Failed); jsontext.Kind(failed) == "bool" {
		r.IsError = failed
	}
	plain := w.plain(SentText(p.Inner, w.ID), name, t.output(r.Content), r.IsError)
	r.Kept = w.keep(kept, TypeResult, p, plain)
	return d.AddResult(r)
}

// output returns the plain value of a result.
func (t *Table) output(value []byte) []byte {
	switch kind := jsontext.Kind(value); {
	case t.Untyped, kind == "string", kind == "array":
		return value
	case kind == "nothing", kind == "null":
		return nil
	}
	return jsontext.AppendQuote(nil, string(value))
}

// addText adds a text message. Where parts have no types, its content is a text
// if that is all, and otherwise the type text marks those that readers see.
func (t *Table) addText(d *Decoder, role string, parts []TablePart, kept jsontext.Object) error {
	content := make([][]byte, len(parts))
	for i, p := range parts {
		text := p.Members.Get("text")
		if content[i] = p.Raw; !t.Untyped || jsontext.Kind(text) != "string" {
			continue
		}
		if len(parts)+len(p.Members) == 2 {
			if len(kept) == 0 && string(text) == `""` {
				// Other formats have an empty text next to calls, which is left
				// out.
				kept = kept.With(keptJoined, []byte("false"))
			}
			return d.AddText(role, text, kept)
		}
		if !p.Members.Bool("thought") {
			content[i] = append(TypedObject("text"), p.Members...).JSON()
		}
	}
	return d.AddText(role, jsontext.Array(content), kept)
}
