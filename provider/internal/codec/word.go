package codec

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// A Word is how an API writes a call or a result: as a part of a type, as what is
// in a member of a part, or as an entry.
//
// A call or a result keeps the difference of its part, and
//
//	kind  the Kind of the word
//	as    the member with it, unless it is the first spelling
//
// The difference of the part of a result is in the member part, because its
// message may keep that of an entry, too.
type Word struct {
	Kind   string   // "" for the first word of a table
	Type   string   // of the part, where parts have types
	Role   string   // of the entry, where results are entries
	Member string   // of an entry that has this call besides the list of calls
	In     []string // the member with the name and the value in each spelling; the first is written

	KeyID, KeyName, KeyValue string // the members with the id, the name, and the input or content
	KeyFailed                string // the member of a result that is an error
	FailedText               string // what that member has then; "" if it is a bool
	ForRole                  string // the role of the message, "" for any
	HostedType               string // of a call that the provider itself runs, which no client sees
	MayLackID                bool
	OnlyReadName             bool // the name is read, and not written
	Form                     Form // of the value
}

// A Form is how a value is written. The zero Form is the value itself.
type Form struct {
	// Read returns a value for what was sent, and what Write returns for it.
	Read func(sent []byte) (value, plain []byte)

	// Write returns what is sent for a value of the format, and Adopt for one of
	// another format (default: Write).
	Write, Adopt func(value []byte) []byte
}

func (f *Form) read(sent []byte) (value, plain []byte) {
	switch {
	case f.Read != nil:
		return f.Read(sent)
	case f.Write != nil:
		return sent, f.Write(sent)
	}
	return sent, sent
}

// reads reports whether what was sent is read as a value.
func (f *Form) reads(sent []byte, value state.JSON) bool {
	read, _ := f.read(sent)
	return EqualJSON(read, []byte(value))
}

func (f *Form) write(value []byte, own bool) []byte {
	switch {
	case !own && f.Adopt != nil:
		return f.Adopt(value)
	case f.Write != nil:
		return f.Write(value)
	}
	return value
}

// The forms of inputs.
var (
	// ObjectForm is an object, see [InputObject].
	ObjectForm = Form{Write: InputObject}

	// ArgumentsForm is the JSON of an object as a text.
	ArgumentsForm = Form{
		Read:  ArgumentsInput,
		Write: func(input []byte) []byte { return InputArguments(state.JSON(input)) },
	}

	// TextForm is a text that is not JSON.
	TextForm = Form{
		Read: func(sent []byte) (input, plain []byte) {
			switch jsontext.Kind(sent) {
			case "nothing":
				return nil, []byte(`""`)
			case "null":
				return nil, nil
			case "string":
				return sent, sent
			}
			return sent, nil
		},
		Write: func(input []byte) []byte { return jsontext.AppendQuote(nil, state.JSON(input).Text()) },
	}
)

// TablePart is a part of an entry, an element of its list of calls, or an entry
// that is a result.
type TablePart struct {
	Raw     []byte
	Members jsontext.Object
	Typ     string          // of the message that it becomes
	As      string          // the member with the call or the result
	Inner   jsontext.Object // what is in that member, or Members
	word    *Word           // of a call or a result
}

// hasIDApart reports whether the id is beside the member with the name and the value.
func (w *Word) hasIDApart() bool { return w.In != nil && w.Type != "" }

// isFor reports whether a message with a role has such calls or results.
func (w *Word) isFor(role string) bool { return w.ForRole == "" || w.ForRole == role }

// id, name and value return the members of the call or the result, as JSON.
func (p *TablePart) id() []byte {
	if p.word.hasIDApart() {
		return SentText(p.Members, p.word.KeyID)
	}
	return SentText(p.Inner, p.word.KeyID)
}

func (p *TablePart) name() []byte  { return SentText(p.Inner, p.word.KeyName) }
func (p *TablePart) value() []byte { return p.Inner.Get(p.word.KeyValue) }

// find sets what is in the member of a word. It returns an error if that is not
// an object.
func (p *TablePart) find(w *Word) (err error) {
	p.word, p.Inner = w, p.Members
	if w.In == nil {
		return nil
	}
	for _, p.As = range w.In {
		if p.Members.Get(p.As) != nil {
			break
		}
	}
	p.Inner, err = p.Members.Members(p.As)
	return err
}

// wordValues are the values of the members of a call or a result, as JSON.
type wordValues struct {
	id, name, value, failed []byte
	more                    jsontext.Object // members beside the value
	isResult                bool
}

