// Package anthropic is the format of Anthropic's Messages API.
//
// An entry of the conversation has a role and content, a text or blocks. Each
// run of blocks that are neither calls nor results becomes one text message,
// each run of calls one message with calls, and each result a message. The
// first message of an entry keeps the difference of the entry, and
//
//	in      "system" for the system prompt, "messages" for a text of the
//	        conversation whose role does not tell that it is one
//	role    of the entry of a result, unless it is "user"
//	block   the difference of the block of a result
//	joined  as in package origin
package anthropic

import (
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of the Messages API.
type Format struct{ codec.Reporting }

// DecodeRequest adds the messages of a request.
func (f Format) DecodeRequest(d *codec.Decoder, body jsontext.Object) (codec.Request, error) {
	settings := body.Without("messages")
	if system := body.Get("system"); !jsontext.IsNull(system) && string(system) != `""` { // which is no prompt
		if err := body.Want("system", "string", "array"); err != nil {
			return codec.Request{}, err
		}
		kept := jsontext.Object{}.WithString("in", "system")
		if err := d.AddText("system", system, kept); err != nil {
			return codec.Request{}, fault.Under("$.system", err)
		}
		settings = settings.Without("system")
	}
	if err := body.Want("messages", "array"); err != nil {
		return codec.Request{}, err
	}
	err := body.EachObject("messages", func(raw []byte, entry jsontext.Object) error {
		return decodeEntry(d, raw, entry)
	})
	return codec.SplitTools(settings, f.DecodeTool), err
}

// DecodeResponse adds the messages of a response.
func (Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("id"), Stop: body.Get("stop_reason")}
	if err := body.Want("content", "array", "string"); err != nil {
		return r, err
	}
	entry := jsontext.Object{}.WithString("role", "assistant").With("content", body.Get("content"))
	if role := body.Get("role"); jsontext.Kind(role) == "string" {
		entry = entry.With("role", role)
	}
	return r, decodeEntry(d, entry.JSON(), entry)
}

// decodeEntry adds the messages of an entry.
func decodeEntry(d *codec.Decoder, raw []byte, entry jsontext.Object) error {
	role := entry.String("role")
	runs, ok := splitContent(role, entry.Get("content"))
	if !ok || jsontext.Kind(entry.Get("role")) != "string" {
		return d.AddItem(role, "message", raw)
	}
	kept := codec.Difference(entry, jsontext.Object{
		{Name: "role", Value: entry.Get("role")}, {Name: "content", Value: entry.Get("content")},
	})
	if d.WouldJoin(runs[0].typ, role) {
		kept = kept.With("joined", []byte("false"))
	}
	for i, r := range runs {
		if i > 0 {
			kept = jsontext.Object{{Name: "joined", Value: []byte("true")}}
		}
		if err := r.add(d, role, kept); err != nil {
			return fault.Under("$.content", err)
		}
	}
	return nil
}

// run is what of an entry becomes one message.
type run struct {
	typ    string            // of the message
	text   []byte            // content that is a string
	raw    [][]byte          // the blocks
	blocks []jsontext.Object // the members of the same
}

// splitContent splits content. It returns false for content that no message can
// have.
func splitContent(role string, content []byte) ([]run, bool) {
	switch jsontext.Kind(content) {
	case "string":
		return []run{{typ: codec.TypeText, text: content}}, true
	case "array":
	default:
		return nil, false
	}
	elements, _ := jsontext.Elements(content)
	if len(elements) == 0 {
		return []run{{typ: codec.TypeText}}, true
	}
	var runs []run
	for _, raw := range elements {
		block, err := jsontext.Members(raw)
		if err != nil || jsontext.Kind(block.Get("type")) != "string" {
			return nil, false
		}
		typ := codec.TypeText
		switch block.String("type") {
		case "tool_use":
			if role != "assistant" {
				return nil, false
			}
			typ = codec.TypeCall
		case "tool_result":
			typ = codec.TypeResult
		case "text":
			if jsontext.Kind(block.Get("text")) != "string" {
				return nil, false
			}
		}
		if n := len(runs); n == 0 || runs[n-1].typ != typ || typ == codec.TypeResult {
			runs = append(runs, run{typ: typ})
		}
		last := &runs[len(runs)-1]
		last.raw, last.blocks = append(last.raw, raw), append(last.blocks, block)
	}
	return runs, true
}

// add adds the message.
func (r run) add(d *codec.Decoder, role string, kept jsontext.Object) error {
	switch r.typ {
	case codec.TypeCall:
		calls := make([]codec.Call, len(r.blocks))
		for i, block := range r.blocks {
			c := codec.Call{ID: block.String("id"), Name: block.String("name"), Input: block.Get("input")}
			c.Kept = codec.Difference(block, plainCall(codec.SentText(block, "id"), codec.SentText(block, "name"), c.Input))
			calls[i] = c
		}
		return d.AddCalls(role, calls, kept)
	case codec.TypeResult:
		return d.AddResult(resultOf(role, r.blocks[0], kept))
	}
	if role != "user" && role != "assistant" {
		kept = kept.WithString("in", "messages")
	}
	content := r.text
	if content == nil {
		content = jsontext.Array(r.raw)
	}
	return d.AddText(role, content, kept)
}

// resultOf returns the result of a block. kept is what the entry keeps.
func resultOf(role string, block, kept jsontext.Object) codec.Result {
	result := codec.Result{ID: block.String("tool_use_id"), Content: block.Get("content")}
	if isError := block.Get("is_error"); jsontext.Kind(isError) == "bool" {
		result.IsError = isError
	}
	plain := plainResult(codec.SentText(block, "tool_use_id"), outputContent(result.Content), result.IsError)
	if difference := codec.Difference(block, plain); difference != nil {
		kept = kept.With("block", difference.JSON())
	}
	if role != "user" {
		kept = kept.WithString("role", role)
	}
	result.Kept = kept
	return result
}
