package anthropic

import (
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Summarize reads a response or an event. "Total input tokens in a
// request is the summation of input_tokens, cache_creation_input_tokens, and
// cache_read_input_tokens" (Anthropic's reference). The counts of message_delta
// are cumulative.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	usage, stop := body.Object("usage"), body.Get("stop_reason")
	switch body.String("type") {
	case "message_start":
		body = body.Object("message")
		usage, stop = body.Object("usage"), body.Get("stop_reason")
	case "message_delta":
		stop = body.Object("delta").Get("stop_reason")
	case "content_block_start", "content_block_delta", "content_block_stop", "ping":
		return
	}
	u.Identify(body.String("model"), body.String("id"), stop)
	input := u.Input - u.CacheRead - u.CacheWrite // what is reported again replaces it
	codec.SetCount(&input, usage, "input_tokens")
	codec.SetCount(&u.CacheRead, usage, "cache_read_input_tokens")
	codec.SetCount(&u.CacheWrite, usage, "cache_creation_input_tokens")
	codec.SetCount(&u.Output, usage, "output_tokens")
	codec.SetCount(&u.Reasoning, usage.Object("output_tokens_details"), "thinking_tokens")
	u.Input = input + u.CacheRead + u.CacheWrite
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	typ := body.String("type")
	_, event, _ := strings.Cut(typ, "_")
	return typ == "message" && body.Get("content") != nil ||
		strings.HasPrefix(typ, "message_") || strings.HasPrefix(event, "block_")
}
