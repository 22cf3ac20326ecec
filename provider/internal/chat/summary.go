package chat

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Summarize reads a response or a chunk. Most providers count
// reasoning within the completion. xAI and Google do not: there the total is
// larger than the sum, and the rest is reasoning.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	var stop []byte
	_ = body.EachObject("choices", func(_ []byte, choice jsontext.Object) error { // as far as it can be read
		if index := choice.Get("index"); jsontext.IsNull(index) || string(index) == "0" {
			stop = choice.Get("finish_reason")
		}
		return nil
	})
	u.Identify(body.String("model"), body.String("id"), stop)
	usage := body.Object("usage")
	if usage == nil {
		usage = body.Object("x_groq").Object("usage")
	}
	if usage == nil {
		return
	}
	input, output := usage.Object("prompt_tokens_details"), usage.Object("completion_tokens_details")
	codec.SetCount(&u.Input, usage, "prompt_tokens")
	codec.SetCount(&u.Output, usage, "completion_tokens")
	codec.SetCount(&u.CacheRead, usage, "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
	codec.SetCount(&u.CacheRead, input, "cached_tokens")
	codec.SetCount(&u.CacheWrite, input, "cache_write_tokens")
	codec.SetCount(&u.Reasoning, usage, "reasoning_tokens")
	codec.SetCount(&u.Reasoning, output, "reasoning_tokens")
	total := 0
	codec.SetCount(&total, usage, "total_tokens")
	if rest := total - u.Input - u.Output; rest > 0 && usage.Get("prompt_tokens") != nil && usage.Get("completion_tokens") != nil {
		u.Output += rest
		u.Reasoning = max(u.Reasoning, rest)
	}
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return body.Get("choices") != nil
}
