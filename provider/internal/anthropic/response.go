package anthropic

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeResponse returns a message.
func (f Format) EncodeResponse(e *codec.Encoder, r codec.Reply, msgs []state.Message) (jsontext.Object, error) {
	body := f.EncodeMessages(e, msgs)
	entries, _ := body.Elements("messages")
	if len(entries) > 1 || body.Get("system") != nil {
		return nil, codec.ErrNotOneResponse
	}
	content := []byte("[]")
	if len(entries) == 1 {
		entry, err := jsontext.Members(entries[0])
		if err != nil || entry.String("role") != "assistant" {
			return nil, codec.ErrNotOneResponse
		}
		if content = entry.Get("content"); jsontext.Kind(content) == "string" {
			text := codec.TypedObject("text").With("text", content)
			content = jsontext.Array([][]byte{text.JSON()})
		}
	}
	usage := codec.WithCount(nil, "input_tokens", max(min(r.Input, 0), r.Input-max(0, r.CacheRead)-max(0, r.CacheWrite)))
	usage = codec.WithCount(usage, "cache_creation_input_tokens", r.CacheWrite)
	usage = codec.WithCount(usage, "cache_read_input_tokens", r.CacheRead)
	usage = codec.WithCount(usage, "output_tokens", r.Output)
	if r.Reasoning >= 0 {
		usage = usage.With("output_tokens_details", codec.WithCount(nil, "thinking_tokens", r.Reasoning).JSON())
	}
	return jsontext.Object{}.WithString("id", r.ID).WithString("type", "message").WithString("role", "assistant").
		WithString("model", r.Model).With("content", content).
		WithString("stop_reason", r.Stop("end_turn", "tool_use", "max_tokens")).With("stop_sequence", []byte("null")).
		With("usage", usage.JSON()), nil
}
