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
	isPrompt bool
}

// decodeEntry adds the messages of an entry. One that cannot be read is added as it is,
// unless the table is strict.
func (t *Table) decodeEntry(d *Decoder, at place, raw []byte, entry jsontext.Object) error {
	w, err := t.resultEntry(entry)
	if w != nil {
		return t.addResult(d, &TablePart{Members: entry, Inner: entry, Typ: TypeResult, word: w}, nil)
	}
	role, roleErr := t.readRole(at, entry)
	if err = cmp.Or(err, roleErr); err == nil {
		e := sentEntry{at: at, role: role, rest: entry, first: TypeText}
		if err = t.readEntry(&e); err == nil {
			return t.addEntry(d, &e)
		}
	}
	if t.Strict && err != errTyped {
		return err
	}
	if raw == nil {
		raw = entry.JSON()
	}
	return d.AddItem(role, cmp.Or(at.in, "message"), raw)
}

// sentEntry is an entry that is not a result, as it was read.
type sentEntry struct {
	at      place
	role    string          // of its messages
	rest    jsontext.Object // the members without the calls
	content []byte          // as messages have it
	sent    []byte          // the plain content of the entry
	isLone  bool            // the content is an element that stands for a list
	parts   []TablePart     // of the content
	calls   []TablePart     // of the list of calls
	first   string          // the type of the first message

	hasOnlyCalls bool
}

// readEntry reads an entry of which the place, the role and all members are known.
func (t *Table) readEntry(e *sentEntry) (err error) {
	entry := e.rest
	if t.CallList != "" {
		if e.calls, e.rest, err = t.readCalls(entry); err != nil {
			return err
		}
	}
	e.content, e.isLone = t.wholeContent(e.role, entry.Get(t.Content))
	if e.parts, err = t.readParts(e.at, e.role, e.content); err != nil {
		return err
	}
	e.sent = e.rest.Get(t.Content)
	e.hasOnlyCalls = len(e.calls) > 0 && IsEmpty(e.content)
	if len(e.parts) > 0 {
		e.first = e.parts[0].Typ
	}
	switch {
	case e.hasOnlyCalls:
		e.first, e.sent = TypeCall, []byte("null")
	case jsontext.Kind(e.sent) == "object" && !e.isLone:
		e.sent = e.content
	case len(e.parts) == 0 && !t.mayLackContent() && jsontext.Kind(e.content) != "string":
		e.content, e.sent = []byte("[]"), []byte("[]")
	}
	return nil
}

// addEntry adds the messages of an entry that was read: those of its content, and then
// its calls.
func (t *Table) addEntry(d *Decoder, e *sentEntry) error {
	role := t.entryRole(e.first, e.role)
	kept := t.keepEntry(e, role)
	if d.WouldJoin(e.first, e.role) {
		kept = kept.With(keptJoined, []byte("false"))
	}
	if !e.hasOnlyCalls {
		if err := t.addContent(d, e, kept); err != nil || len(e.calls) == 0 {
			return err
		}
		kept = nil
	}
	if t.entryRole(TypeCall, e.role) != role {
		kept = kept.WithString(keptRole, role)
	}
	return fault.Under(jsontext.Path("$", t.CallList), t.addCalls(d, e.role, e.calls, kept))
}

// addContent adds the messages of the content of an entry.
func (t *Table) addContent(d *Decoder, e *sentEntry, kept jsontext.Object) error {
	if len(e.parts) == 0 || t.CallList != "" && t.Store == nil {
		return fault.Under(jsontext.Path("$", t.Content), d.AddText(e.role, e.content, kept))
	}
	return t.addRuns(d, e.role, e.parts, kept)
}

// keepEntry returns what is kept of an entry whose plain form has a role.
func (t *Table) keepEntry(e *sentEntry, role string) (kept jsontext.Object) {
	if e.at.in != "" {
		kept = kept.WithString(keptPlace, e.at.in)
	}
	plain := [2]jsontext.Member{{Name: "role", Value: e.rest.Get("role")}, {Name: t.Content, Value: e.sent}}
	switch {
	case e.at.isPrompt:
		plain[0].Value = nil
	case !jsontext.IsText(plain[0].Value, role):
		plain[0].Value = jsontext.AppendQuote(nil, role)
	}
	kept = append(kept, Difference(e.rest, plain[:])...)
	if e.isLone {
		kept = kept.With(keptLone, []byte("true"))
	}
	return kept
}

// readRole returns the role of the messages of an entry.
func (t *Table) readRole(at place, entry jsontext.Object) (string, error) {
	sent := entry.Get("role")
	switch isNull := jsontext.IsNull(sent); {
	case at.isPrompt && (isNull || jsontext.Kind(sent) == "string"):
		return "system", nil
	case isNull && t.NoRole != "":
		return t.NoRole, nil
	}
	kinds := []string{"string"}
	if t.NoRole != "" {
		kinds = append(kinds, "null", "nothing")
	}
	return t.messageRole(entry.String("role")), entry.Want("role", kinds...)
}

