package provider

import (
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// gemini is the format of generateContent, of the Gemini API and of Vertex AI.
// Both take the names of members in camel case and in snake case, so what is
// kept tells the spelling.
//
// Of a content, what is said becomes a text message, calls that follow each
// other become one message and each result becomes one. Kept are:
//
//	in       where a content is that is no element of contents
//	bare     a system instruction that is its text, or null
//	joined   a message of the same content as the one before
//	role     of that content, if it is not what such a message has
//	as       the member that holds a call or a result, if it is spelled in snake case
//	block    the difference of what is in that member
//	part     the difference of the part with that member
type gemini struct{}

const (
	keptIn     = "in"
	keptBare   = "bare"
	keptJoined = "joined"
	keptRole   = "role"
	keptAs     = "as"
	keptBlock  = "block"
	keptPart   = "part"
)

// The places of a content.
const (
	inContents     = "contents" // the only one, not in an array
	inInstruction  = "systemInstruction"
	inInstruction2 = "system_instruction"
	inElement      = "message" // of contents
)

func (g gemini) request(d *decoder, body jsontext.Object) (jsontext.Object, error) {
	for _, name := range []string{inInstruction, inInstruction2} {
		if value := body.Get(name); value != nil {
			if err := g.instruction(d, name, value); err != nil {
				return nil, err
			}
		}
	}
	contents := body.Get("contents")
	if err := want("$.contents", contents, "array", "object"); err != nil {
		return nil, err
	}
	if jsontext.Kind(contents) == "object" {
		if err := g.content(d, geminiPlace{"$.contents", inContents, "user"}, contents); err != nil {
			return nil, err
		}
	} else {
		elements, err := jsontext.Elements(contents)
		if err != nil {
			return nil, err
		}
		for i, element := range elements {
			if err := g.content(d, geminiPlace{jsontext.Index("$.contents", i), inElement, "user"}, element); err != nil {
				return nil, err
			}
		}
	}
	return body.Without(inInstruction, inInstruction2, "contents"), nil
}

// instruction adds a system instruction: a content, or just a text.
func (g gemini) instruction(d *decoder, name string, value []byte) error {
	path := jsontext.Path("$", name)
	if err := want(path, value, "object", "string", "null"); err != nil {
		return err
	}
	if jsontext.Kind(value) == "object" {
		return g.content(d, geminiPlace{path, name, "system"}, value)
	}
	kept := jsontext.Object{}.WithString(keptIn, name).With(keptBare, []byte("true"))
	return d.text(path, "system", value, kept)
}

// geminiPlace is where a content is.
type geminiPlace struct {
	path string
	in   string
	role string // of a content that has none
}

// geminiPart is a part of a content.
type geminiPart struct {
	path    string
	raw     []byte
	members jsontext.Object
	typ     string          // of the message it becomes
	as      string          // the member with the call or the result
	inner   jsontext.Object // what is in that
}

// content adds the messages of a content.
func (g gemini) content(d *decoder, place geminiPlace, value []byte) error {
	if err := want(place.path, value, "object"); err != nil {
		return err
	}
	sent, err := jsontext.Members(value)
	if err != nil {
		return err
	}
	entry := jsontext.Object(sent)
	role, err := g.role(place, entry)
	if err != nil {
		return err
	}
	parts, err := g.parts(place, entry)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.typ == "text" && p.members.Get("type") != nil { // it would be taken for ours
			return d.item(place.path, role, place.in, value)
		}
	}

	var kept jsontext.Object
	if place.in != inElement {
		kept = kept.WithString(keptIn, place.in)
	}
	typ := "text"
	if len(parts) > 0 {
		typ = parts[0].typ
	}
	var plain jsontext.Object
	if place.role != "system" {
		plain = plain.WithString("role", geminiRole(typ, role))
	}
	if len(parts) == 0 {
		kept = append(kept, difference(entry, plain.With("parts", []byte("[]")))...)
		return d.text(place.path, role, []byte("[]"), kept)
	}
	kept = append(kept, difference(entry.Without("parts"), plain)...)
	if g.wouldJoin(d.msgs, typ, role) {
		kept = kept.With(keptJoined, []byte("false"))
	}
	for of := geminiRole(typ, role); len(parts) > 0; {
		typ, n := parts[0].typ, 1
		for n < len(parts) && parts[n].typ == typ && typ != "tool_result" {
			n++
		}
		switch typ {
		case "tool_call":
			err = g.calls(d, role, parts[:n], kept)
		case "tool_result":
			err = g.result(d, parts[0], kept)
		default:
			err = g.text(d, role, parts[:n], kept)
		}
		if err != nil {
			return err
		}
		if parts = parts[n:]; len(parts) > 0 {
			kept = jsontext.Object{}.With(keptJoined, []byte("true"))
			if geminiRole(parts[0].typ, role) != of {
				kept = kept.WithString(keptRole, of)
			}
		}
	}
	return nil
}

