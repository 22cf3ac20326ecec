// Package chat is the format of OpenAI's Chat Completions, which many other
// providers offer.
//
// An entry of a tool becomes a result. Any other entry says something, calls
// tools, or does both, and becomes a text message, a message with calls, or one
// of each. A message keeps the difference of the entry, of a call and of its
// function, and
//
//	kind    of a call or a result that is not of a function
//	parsed  true for a text whose JSON was the content itself
//	joined  as in package origin
package chat

import (
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of Chat Completions.
type Format struct{ codec.Reporting }

// DecodeRequest adds the messages of a request.
func (f Format) DecodeRequest(d *codec.Decoder, body jsontext.Object) (codec.Request, error) {
	if err := body.Want("messages", "array"); err != nil {
		return codec.Request{}, err
	}
	err := body.EachObject("messages", func(raw []byte, entry jsontext.Object) error {
		return decodeEntry(d, raw, entry)
	})
	return codec.SplitTools(body.Without("messages"), f.DecodeTool), err
}

// DecodeResponse adds the messages of the first choice.
func (Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("id"), Created: codec.UnixTime(body.Get("created"))}
	if err := body.Want("choices", "array", "null"); err != nil {
		return r, err
	}
	choices, _ := body.Elements("choices") // none if it is null
	if len(choices) == 0 {
		return r, nil
	}
	choice, err := jsontext.Members(choices[0])
	if err != nil {
		return r, fault.Under("$.choices[0]", err)
	}
	r.Stop = choice.Get("finish_reason")
	raw := choice.Get("message")
	if jsontext.IsNull(raw) { // as when a filter took it
		return r, nil
	}
	message, err := jsontext.Members(raw)
	if err == nil {
		if jsontext.Kind(message.Get("role")) != "string" {
			// Some providers leave it out, but none accepts an entry without
			// it.
			message = message.WithString("role", "assistant")
			raw = message.JSON()
		}
		err = decodeEntry(d, raw, message)
	}
	return r, fault.Under("$.choices[0].message", err)
}

// decodeEntry adds the messages of an entry.
func decodeEntry(d *codec.Decoder, raw []byte, entry jsontext.Object) error {
	role, content := entry.String("role"), entry.Get("content")
	if role == "tool" || role == "function" && entry.String("name") != "" {
		return decodeResult(d, role, entry)
	}
	calls, rest, ok := callsOf(entry)
	// Some servers parse an answer that has to be JSON (Cloudflare).
	parsed := role == "assistant" && jsontext.Kind(content) == "object"
	if parsed {
		content = jsontext.AppendQuote(nil, string(content))
		rest = rest.With("content", content)
	}
	if !ok || jsontext.Kind(entry.Get("role")) != "string" || role == "function" || !isContent(content) {
		return d.AddItem(role, "message", raw)
	}
	plain := jsontext.Object{{Name: "role", Value: entry.Get("role")}, {Name: "content", Value: content}}
	if len(calls) > 0 && isEmpty(content) {
		plain[1].Value = []byte("null")
		kept := codec.Difference(rest, plain)
		if d.WouldJoin(codec.TypeCall, role) {
			kept = kept.With("joined", []byte("false"))
		}
		return d.AddCalls(role, calls, kept)
	}
	kept := codec.Difference(rest, plain)
	if parsed {
		kept = kept.With("parsed", []byte("true"))
	}
	if err := d.AddText(role, content, kept); err != nil || len(calls) == 0 {
		return err
	}
	return d.AddCalls(role, calls, nil)
}

// decodeResult adds the result of a tool, or of a function as there were before
// tools.
func decodeResult(d *codec.Decoder, role string, entry jsontext.Object) error {
	r := codec.Result{ID: entry.String("tool_call_id"), Name: entry.String("name"), Content: entry.Get("content")}
	kind, by := "", "tool_call_id"
	if role == "function" { // it answers by name
		kind, by, r.ID = legacyCall, "name", ""
	}
	r.Kept = codec.Difference(entry, plainResult(kind, codec.SentText(entry, by), r.Content))
	if kind != "" {
		r.Kept = r.Kept.WithString("kind", kind)
	}
	return d.AddResult(r)
}

// isContent reports whether a text message can have the content.
func isContent(content []byte) bool {
	switch jsontext.Kind(content) {
	case "nothing", "null", "string":
		return true
	case "array":
	default:
		return false
	}
	parts, _ := jsontext.Elements(content)
	for _, raw := range parts {
		part, err := jsontext.Members(raw)
		if err != nil || jsontext.IsText(part.Get("type"), "text") && jsontext.Kind(part.Get("text")) != "string" {
			return false
		}
	}
	return true
}

// isEmpty reports whether content has no text and no parts.
func isEmpty(content []byte) bool {
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
