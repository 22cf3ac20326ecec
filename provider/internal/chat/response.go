package chat

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeResponse returns a response with one choice.
func (f Format) EncodeResponse(e *codec.Encoder, r codec.Reply, msgs []state.Message) (jsontext.Object, error) {
	entries, _ := f.EncodeMessages(e, msgs).Elements("messages")
	message := []byte(`{"role":"assistant","content":""}`)
	switch len(entries) {
	case 0:
	case 1:
		message = entries[0]
		if entry, err := jsontext.Members(message); err != nil || entry.String("role") != "assistant" {
			return nil, codec.ErrNotOneResponse
		}
	default:
		return nil, codec.ErrNotOneResponse
	}
	choice := jsontext.Object{}.With("index", []byte("0")).With("message", message).
		WithString("finish_reason", r.Stop("stop", "tool_calls", "length"))
	usage := codec.WithCount(nil, "prompt_tokens", r.Input)
	usage = codec.WithCount(usage, "completion_tokens", r.Output)
	usage = codec.WithCount(usage, "total_tokens", codec.Sum(r.Input, r.Output))
	input := codec.WithCount(codec.WithCount(nil, "cached_tokens", r.CacheRead), "cache_write_tokens", r.CacheWrite)
	usage = usage.With("prompt_tokens_details", input.JSON())
	usage = usage.With("completion_tokens_details", codec.WithCount(nil, "reasoning_tokens", r.Reasoning).JSON())
	return jsontext.Object{}.WithString("id", r.ID).WithString("object", "chat.completion").
		With("created", r.CreatedUnix()).WithString("model", r.Model).
		With("choices", jsontext.Array([][]byte{choice.JSON()})).With("usage", usage.JSON()), nil
}