// resultEntry returns the word for an entry that is a result, nil for another one,
// and an error for one without that of which it is the result.
func (t *Table) resultEntry(entry jsontext.Object) (*Word, error) {
	for i := range t.Results {
		w := &t.Results[i]
		if w.Role == "" || !jsontext.IsText(entry.Get("role"), w.Role) {
			continue
		}
		if w.KeyID == "" && entry.String(w.KeyName) == "" {
			return nil, &fault.Error{Path: "$.role", Got: "a result of nothing"}
		}
		return w, nil
	}
	return nil, nil
}

// wholeContent returns content as messages have it: an element that stands for
// a list as the list, and JSON that a server has parsed as its text. Cloudflare
// does that if the answer has to be JSON.
func (t *Table) wholeContent(role string, content []byte) (whole []byte, lone bool) {
	switch {
	case jsontext.Kind(content) != "object":
	case t.Lone:
		return jsontext.Array([][]byte{content}), true
	case t.Lax && role == "assistant":
		return jsontext.AppendQuote(nil, string(content)), false
	}
	return content, false
}

// IsEmpty reports whether content has no text and no parts.
func IsEmpty(content []byte) bool {
	switch jsontext.Kind(content) {
	case "nothing", "null":
		return true
	case "string":
		return len(content) == len(`""`)
	case "array":
		parts, _ := jsontext.Elements(content)
		return len(parts) == 0
	}
	return false
}

// errTyped is returned for a part that has a type where parts have none:
// messages use this member.
var errTyped = &fault.Error{Path: "$", Got: "has a type"}

// readParts reads the parts of an entry. Those of a system prompt are all said,
// whatever they are.
func (t *Table) readParts(at place, role string, content []byte) (parts []TablePart, err error) {
	under := func(i int, err error) error {
		path := jsontext.Path("$", t.Content)
		if i >= 0 {
			path = jsontext.Index(path, i)
		}
		return fault.Under(path, err)
	}
	switch kind := jsontext.Kind(content); {
	case kind == "string" && t.Bare, jsontext.IsNull(content) && (t.Strict || t.mayLackContent()):
		return nil, nil
	}
	elements, err := jsontext.Elements(content)
	if err != nil {
		return nil, under(-1, err)
	}
	parts = make([]TablePart, len(elements))
	for i, raw := range elements {
		p := &parts[i]
		if p.Members, err = jsontext.Members(raw); err == nil {
			p.Raw = raw
			err = t.ReadPart(p, role)
		}
		if err != nil {
			return nil, under(i, err)
		}
		if at.isPrompt {
			p.Typ = TypeText
		}
	}
	if t.Untyped && !t.Neutral && slices.ContainsFunc(parts, TablePart.isTypedText) {
		return nil, errTyped
	}
	return parts, nil
}

func (p TablePart) isTypedText() bool { return p.Typ == TypeText && p.Members.Get("type") != nil }

// ReadPart sets what a part is that has Raw and Members.
func (t *Table) ReadPart(p *TablePart, role string) error {
	p.Typ = TypeText
	if t.Untyped {
		for _, m := range p.Members {
			if m.Name == "text" {
				if err := p.Members.Want("text", "string", "null"); err != nil {
					return err
				}
			}
			if err := p.readUntyped(TypeCall, role, t.Calls, m); err != nil {
				return err
			}
			if err := p.readUntyped(TypeResult, role, t.Results, m); err != nil {
				return err
			}
		}
		return nil
	}
	typ := p.Members.Get("type")
	if jsontext.Kind(typ) != "string" && !t.Lax {
		return p.Members.Want("type", "string")
	}
	if jsontext.IsText(typ, "text") {
		return p.Members.Want("text", "string")
	}
	if t.CallList != "" {
		return nil
	}
	for i := range t.Calls {
		if jsontext.IsText(typ, t.Calls[i].Type) {
			p.Typ, p.word, p.Inner = TypeCall, &t.Calls[i], p.Members
			if role != "assistant" {
				return &fault.Error{Path: "$.type", Got: "a call that the model does not make"}
			}
		}
	}
	for i := range t.Results {
		if jsontext.IsText(typ, t.Results[i].Type) {
			p.Typ, p.word, p.Inner = TypeResult, &t.Results[i], p.Members
		}
	}
	return nil
}