// role returns the role of the messages of a content.
func (gemini) role(place geminiPlace, entry jsontext.Object) (string, error) {
	value := entry.Get("role")
	if err := want(jsontext.Path(place.path, "role"), value, "string", "null", "nothing"); err != nil {
		return "", err
	}
	switch role := stringOf(value); {
	case place.role == "system", jsontext.Kind(value) != "string":
		return place.role, nil
	case role == "model":
		return "assistant", nil
	default:
		return role, nil
	}
}

// parts returns the parts of a content. Those of a system instruction are all
// said, whatever they are.
func (gemini) parts(place geminiPlace, entry jsontext.Object) ([]geminiPart, error) {
	path := jsontext.Path(place.path, "parts")
	value := entry.Get("parts")
	if err := want(path, value, "array", "null", "nothing"); err != nil || jsontext.Kind(value) != "array" {
		return nil, err
	}
	elements, err := jsontext.Elements(value)
	if err != nil {
		return nil, err
	}
	parts := make([]geminiPart, len(elements))
	for i, element := range elements {
		p, err := geminiPartOf(jsontext.Index(path, i), element)
		if err != nil {
			return nil, err
		}
		if place.role == "system" {
			p.typ = "text"
		}
		parts[i] = p
	}
	return parts, nil
}

// geminiPartOf reads a part. A member that is null is as good as missing there.
func geminiPartOf(path string, value []byte) (geminiPart, error) {
	p := geminiPart{path: path, raw: value, typ: "text"}
	if err := want(path, value, "object"); err != nil {
		return p, err
	}
	members, err := jsontext.Members(value)
	if err != nil {
		return p, err
	}
	p.members = members
	for _, m := range members {
		typ := ""
		switch m.Name {
		case "text":
			if err := want(jsontext.Path(path, m.Name), m.Value, "string", "null"); err != nil {
				return p, err
			}
			continue
		case "functionCall", "function_call":
			typ = "tool_call"
		case "functionResponse", "function_response":
			typ = "tool_result"
		default:
			continue
		}
		at := jsontext.Path(path, m.Name)
		if err := want(at, m.Value, "object", "null"); err != nil {
			return p, err
		}
		if jsontext.Kind(m.Value) == "null" || p.as != "" {
			continue
		}
		inner, err := jsontext.Members(m.Value)
		if err != nil {
			return p, err
		}
		p.typ, p.as, p.inner = typ, m.Name, inner
		for _, name := range []string{"id", "name"} {
			if err := want(jsontext.Path(at, name), p.inner.Get(name), "string", "null", "nothing"); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// text adds a run of what is said: its text if it is nothing but that, else the
// parts as they are, where those with a text for the reader say so.
func (g gemini) text(d *decoder, role string, parts []geminiPart, kept jsontext.Object) error {
	text := parts[0].members.Get("text")
	if len(parts) == 1 && len(parts[0].members) == 1 && jsontext.Kind(text) == "string" {
		if len(kept) == 0 && string(text) == `""` { // to tell it from what another format has beside calls
			kept = kept.With(keptJoined, []byte("false"))
		}
		return d.text(parts[0].path, role, text, kept)
	}
	content := make([][]byte, len(parts))
	for i, p := range parts {
		content[i] = p.raw
		if jsontext.Kind(p.members.Get("text")) == "string" && string(p.members.Get("thought")) != "true" {
			content[i] = append(jsontext.Object{}.WithString("type", "text"), p.members...).JSON()
		}
	}
	return d.text(parts[0].path, role, jsontext.Array(content), kept)
}

func (g gemini) calls(d *decoder, role string, parts []geminiPart, kept jsontext.Object) error {
	calls := make([]call, len(parts))
	for i, p := range parts {
		c := call{id: stringOf(p.inner.Get("id")), name: stringOf(p.inner.Get("name")), input: p.inner.Get("args")}
		c.kept = p.kept(nil, g.call(c.id, c.name, c.input))
		calls[i] = c
	}
	return d.calls(parts[0].path, role, calls, kept)
}

func (g gemini) result(d *decoder, p geminiPart, kept jsontext.Object) error {
	id, name, response := stringOf(p.inner.Get("id")), stringOf(p.inner.Get("name")), p.inner.Get("response")
	if name == "" {
		name = d.names[id]
	}
	return d.result(p.path, id, name, response, nil, p.kept(kept, g.reply(id, name, response)))
}

// kept adds what has to be kept of a call or a result, whose plain encoding is
// given.
func (p geminiPart) kept(kept, plain jsontext.Object) jsontext.Object {
	switch p.as {
	case "function_call", "function_response":
		kept = kept.WithString(keptAs, p.as)
	}
	if block := difference(p.inner, plain); block != nil {
		kept = kept.With(keptBlock, block.JSON())
	}
	if part := difference(p.members.Without(p.as), nil); part != nil {
		kept = kept.With(keptPart, part.JSON())
	}
	return kept
}

// geminiRole returns the role of a content that has nothing but such a message.
func geminiRole(typ, role string) string {
	if typ == "tool_call" || typ == "text" && role == "assistant" {
		return "model"
	}
	return "user"
}

// call returns a functionCall.
func (gemini) call(id, name string, args []byte) jsontext.Object {
	return geminiNamed(id, name).With("args", args)
}

// reply returns a functionResponse.
func (gemini) reply(id, name string, response []byte) jsontext.Object {
	return geminiNamed(id, name).With("response", response)
}

func geminiNamed(id, name string) jsontext.Object {
	var o jsontext.Object
	if id != "" {
		o = o.WithString("id", id)
	}
	return o.WithString("name", name)
}

// response reads the first candidate. There is none if the prompt was blocked.
func (g gemini) response(d *decoder, body jsontext.Object) (id string, stop []byte, created int64, err error) {
	id = stringOf(body.Get("responseId"))
	if at, err := time.Parse(time.RFC3339, stringOf(body.Get("createTime"))); err == nil {
		created = at.Unix()
	}
	value := body.Get("candidates")
	if err := want("$.candidates", value, "array", "null", "nothing"); err != nil || jsontext.Kind(value) != "array" {
		return id, nil, created, err
	}
	candidates, err := jsontext.Elements(value)
	if err != nil || len(candidates) == 0 {
		return id, nil, created, err
	}
	path := jsontext.Index("$.candidates", 0)
	if err := want(path, candidates[0], "object"); err != nil {
		return id, nil, created, err
	}
	members, err := jsontext.Members(candidates[0])
	if err != nil {
		return id, nil, created, err
	}
	first := jsontext.Object(members)
	path = jsontext.Path(path, "content")
	content := first.Get("content")
	if err := want(path, content, "object", "null", "nothing"); err != nil {
		return id, nil, created, err
	}
	if jsontext.Kind(content) == "object" {
		err = g.said(d, path, content)
	}
	return id, first.Get("finishReason"), created, err
}

// said adds what a response has as content. In a request, one without a role would
// be the user's.
func (g gemini) said(d *decoder, path string, content []byte) error {
	members, err := jsontext.Members(content)
	if err != nil {
		return err
	}
	if o := jsontext.Object(members); jsontext.Kind(o.Get("role")) != "string" {
		content = o.WithString("role", "model").JSON()
	}
	return g.content(d, geminiPlace{path, inElement, "assistant"}, content)
}

// wouldJoin reports whether a message after the others would become part of
// the content of the last, if it did not say anything about that.
func (g gemini) wouldJoin(msgs []state.Message, typ, role string) bool {
	if len(msgs) == 0 {
		return false
	}
	before := msgs[len(msgs)-1]
	if typ == "tool_result" {
		return before.Type() == typ
	}
	return typ == "tool_call" && before.Role() == role && (before.Type() == "text" || before.Type() == "tool_call")
}
