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
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of the Responses API.
type Format struct{ codec.Reporting }

var function = codec.ToolWord{Types: []string{"function"}, Schema: "parameters"}

// DecodeRequest adds the messages of a request.
func (f Format) DecodeRequest(d *codec.Decoder, body jsontext.Object) (codec.Request, error) {
	if err := body.Want("instructions", "string", "null", "nothing"); err != nil {
		return codec.Request{}, err
	}
	settings := body
	if instructions := body.Get("instructions"); !jsontext.IsNull(instructions) {
		settings = settings.Without("instructions")
		kept := jsontext.Object{}.WithString("in", "instructions")
		if err := d.AddText("system", instructions, kept); err != nil {
			return codec.Request{}, fault.Under("$.instructions", err)
		}
	}
	input := body.Get("input")
	switch jsontext.Kind(input) {
	case "null", "nothing":
		return codec.SplitTools(settings, function.Decode), nil
	case "string":
		kept := jsontext.Object{}.With("input", []byte("true"))
		err := d.AddText("user", input, kept)
		return codec.SplitTools(settings.Without("input"), function.Decode), fault.Under("$.input", err)
	case "array":
	default:
		return codec.Request{}, body.Want("input", "string", "array")
	}
	before := len(d.Messages)
	if err := decodeItems(d, input); err != nil || len(d.Messages) == before {
		// Without messages the input cannot be told from a missing one.
		return codec.SplitTools(settings, function.Decode), fault.Under("$.input", err)
	}
	return codec.SplitTools(settings.Without("input"), function.Decode), nil
}

// OwnMembers returns the members of a tool. Programs have no names for members
// of items.
func (Format) OwnMembers(typ string) []string {
	if typ == codec.TypeOffered {
		return []string{"strict", "defer_loading"}
	}
	return nil
}

// EncodeRequest returns the body of a request.
func (f Format) EncodeRequest(e *codec.Encoder, r codec.Request, msgs []state.Message) (jsontext.Object, error) {
	return r.Body(function.Encode, f.EncodeMessages(e, msgs))
}

// EncodeMessages returns the instructions and the input.
func (Format) EncodeMessages(e *codec.Encoder, msgs []state.Message) jsontext.Object {
	w := itemWriter{Encoder: e}
	for _, of := range e.Entries.Types {
		w.setType(of.ID, of.Type)
	}
	var body jsontext.Object
	var whole []byte // the input if it is just that text
	for i, m := range msgs {
		e.Entries.Reach(i)
		if m, ok := m.(state.TextMessage); ok && jsontext.Kind([]byte(m.Content())) == "string" {
			kept, _ := e.Kept(m)
			if kept.String("in") == "instructions" && len(body) == 0 && !e.Entries.Begun() {
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
	case whole != nil && e.Entries.Only() != nil:
		body = body.With("input", whole)
	case e.Entries.Begun():
		body = body.With("input", e.Entries.JSON())
	}
	return body
}

// DecodeResponse adds the messages of the output.
func (Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{
		ID: body.String("id"), Stops: codec.ResponsesStops, Created: codec.UnixTime(body.Get("created_at")),
	}
	if err := body.Want("output", "array", "null"); err != nil {
		return r, err
	}
	if output := body.Get("output"); !jsontext.IsNull(output) {
		if err := decodeItems(d, output); err != nil {
			return r, fault.Under("$.output", err)
		}
	}
	if len(d.Messages) == 0 {
		if err := codec.ReportedFailure(body); err != nil {
			return r, err
		}
	}
	r.Stop = stopReason(body)
	_ = body.EachObject("output", func(_ []byte, item jsontext.Object) error { // its items were read
		r.Refused = r.Refused || item.String("type") == "message" && codec.HasRefusal(item)
		return nil
	})
	return r, nil
}

// stopReason returns why the model stopped, nil if it has not stopped.
func stopReason(response jsontext.Object) []byte {
	if reason := response.Object("incomplete_details").Get("reason"); jsontext.Kind(reason) == "string" {
		return reason
	}
	status := response.Get("status")
	if string(status) == `"in_progress"` || string(status) == `"queued"` {
		return nil
	}
	return status
}

// ReadPart reads a part in the notation of the format.
func ReadPart(part jsontext.Object) (codec.Part, bool) {
	switch part.String("type") {
	case "input_text", "output_text":
		return codec.TextPart(codec.PartText, part, "text")
	case "input_image":
		return codec.URLPart(codec.PartImage, part, "image_url")
	case "input_file":
		return codec.OpenAIFile(part, "")
	}
	return codec.Part{}, false
}

// Summarize reads a response, or of the response in an event.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	if response := body.Object("response"); response != nil {
		body = response
	}
	u.Identify(body.String("model"), body.String("id"), stopReason(body))
	usage := body.Object("usage")
	var r state.Usage
	codec.SetCount(&r.Input, usage, "input_tokens")
	codec.SetCount(&r.Output, usage, "output_tokens")
	input := usage.Object("input_tokens_details")
	codec.SetCount(&r.CacheRead, input, "cached_tokens")
	codec.SetCount(&r.CacheWrite, input, "cache_write_tokens")
	codec.SetCount(&r.Reasoning, usage.Object("output_tokens_details"), "reasoning_tokens")
	u.Report(r)
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return strings.HasPrefix(body.String("type"), "response.") || body.String("object") == "response"
}

// IsPiece reports whether an event has a name of the format.
func (f Format) IsPiece(name string, _ []byte) bool { return f.HasForm(codec.TypedObject(name)) }
