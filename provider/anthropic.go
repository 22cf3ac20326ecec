package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// anthropic is the codec of the Messages API. An entry of its conversation has a
// role and content, a text or blocks. Each run of blocks that are neither calls
// nor results is one text message, each run of calls one message of calls, and
// each result a message. What is kept, on the first message of an entry, is the
// difference of the entry; besides
//
//	in      "system" for the system prompt, "messages" for a text of the
//	        conversation whose role would not tell that it is one
//	role    of the entry a result is in, if that is not "user"
//	block   the difference of a result's block
//	joined  as in package origin
type anthropic struct{}

func (a anthropic) request(d *decoder, body jsontext.Object) (jsontext.Object, error) {
	settings := body.Without("messages")
	if system := body.Get("system"); system != nil && jsontext.Kind(system) != "null" {
		if err := want("$.system", system, "string", "array"); err != nil {
			return nil, err
		}
		if err := d.text("$.system", "system", system, jsontext.Object{}.WithString("in", "system")); err != nil {
			return nil, err
		}
		settings = settings.Without("system")
	}
	if err := want("$.messages", body.Get("messages"), "array"); err != nil {
		return nil, err
	}
	entries, err := jsontext.Elements(body.Get("messages"))
	if err != nil {
		return nil, err
	}
	for i, entry := range entries {
		path := jsontext.Index("$.messages", i)
		if err := want(path, entry, "object"); err != nil {
			return nil, err
		}
		if err := a.entry(d, path, entry); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

func (a anthropic) response(d *decoder, body jsontext.Object) (string, []byte, int64, error) {
	if err := want("$.content", body.Get("content"), "array", "string"); err != nil {
		return "", nil, 0, err
	}
	entry := jsontext.Object{}.WithString("role", "assistant").With("content", body.Get("content"))
	if role := body.Get("role"); jsontext.Kind(role) == "string" {
		entry = entry.With("role", role)
	}
	err := a.entry(d, "$", entry.JSON())
	return stringOf(body.Get("id")), body.Get("stop_reason"), 0, err
}

func (anthropic) assemble() assembler { return &anthropicStream{} }

// entry adds the messages of an entry.
func (a anthropic) entry(d *decoder, path string, raw []byte) error {
	entry, err := jsontext.Members(raw)
	if err != nil {
		return err
	}
	object := jsontext.Object(entry)
	role, content := stringOf(object.Get("role")), object.Get("content")
	pieces, ok := anthropicPieces(role, content)
	if !ok || jsontext.Kind(object.Get("role")) != "string" {
		return d.item(path, role, "message", raw)
	}
	kept := difference(object.Without("role", "content"), nil)
	if pieces[0].follows(d.msgs, role) {
		kept = kept.With("joined", []byte("false"))
	}
	for _, p := range pieces {
		if err := p.add(d, path+".content", role, kept); err != nil {
			return err
		}
		kept = jsontext.Object{{Name: "joined", Value: []byte("true")}}
	}
	return nil
}

// anthropicPiece is what of an entry becomes one message.
type anthropicPiece struct {
	kind   string            // "text", "tool_use" or "tool_result"
	text   []byte            // content that is a string
	raw    [][]byte          // the blocks
	blocks []jsontext.Object // the same
}

// anthropicPieces splits content. It returns false if it is nothing that the
// messages have.
func anthropicPieces(role string, content []byte) ([]anthropicPiece, bool) {
	switch jsontext.Kind(content) {
	case "string":
		return []anthropicPiece{{kind: "text", text: content}}, true
	case "array":
	default:
		return nil, false
	}
	raw, err := jsontext.Elements(content)
	if err != nil {
		return nil, false
	}
	if len(raw) == 0 {
		return []anthropicPiece{{kind: "text"}}, true
	}
	var pieces []anthropicPiece
	for _, r := range raw {
		members, err := jsontext.Members(r)
		block := jsontext.Object(members)
		if err != nil || jsontext.Kind(block.Get("type")) != "string" {
			return nil, false
		}
		kind := stringOf(block.Get("type"))
		switch {
		case kind == "tool_use" && role != "assistant", kind == "text" && jsontext.Kind(block.Get("text")) != "string":
			return nil, false
		case kind != "tool_use" && kind != "tool_result":
			kind = "text"
		}
		if n := len(pieces); n == 0 || pieces[n-1].kind != kind || kind == "tool_result" {
			pieces = append(pieces, anthropicPiece{kind: kind})
		}
		last := &pieces[len(pieces)-1]
		last.raw, last.blocks = append(last.raw, r), append(last.blocks, block)
	}
	return pieces, true
}

// follows reports whether the piece, as the first of an entry, would be taken
// for more of the entry before it: see anthropicTogether.
func (p anthropicPiece) follows(msgs []state.Message, role string) bool {
	if len(msgs) == 0 {
		return false
	}
	before := msgs[len(msgs)-1]
	switch p.kind {
	case "tool_use":
		return before.Role() == role && (before.Type() == "text" || before.Type() == "tool_call")
	case "tool_result":
		return before.Type() == "tool_result"
	}
	return false
}

// add adds the message of a piece.
func (p anthropicPiece) add(d *decoder, path, role string, kept jsontext.Object) error {
	switch p.kind {
	case "tool_use":
		calls := make([]call, len(p.blocks))
		for i, block := range p.blocks {
			c := call{id: stringOf(block.Get("id")), name: stringOf(block.Get("name")), input: block.Get("input")}
			c.kept = difference(block, anthropicCall(c.id, c.name, c.input))
			calls[i] = c
		}
		return d.calls(path, role, calls, kept)
	case "tool_result":
		block := p.blocks[0]
		id, content, isError := stringOf(block.Get("tool_use_id")), block.Get("content"), block.Get("is_error")
		if jsontext.Kind(isError) != "bool" {
			isError = nil
		}
		if of := difference(block, anthropicResult(id, anthropicOutput(content), isError)); of != nil {
			kept = kept.With("block", of.JSON())
		}
		if role != "user" {
			kept = kept.WithString("role", role)
		}
		return d.result(path, id, "", content, isError, kept)
	}
	if role != "user" && role != "assistant" {
		kept = kept.WithString("in", "messages")
	}
	content := p.text
	if content == nil {
		content = jsontext.Array(p.raw)
	}
	return d.text(path, role, content, kept)
}
