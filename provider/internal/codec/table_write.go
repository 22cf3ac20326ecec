package codec

import (
	"cmp"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// tableWriter makes entries of messages.
type tableWriter struct {
	*Encoder
	t       *Table
	prompts []*tableEntry
	alone   bool          // the only entry was not in a list
	open    *tableEntry   // which more messages may join, nil if there is none
	before  state.Message // the last message of the open entry
}

// tableEntry is an entry in the making.
type tableEntry struct {
	in      string        // the member with the prompt, "" for one of another format
	role    string        // "" for a prompt
	first   state.Message // nil for a prompt
	kept    jsontext.Object
	content content
	hasCall bool
	calls   [][]byte        // where they are not parts
	members jsontext.Object // with a call each
	added   jsontext.Object // kept by more messages, and members that programs have set
}

// encodeMessages returns the system prompt and the conversation.
func (t *Table) encodeMessages(e *Encoder, msgs []state.Message) (members jsontext.Object) {
	w := tableWriter{Encoder: e, t: t}
	for i, m := range msgs {
		w.Entries.Reach(i)
		switch m := m.(type) {
		case state.UnknownMessage:
			w.addItem(i, m)
		case state.TextMessage:
			w.addText(i, m, msgs[i+1:])
		case state.ToolCallMessage:
			w.addCalls(i, m)
		case state.ToolResultMessage:
			w.addResult(i, m)
		}
	}
	w.end()
	for _, p := range w.prompts {
		members = members.With(cmp.Or(p.in, t.Prompts[0]), w.promptJSON(p))
	}
	if only := w.Entries.Only(); w.alone && only != nil {
		return members.With(t.Entries, only)
	}
	return members.With(t.Entries, w.Entries.JSON())
}

// addItem adds an entry that was kept whole.
func (w *tableWriter) addItem(i int, m state.UnknownMessage) {
	item, in, ok := w.KeptItem(i, m)
	switch {
	case !ok:
	case w.t.isPrompt(in):
		members, _ := jsontext.Members(item) // checked with the message
		added := content{there: true}
		if added.parts, _ = jsontext.Elements(members.Get(w.t.Content)); added.parts == nil {
			added.parts = [][]byte{members.Get(w.t.Content)} // one that is not in a list
		}
		lone := jsontext.Object{}
		if jsontext.Kind(members.Get(w.t.Content)) == "object" {
			lone = lone.With(keptLone, []byte("true"))
		}
		w.addPrompt(in, append(lone, Difference(members.Without(w.t.Content), nil)...), added)
	default:
		w.end()
		w.Entries.Add(item)
		w.alone = in == w.t.Entries
	}
}

// addText adds a text. rest are the messages after it.
func (w *tableWriter) addText(i int, m state.TextMessage, rest []state.Message) {
	kept, own := w.Kept(m)
	in := kept.String(keptPlace)
	isPrompt := w.t.Prompts != nil && !w.Entries.Begun() && w.open == nil && origin.IsSystem(m) && (!own || w.t.isPrompt(in))
	role := m.Role()
	_, saysRole := SentMember(kept, "role")
	saysRole = saysRole || kept.Bool(keptJoined) // with the message before it
	switch {
	case isPrompt:
		role = "system"
	case saysRole, w.t.Lax, role == "user", role == "assistant", role == "system":
	case role == "developer":
		role = "system"
	case w.t.OtherRole != "":
		w.Omit(i, w.t.OtherRole)
		role = "user"
	}
	said := w.encodeText(i, m, role, own)
	if isPrompt && (own || !said.isEmpty()) {
		w.addPrompt(in, kept, said)
		return
	}
	sent := w.t.entryRole(TypeText, role)
	if role == "system" && !w.t.Lax && !saysRole {
		sent = w.t.System
	}
	joined := w.isJoined(m, w.roleOf(kept, sent))
	depends := !own && said.isBlank() && !w.t.Bare // on what follows
	if !own && said.isEmpty() || depends && w.hasCompany(m, joined, rest) {
		w.OmitOwnMembers(i, m, w.t.OwnOfText)
		return
	}
	if depends {
		i = none
	}
	w.entryFor(i, m, kept, sent, joined).content.add(w.t, said)
}

// addPrompt adds to the system prompt of the same member. One of another format
// has none: it goes to the first, or where the API documents it.
func (w *tableWriter) addPrompt(in string, kept jsontext.Object, said content) {
	if w.Entries.Begun() || w.open != nil {
		w.Entries.EndCuts()
	}
	for _, p := range w.prompts {
		if in == "" || in == p.in {
			p.content.add(w.t, said)
			return
		}
	}
	p := &tableEntry{in: cmp.Or(in, w.t.Prompts[0]), kept: kept}
	p.content.add(w.t, said)
	w.prompts = append(w.prompts, p)
}

// promptJSON returns the system prompt: content, an entry, or the text of one.
func (w *tableWriter) promptJSON(p *tableEntry) []byte {
	if w.t.PromptContent {
		return p.content.json()
	}
	if p.kept.Bool(keptBare) && len(p.content.parts) == 1 {
		part, _ := jsontext.Members(p.content.parts[0]) // made here
		return part.Get("text")
	}
	return w.json(p)
}

// hasCompany reports whether the entry of a text has something else to say.
func (w *tableWriter) hasCompany(m state.Message, joined bool, rest []state.Message) bool {
	for _, next := range rest {
		if _, unknown := next.(state.UnknownMessage); !unknown {
			return joined || next.Type() == TypeCall && origin.Joins(m, next)
		}
	}
	return joined
}

func (w *tableWriter) addCalls(i int, m state.ToolCallMessage) {
	calls := messages_.SharedCalls(m)
	if len(calls) == 0 && w.t.ResultsApart { // it would part results
		return
	}
	kept, own := w.Kept(m)
	sent := w.t.entryRole(TypeCall, m.Role())
	open := w.entryFor(i, m, kept, sent, w.isJoined(m, w.roleOf(kept, sent)))
	for _, c := range calls {
		kept, _ := w.KeptOfCall(c)
		added := w.OwnMembersOfCall(c, w.t.OwnOfCall)
		if first := w.t.FirstCall; !own && !open.hasCall && len(added) == 0 && first.Name != "" {
			added = jsontext.Object{first}
		}
		open.hasCall = true
		word, isKind := findWord(w.t.Calls, kept, c.ID)
		if word.Member != "" && open.members.Get(word.Member) != nil { // it has one
			word, isKind = &w.t.Calls[0], false
		}
		if !isKind {
			kept = nil
		}
		plain := wordValues{
			id: jsontext.AppendQuote(nil, c.ID), name: jsontext.AppendQuote(nil, c.Name),
			value: word.Form.write(ValueOrNil(c.Input), own),
		}
		part := word.restore(plain, kept, added, func(sent []byte) bool { return word.Form.reads(sent, c.Input) })
		switch {
		case w.t.CallList == "":
			open.content.add(w.t, content{parts: [][]byte{part}})
		case word.Member != "":
			open.members = open.members.With(word.Member, part)
		default:
			open.calls = append(open.calls, part)
		}
	}
}

// ForeignResult is a result that comes from another format.
type ForeignResult struct {
	state.ToolResultMessage
	Content []byte
	Parts   []Part // the elements of the content, if all of it is content
}

func (w *tableWriter) addResult(i int, m state.ToolResultMessage) {
	kept, own := w.Kept(m)
	call, value, failed := m.Call(), ValueOrNil(m.Content()), []byte(nil)
	ofKind := kept
	if !own {
		ofKind, _ = w.KeptOfCall(call)
	}
	word, isKind := findWord(w.t.Results, ofKind, call.ID)
	if !isKind {
		kept = nil
	}
	sent := w.t.entryRole(TypeResult, "")
	joined := word.Role == "" && w.isJoined(m, w.roleOf(kept, sent))
	var more jsontext.Object
	if own {
		value = word.Form.write(value, true)
	} else {
		value, more = w.output(i, m, word)
	}
	switch flag, _ := m.Extra("is_error"); {
	case word.KeyFailed == "" && w.t.Output == nil:
		w.OmitIsError(i, m)
	case word.FailedText == "" && jsontext.Kind([]byte(flag)) == "bool":
		failed = []byte(flag)
	case word.FailedText != "" && m.IsError():
		failed = jsontext.AppendQuote(nil, word.FailedText)
	}
	id, name := jsontext.AppendQuote(nil, call.ID), jsontext.AppendQuote(nil, call.Name)
	plain := wordValues{id: id, name: name, value: value, failed: failed, more: more, isResult: true}
	part := word.restore(plain, kept, OwnMembers(m, w.t.OwnOfResult), func(sent []byte) bool {
		return word.Form.reads(sent, m.Content())
	})
	if word.Role != "" {
		w.end()
		w.Entries.Cut(i)
		w.Entries.Add(part)
		return
	}
	w.entryFor(i, m, kept, sent, joined).content.add(w.t, content{parts: [][]byte{part}})
}

// output returns what a result of another format says, and more members.
func (w *tableWriter) output(i int, m state.ToolResultMessage, word *Word) (value []byte, more jsontext.Object) {
	r := ForeignResult{ToolResultMessage: m, Content: ValueOrNil(m.Content())}
	if parts := w.ReadParts(m, origin.RoleTool, r.Content); AreParts(parts) || !w.t.Untyped && w.HasParts(m, r.Content) {
		r.Parts = parts
	}
	switch {
	case w.t.Output != nil:
		return w.t.Output(w.Encoder, i, r)
	case r.Parts != nil:
		said := w.encodeParts(i, origin.RoleTool, r.Parts)
		return word.Form.write(said.json(), false), nil
	case jsontext.Kind(r.Content) == "array":
		r.Content = jsontext.AppendQuote(nil, string(r.Content))
	}
	return word.Form.write(r.Content, false), nil
}

// isJoined reports whether a message belongs to the open entry, if it has the
// role. Results go together unless they say that they do not. Any other message
// follows [origin.Joins].
func (w *tableWriter) isJoined(m state.Message, role string) bool {
	if w.open == nil || w.before == nil {
		return false
	}
	_, own := w.Kept(m)
	joined, isKnown := origin.Joined(m)
	isResult, afterResult := m.Type() == TypeResult, w.before.Type() == TypeResult
	apart := w.t.ResultsApart && (isResult || afterResult)
	switch {
	case apart && (!own || !isKnown):
		return isResult && afterResult
	case w.open.role != role:
		return false
	case isKnown:
		return joined
	case isResult:
		return afterResult
	}
	return origin.Joins(w.before, m)
}

// roleOf returns the role of the entry of a message, which it keeps if it is not
// the one that such a message has.
func (w *tableWriter) roleOf(kept jsontext.Object, sent string) string {
	return cmp.Or(kept.String(keptRole), sent)
}

// entryFor returns the entry for the i-th message: the open one if the message joins
// it. i is none if it depends on what follows whether the message is sent.
func (w *tableWriter) entryFor(i int, m state.Message, kept jsontext.Object, role string, joined bool) *tableEntry {
	if !joined {
		w.end()
		w.Entries.Cut(i)
		w.open = &tableEntry{role: role, first: m, kept: kept}
		w.alone = w.alone || kept.String(keptPlace) == w.t.Entries
	} else if added := kept.Object(more); len(added) > 0 {
		w.open.added = append(w.open.added, added.Without("role", w.t.Content)...)
	}
	w.open.added = append(w.open.added, OwnMembers(m, w.t.OwnOfText)...)
	w.before = m
	return w.open
}

// end ends the open entry. One that says nothing is left out: what was left out
// of it has been reported.
func (w *tableWriter) end() {
	if w.open != nil && !w.open.isEmpty() {
		w.Entries.Add(w.json(w.open))
	}
	w.open, w.before = nil, nil
}

func (en *tableEntry) isEmpty() bool {
	return en.content.isEmpty() && en.calls == nil && en.members == nil
}

// json returns an entry with what was kept of it. A role or parsed content that
// was kept holds as long as the message says what was read from it.
func (w *tableWriter) json(en *tableEntry) []byte {
	plain := make(jsontext.Object, 2, 4)
	plain[0].Name, plain[1] = "role", jsontext.Member{Name: w.t.Content, Value: en.content.json()}
	if en.first != nil {
		plain[0].Value = jsontext.AppendQuote(nil, en.role)
	}
	if len(en.content.parts) == 1 && en.kept.Bool(keptLone) {
		plain[1].Value = en.content.parts[0]
	}
	if en.calls != nil {
		plain = append(plain, jsontext.Member{Name: w.t.CallList, Value: jsontext.Array(en.calls)})
	}
	plain = append(plain, en.members...)
	if len(en.kept)+len(en.added) == 0 { // as of most that come from elsewhere
		if en.content.isEmpty() {
			plain[1].Value = []byte("null")
		}
		return plain.JSON()
	}
	changed := make([]string, 0, 4)
	switch sent, _ := SentMember(en.kept, w.t.Content); {
	case jsontext.Kind(sent) == "object" && w.t.Lax: // a server has parsed it
		if text := state.JSON(jsontext.Unquote(en.content.json())); text.Valid() && jsontext.Kind([]byte(text)) == "object" {
			plain[1].Value = []byte(text)
		}
		changed = append(changed, w.t.Content)
	case en.content.isEmpty():
		plain[1].Value = []byte("null")
	case en.content.there || string(en.content.value) != "[]":
		changed = append(changed, w.t.Content)
	}
	for _, m := range plain[2:] {
		changed = append(changed, m.Name)
	}
	if sent, differs := SentMember(en.kept, "role"); differs && en.first != nil && en.first.Type() != TypeResult {
		role := w.t.NoRole
		if jsontext.Kind(sent) == "string" {
			role = w.t.messageRole(jsontext.Unquote(sent))
		}
		if role != en.first.Role() {
			changed = append(changed, "role")
		}
	}
	return Restore(plain, More(en.kept, en.added), changed...).JSON()
}

// encodeText returns what a text message says as far as the API can express it
// for a role.
func (w *tableWriter) encodeText(i int, m state.TextMessage, role string, own bool) content {
	value := ValueOrNil(m.Content())
	switch kind := jsontext.Kind(value); {
	case kind == "string":
		return content{value: value}
	case kind != "array" && w.t.mayLackContent():
		return content{value: value, there: true}
	case kind != "array":
		return content{}
	case own:
		if parts := w.ownParts(value); len(parts) > 0 {
			return content{parts: parts}
		}
		return content{value: []byte("[]")}
	}
	parts := w.ReadParts(m, role, value)
	if len(parts) == 0 && w.t.Lax {
		w.Omit(i, "message without content")
	}
	return w.encodeParts(i, role, parts)
}

// encodeParts returns the content of parts of another format. If none is left, a
// text stands for them.
func (w *tableWriter) encodeParts(i int, role string, parts []Part) content {
	encoded, omitted := w.EncodeParts(i, role, w.t.withoutEmpty(w.Encoder, i, parts), w.t.Part)
	if len(encoded) == 0 {
		return content{value: Placeholder(omitted)}
	}
	if len(encoded) == 1 && w.t.Lax {
		if only, _ := jsontext.Members(encoded[0]); len(only) == 2 && only.Get("text") != nil {
			return content{value: only.Get("text")}
		}
	}
	return content{parts: encoded}
}

// withoutEmpty returns the parts without empty texts, if the API refuses them.
func (t *Table) withoutEmpty(e *Encoder, i int, parts []Part) []Part {
	if !t.NoEmptyText {
		return parts
	}
	return slices.DeleteFunc(parts, func(p Part) bool {
		isEmpty := string(p.Text) == `""`
		if isEmpty && !p.AsIs {
			e.OmitRest(i, p)
		}
		return isEmpty
	})
}

// ownParts returns the parts that addText made content of.
func (w *tableWriter) ownParts(value []byte) [][]byte {
	elements, _ := jsontext.Elements(value) // checked with the message
	if w.t.Load != nil {
		for i, element := range elements {
			elements[i] = w.t.Load(element)
		}
	}
	return elements
}

// content is what an entry says.
type content struct {
	value []byte // if that is all: a text, null or []
	parts [][]byte
	there bool // it is content without a value
}

// add adds content. Where content may be a text, a text that is not the only
// content becomes a part, unless it is empty.
func (c *content) add(t *Table, added content) {
	if jsontext.Kind(added.value) == "string" && !t.Bare {
		added = content{parts: [][]byte{t.TextPart(added.value).JSON()}}
	}
	switch {
	case added.isEmpty():
		return
	case c.saysNothing():
		*c = added
		return
	case added.saysNothing():
		return
	}
	*c = content{parts: append(c.allParts(t), added.allParts(t)...)}
}

// allParts returns the parts, of a text its part.
func (c *content) allParts(t *Table) [][]byte {
	if c.value != nil {
		return [][]byte{t.TextPart(c.value).JSON()}
	}
	return c.parts
}

func (c *content) isEmpty() bool { return c.value == nil && len(c.parts) == 0 && !c.there }

// saysNothing reports whether content has no text and no parts.
func (c *content) saysNothing() bool { return IsEmpty(c.value) && len(c.parts) == 0 }

// isBlank reports whether content is nothing but empty texts.
func (c *content) isBlank() bool {
	return c.saysNothing() || c.value == nil && !slices.ContainsFunc(c.parts, func(part []byte) bool {
		return string(part) != `{"text":""}`
	})
}

// json returns the content, nil if there is none.
func (c *content) json() []byte {
	if c.value != nil || len(c.parts) == 0 {
		return c.value
	}
	return jsontext.Array(c.parts)
}
