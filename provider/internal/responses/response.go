package responses

import (
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeResponse returns a response. Its items get what the provider adds to
// them: a type, an id and a status.
func (f Format) EncodeResponse(e *codec.Encoder, r codec.Reply, msgs []state.Message) (jsontext.Object, error) {
	body := f.EncodeMessages(e, msgs)
	items, _ := body.Elements("input")
	if len(body) > 1 || len(body) == 1 && body.Get("input") == nil {
		return nil, codec.ErrNotOneResponse
	}
	for i, raw := range items {
		item, _ := jsontext.Members(raw) // made here
		if role := item.Get("role"); role != nil && string(role) != `"assistant"` {
			return nil, codec.ErrNotOneResponse
		}
		items[i] = asOutput(r.ID, i, item).JSON()
	}
	status, details := "completed", []byte("null")
	if stop := r.Stop("completed", "completed", "max_output_tokens"); stop != status {
		status, details = "incomplete", jsontext.Object{}.WithString("reason", stop).JSON()
	}
	usage := codec.WithCount(nil, "input_tokens", r.Input)
	input := codec.WithCount(codec.WithCount(nil, "cached_tokens", r.CacheRead), "cache_write_tokens", r.CacheWrite)
	usage = codec.WithCount(usage.With("input_tokens_details", input.JSON()), "output_tokens", r.Output)
	usage = usage.With("output_tokens_details", codec.WithCount(nil, "reasoning_tokens", r.Reasoning).JSON())
	usage = codec.WithCount(usage, "total_tokens", codec.Sum(r.Input, r.Output))
	return jsontext.Object{}.WithString("id", r.ID).WithString("object", "response").
		With("created_at", r.CreatedUnix()).WithString("status", status).
		With("error", []byte("null")).With("incomplete_details", details).WithString("model", r.Model).
		With("output", jsontext.Array(items)).With("usage", usage.JSON()), nil
}

// asOutput returns an item as it comes from the provider. Its id has that of the
// response: a conversation must not have an id twice.
func asOutput(response string, i int, item jsontext.Object) jsontext.Object {
	kind := item.String("type")
	if kind == "" {
		kind = "message"
		item = append(codec.TypedObject(kind), item...)
	}
	identify := func(prefix string) {
		if item.Get("id") == nil { // else it came from the provider
			id := prefix + strconv.Itoa(i)
			if response != "" {
				id = prefix + strings.TrimPrefix(response, "resp_") + "_" + strconv.Itoa(i)
			}
			item = item.WithString("id", id).WithString("status", "completed")
		}
	}
	switch kind {
	case "message":
		identify("msg_")
		if content := item.Get("content"); jsontext.Kind(content) == "string" {
			part := codec.TypedObject("output_text").With("text", content).With("annotations", []byte("[]"))
			item = item.With("content", jsontext.Array([][]byte{part.JSON()}))
		}
	case functionCall:
		identify("fc_")
	case customCall:
		identify("ctc_")
	}
	return item
}