// readCalls returns the calls of an entry whose calls are not parts, and its
// other members. A list without calls is one of these.
func (t *Table) readCalls(entry jsontext.Object) (calls []TablePart, rest jsontext.Object, err error) {
	rest = entry
	if list := entry.Get(t.CallList); !jsontext.IsNull(list) {
		elements, err := jsontext.Elements(list)
		if err != nil {
			return nil, nil, err
		}
		calls = make([]TablePart, len(elements))
		for i, raw := range elements {
			p := &calls[i]
			p.Typ, p.Raw = TypeCall, raw
			if p.Members, err = jsontext.Members(raw); err == nil {
				err = p.find(t.callWord(p.Members.Get("type")))
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if len(calls) > 0 {
			rest = rest.Without(t.CallList)
		}
	}
	for i := range t.Calls {
		w := &t.Calls[i]
		if w.Member == "" || jsontext.IsNull(entry.Get(w.Member)) {
			continue
		}
		p := TablePart{Typ: TypeCall, Raw: entry.Get(w.Member)}
		if p.Members, err = jsontext.Members(p.Raw); err != nil {
			return nil, nil, err
		}
		p.word, p.Inner = w, p.Members
		input, _ := w.Form.read(p.value())
		if p.Inner.String(w.KeyName) != "" || input != nil { // some providers send a zero value
			calls, rest = append(calls, p), rest.Without(w.Member)
		}
	}
	return calls, rest, nil
}

// callWord returns the word for an element of the list of calls.
func (t *Table) callWord(typ []byte) *Word {
	for i := range t.Calls {
		if w := &t.Calls[i]; w.Member == "" && jsontext.IsText(typ, w.Type) {
			return w
		}
	}
	return &t.Calls[0]
}

// addRuns adds the messages of parts, one for each run of a type.
func (t *Table) addRuns(d *Decoder, role string, parts []TablePart, kept jsontext.Object) error {
	first := t.entryRole(parts[0].Typ, role)
	for begin := 0; begin < len(parts); {
		run := parts[begin : begin+1]
		for run[0].Typ != TypeResult && begin+len(run) < len(parts) && parts[begin+len(run)].Typ == run[0].Typ {
			run = parts[begin : begin+len(run)+1]
		}
		if begin > 0 {
			kept = jsontext.Object{{Name: keptJoined, Value: []byte("true")}}
			if t.entryRole(run[0].Typ, role) != first {
				kept = kept.WithString(keptRole, first)
			}
		}
		var err error
		switch run[0].Typ {
		case TypeCall:
			err = t.addCalls(d, role, run, kept)
		case TypeResult:
			err = t.addResult(d, &run[0], kept)
		default:
			err = t.addText(d, role, run, kept)
		}
		if err != nil {
			return fault.Under(jsontext.Index(jsontext.Path("$", t.Content), begin), err)
		}
		begin += len(run)
	}
	return nil
}

func (t *Table) addCalls(d *Decoder, role string, parts []TablePart, kept jsontext.Object) error {
	calls := make([]Call, len(parts))
	for i := range parts {
		p := &parts[i]
		id, name := p.id(), p.name()
		input, plain := p.word.Form.read(p.value())
		part, inner := p.word.plain(p.As, wordValues{id: id, name: name, value: plain})
		calls[i] = Call{ID: jsontext.Unquote(id), Name: jsontext.Unquote(name), Input: input, Kept: p.keep(nil, part, inner)}
	}
	return d.AddCalls(role, calls, kept)
}

func (t *Table) addResult(d *Decoder, p *TablePart, kept jsontext.Object) error {
	w, id, name := p.word, p.id(), []byte(nil)
	r := Result{ID: jsontext.Unquote(id)}
	if w.KeyName != "" {
		name = p.name()
		if r.Name = jsontext.Unquote(name); r.Name == "" {
			r.Name = d.CallName(r.ID)
			name = jsontext.AppendQuote(nil, r.Name)
		}
	}
	failed := p.Inner.Get(w.KeyFailed)
	switch {
	case jsontext.Kind(failed) == "bool" && w.FailedText == "":
		r.IsError = failed
	case w.FailedText != "" && jsontext.IsText(failed, w.FailedText):
		r.IsError = []byte("true")
	default:
		failed = nil
	}
	value, plain := w.Form.read(p.value())
	r.Content = value
	part, inner := w.plain(p.As, wordValues{id: id, name: name, value: plain, failed: failed})
	r.Kept = p.keep(kept, part, inner)
	return d.AddResult(r)
}

// addText adds a text message. Where parts are stored in other words, its content
// is a text if that is all.
func (t *Table) addText(d *Decoder, role string, parts []TablePart, kept jsontext.Object) error {
	if only := parts[0].Members; t.Store != nil && !t.Bare && len(parts) == 1 && len(only) == len(t.TextPart(nil)) &&
		t.IsText(only) {
		text := only.Get("text")
		if len(kept) == 0 && string(text) == `""` {
			// Other formats have an empty text next to calls, which is left
			// out.
			kept = kept.With(keptJoined, []byte("false"))
		}
		return d.AddText(role, text, kept)
	}
	content := make([][]byte, len(parts))
	for i := range parts {
		if content[i] = parts[i].Raw; t.Store != nil {
			content[i] = t.Store(&parts[i])
		}
	}
	return d.AddText(role, jsontext.Array(content), kept)
}

// IsText reports whether a part is a text.
func (t *Table) IsText(part jsontext.Object) bool {
	return jsontext.Kind(part.Get("text")) == "string" && (t.Untyped || jsontext.IsText(part.Get("type"), "text"))
}
