// Package chat is the format of OpenAI's Chat Completions, which many other
// providers offer.
package chat

import (
	"bytes"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of Chat Completions.
type Format struct {
	*codec.Table
	codec.Reporting
}

// New returns the format.
func New() Format { return Format{Table: &table} }

var table = codec.Table{
	Entries: "messages", Content: "content",
	Bare: true, Lax: true,
	Model: "assistant", User: "user",
	CallList: "tool_calls",
	Calls: []codec.Word{
		{
			Type: "function", In: []string{"function"}, KeyID: "id", KeyName: "name", KeyValue: "arguments",
			Form: codec.ArgumentsForm,
		},
		{
			Kind: "custom", Type: "custom", In: []string{"custom"}, KeyID: "id", KeyName: "name", KeyValue: "input",
			Form: codec.TextForm,
		},
		// Before there were tools, an entry had one call without an id.
		{Kind: legacyCall, Member: legacyCall, KeyName: "name", KeyValue: "arguments", Form: codec.ArgumentsForm},
	},
	Results: []codec.Word{
		{Role: "tool", KeyID: "tool_call_id", KeyName: "name", OnlyReadName: true, KeyValue: "content", Form: resultForm},
		{Kind: legacyCall, Role: "function", KeyName: "name", KeyValue: "content", Form: resultForm},
	},
	OwnOfText:  []string{"name", "refusal", "audio", "reasoning", "reasoning_content", "reasoning_details"},
	OwnOfTool:  []string{"strict"},
	Part:       encodePart,
	DecodeTool: function.Decode, EncodeTools: function.Encode,
}

var function = codec.ToolWord{In: "function", Types: []string{"function", ""}, Schema: "parameters"}

const legacyCall = "function_call"

// resultForm is a value as it is, and a text for a value of another format that
// is not parts.
var resultForm = codec.Form{Adopt: func(value []byte) []byte {
	switch jsontext.Kind(value) {
	case "nothing", "null":
		return []byte(`""`)
	case "string", "array":
		return value
	}
	return jsontext.AppendQuote(nil, state.JSON(value).Text())
}}

// DecodeResponse adds the messages of the first choice.
func (f Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("id"), Stops: codec.ChatStops, Created: codec.UnixTime(body.Get("created"))}
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
		r.Refused = message.String("refusal") != "" || codec.HasRefusal(message)
		err = f.DecodeReply(d, message)
	}
	return r, fault.Under("$.choices[0].message", err)
}

// Summarize reads a response or a chunk. Most providers count reasoning within the
// completion, and sounds within the prompt. Where the total is larger than the sum,
// the rest is the reasoning that is reported (xAI), the sounds of the prompt
// (Mistral), or output of which nothing is known (Google).
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
	var r state.Usage
	codec.SetCount(&r.Input, usage, "prompt_tokens")
	codec.SetCount(&r.Output, usage, "completion_tokens")
	codec.SetCount(&r.CacheRead, usage, "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
	codec.SetCount(&r.CacheRead, input, "cached_tokens")
	codec.SetCount(&r.CacheWrite, input, "cache_write_tokens")
	codec.SetCount(&r.Reasoning, usage, "reasoning_tokens")
	codec.SetCount(&r.Reasoning, output, "reasoning_tokens")
	total, audio := 0, 0
	codec.SetCount(&total, usage, "total_tokens")
	codec.SetCount(&audio, input, "audio_tokens")
	rest := total - r.Input - r.Output
	switch isCounted := usage.Get("prompt_tokens") != nil && usage.Get("completion_tokens") != nil; {
	case rest <= 0 || !isCounted:
	case rest == audio && rest != r.Reasoning:
		r.Input += rest
	case rest == audio+r.Reasoning:
		r.Input, r.Output = r.Input+audio, r.Output+r.Reasoning
	default:
		r.Output += rest
	}
	u.Report(r)
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return body.Get("choices") != nil
}

// IsPiece reports whether the data begins as that of a chunk. Chunks have no name,
// but gateways give them some.
func (Format) IsPiece(_ string, data []byte) bool { return bytes.Contains(data, []byte(`"choices"`)) }
