// Package responses is the format of OpenAI's Responses API.
//
// The instructions are a text of the system, and the input is a text of the
// user or a list of items. A message item becomes a text message, an item that
// calls a tool which the client runs a call, and its output a result. Any other
// item is kept whole. A message keeps the difference of the item, and
//
//	in     "instructions" for a text that is not an item
//	input  true for a text that was the whole input
//	type   of a call or a result that is not of a function
package responses

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of the Responses API.
type Format struct{}

// DecodeRequest adds the messages of a request.
func (Format) DecodeRequest(d *codec.Decoder, body jsontext.Object) (jsontext.Object, error) {
	if err := body.Want("instructions", "string", "null", "nothing"); err != nil {
		return nil, err
	}
	settings := body
	if instructions := body.Get("instructions"); !jsontext.IsNull(instructions) {
		settings = settings.Without("instructions")
		kept := jsontext.Object{}.WithString("in", "instructions")
		if err := d.AddText("system", instructions, kept); err != nil {
			return nil, fault.Under("$.instructions", err)
		}
	}
	input := body.Get("input")
	switch jsontext.Kind(input) {
	case "null", "nothing":
		return settings, nil
	case "string":
		kept := jsontext.Object{}.With("input", []byte("true"))
		err := d.AddText("user", input, kept)
		return settings.Without("input"), fault.Under("$.input", err)
	case "array":
	default:
		return nil, body.Want("input", "string", "array")
	}
	items, err := body.Elements("input")
	if err != nil || len(items) == 0 { // without messages it cannot be told from a missing input
		return settings, err
	}
	return settings.Without("input"), fault.Under("$.input", decodeItems(d, items))
}

// EncodeMessages returns the instructions and the input.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	w := itemWriter{Encoder: e, types: map[string]string{}}
	var body jsontext.Object
	var whole []byte // the input if it is just that text
	for i, m := range msgs {
		if m, ok := m.(state.TextMessage); ok && jsontext.Kind([]byte(m.Content())) == "string" {
			kept, _ := e.Kept(m)
			if kept.String("in") == "instructions" && len(body)+len(w.items) == 0 {
				body = body.With("instructions", []byte(m.Content()))
				continue
			}
			if kept.Bool("input") {
				whole = []byte(m.Content())
			}
		}
		w.add(i, m)
	}
	switch {
	case len(w.items) == 1 && whole != nil:
		body = body.With("input", whole)
	case len(w.items) > 0:
		body = body.With("input", jsontext.Array(w.items))
	}
	return body
}

// DecodeResponse adds the messages of the output.
func (Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("id"), Created: codec.UnixTime(body.Get("created_at"))}
	if err := body.Want("output", "array", "null"); err != nil {
		return r, err
	}
	items, _ := body.Elements("output") // none if it is null
	if len(items) == 0 {
		if err := codec.ReportedFailure(body); err != nil {
			return r, err
		}
	}
	if err := decodeItems(d, items); err != nil {
		return r, fault.Under("$.output", err)
	}
	r.Stop = body.Object("incomplete_details").Get("reason")
	if jsontext.Kind(r.Stop) != "string" {
		r.Stop = body.Get("status")
	}
	if status := string(r.Stop); status == `"in_progress"` || status == `"queued"` { // it has not stopped
		r.Stop = nil
	}
	return r, nil
}

// ReadPart reads a part in the notation of the format.
func ReadPart(part jsontext.Object) (codec.Part, bool) {
	switch part.String("type") {
	case "input_text", "output_text":
		return codec.TextPart(codec.PartText, part.Get("text"))
	case "input_image":
		return codec.OpenAIImage(part)
	case "input_file":
		return codec.OpenAIFile(part)
	}
	return codec.Part{}, false
}