// plain returns the plain part, and what is in its last member.
func (w *Word) plain(as string, v wordValues) (part, inner jsontext.Object) {
	part = make(jsontext.Object, 0, 5)
	add := func(to *jsontext.Object, name string, value []byte) {
		if name != "" && value != nil {
			*to = append(*to, jsontext.Member{Name: name, Value: value})
		}
	}
	to := &part
	if w.In != nil {
		inner = make(jsontext.Object, 0, 5)
		to = &inner
	}
	withID := to
	if w.hasIDApart() {
		withID = &part
	}
	if w.Role != "" {
		add(&part, "role", jsontext.AppendQuote(nil, w.Role))
	}
	if w.Type != "" {
		add(&part, "type", jsontext.AppendQuote(nil, w.Type))
	}
	if !w.MayLackID || len(v.id) > len(`""`) {
		add(withID, w.KeyID, v.id)
	}
	if !w.OnlyReadName {
		add(to, w.KeyName, v.name)
	}
	add(to, w.KeyValue, v.value)
	add(to, w.KeyFailed, v.failed)
	*to = append(*to, v.more...)
	if w.In != nil {
		part = append(part, jsontext.Member{Name: as})
	}
	return part, inner
}

// keepsInPart reports whether the difference is in the member part.
func (w *Word) keepsInPart(isResult bool) bool { return isResult && w.Role == "" }

// keep appends what is kept of a call or a result with this plain part.
func (p *TablePart) keep(kept, plain, inner jsontext.Object) jsontext.Object {
	w := p.word
	if w.In != nil {
		plain[len(plain)-1].Value = p.Members.Get(p.As) // compared below
	}
	difference := Difference(p.Members, plain)
	if w.In != nil {
		if of := Difference(p.Inner, inner); of != nil {
			difference = difference.With(inside, jsontext.Object{{Name: p.As, Value: of.JSON()}}.JSON())
		}
	}
	if w.Kind != "" {
		kept = kept.WithString(keptKind, w.Kind)
	}
	if w.In != nil && p.As != w.In[0] {
		kept = kept.WithString(keptAs, p.As)
	}
	switch {
	case !w.keepsInPart(p.Typ == TypeResult):
		kept = append(kept, difference...)
	case difference != nil:
		kept = kept.With(keptPart, difference.JSON())
	}
	return kept
}

// restore returns the part with what was kept of it, and with members that a
// program has set. What was kept of the id, the name or the value holds as long
// as the message has the same, which isValue reports of a value.
func (w *Word) restore(v wordValues, kept, own jsontext.Object, isValue func(sent []byte) bool) []byte {
	as := kept.String(keptAs)
	if as == "" && w.In != nil {
		as = w.In[0]
	}
	part, inner := w.plain(as, v)
	if w.In != nil {
		part[len(part)-1].Value = inner.JSON()
	}
	if w.keepsInPart(v.isResult) {
		kept = kept.Object(keptPart)
	}
	if len(kept)+len(own) == 0 {
		return part.JSON()
	}
	kept = More(kept, own)
	p := TablePart{Members: Restore(part, kept)}
	_ = p.find(w) // if it is not an object, it has no members
	if changed := p.changed(v, isValue); changed != nil {
		p.Members = Restore(part, kept, changed...)
	}
	return p.Members.JSON()
}

// changed returns the members of which another value was kept than the message has.
func (p *TablePart) changed(v wordValues, isValue func(sent []byte) bool) (names []string) {
	w := p.word
	if w.KeyID != "" && !EqualJSON(p.id(), v.id) {
		names = append(names, w.KeyID)
	}
	isOfCall := w.OnlyReadName || v.isResult && string(p.name()) == `""` // as the call has it
	if w.KeyName != "" && !isOfCall && !EqualJSON(p.name(), v.name) {
		names = append(names, w.KeyName)
	}
	if v.failed != nil && !EqualJSON(p.Inner.Get(w.KeyFailed), v.failed) {
		names = append(names, w.KeyFailed)
	}
	if !isValue(p.value()) {
		names = append(names, w.KeyValue)
	}
	return names
}

// findWord returns the word of a call or a result that has an id and keeps its
// kind. It returns the first word and false for a kind that has no ids.
func findWord(words []Word, kept jsontext.Object, id string) (word *Word, isKind bool) {
	kind := kept.String(keptKind)
	for i := range words {
		if words[i].Kind == kind && (words[i].KeyID != "" || id == "") {
			return &words[i], true
		}
	}
	return &words[0], false
}

// readUntyped sets what a part of an untyped API is, if one of the words is in it. A
// member that is null counts as missing.
func (p *TablePart) readUntyped(typ, role string, words []Word, m jsontext.Member) error {
	for i := range words {
		w := &words[i]
		if !slices.Contains(w.In, m.Name) {
			continue
		}
		if err := p.Members.Want(m.Name, "object", "null"); err != nil {
			return err
		}
		inner := p.Members.Object(m.Name)
		isHosted := w.HostedType != "" && inner.String("type") == w.HostedType
		if p.word != nil || inner == nil || isHosted || !w.isFor(role) {
			return nil
		}
		p.Typ, p.As, p.word, p.Inner = typ, m.Name, w, inner
		for _, name := range []string{w.KeyID, w.KeyName} {
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
