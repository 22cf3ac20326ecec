package responses

import (
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Summarize reads a response, or of the response in an event.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	if response := body.Object("response"); response != nil {
		body = response
	}
	u.Identify(body.String("model"), body.String("id"), stopReason(body))
	usage := body.Object("usage")
	codec.SetCount(&u.Input, usage, "input_tokens")
	codec.SetCount(&u.Output, usage, "output_tokens")
	input := usage.Object("input_tokens_details")
	codec.SetCount(&u.CacheRead, input, "cached_tokens")
	codec.SetCount(&u.CacheWrite, input, "cache_write_tokens")
	codec.SetCount(&u.Reasoning, usage.Object("output_tokens_details"), "reasoning_tokens")
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return strings.HasPrefix(body.String("type"), "response.") || body.String("object") == "response"
}
