// Package anthropic is the format of Anthropic's Messages API.
package anthropic

import (
	"bytes"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of the Messages API.
type Format struct {
	*codec.Table
	codec.Reporting
}

// New returns the format.
func New() Format { return Format{Table: &table} }

// ownMembers are what a block of any type may have.
var ownMembers = []string{"cache_control"}

var table = codec.Table{
	Prompts: []string{"system"}, Entries: "messages", Content: "content",
	Bare: true, PromptContent: true,
	Model: "assistant", User: "user", System: "system",
	OtherRole: "role other than user, assistant, system and developer",
	Calls:     []codec.Word{{Type: "tool_use", KeyID: "id", KeyName: "name", KeyValue: "input", Form: codec.ObjectForm}},
	Results: []codec.Word{
		{Type: "tool_result", KeyID: "tool_use_id", KeyValue: "content", KeyFailed: "is_error", Form: resultForm},
	},
	NoEmptyText: true,
	OwnOfCall:   ownMembers, OwnOfResult: ownMembers,
	OwnOfTool:  []string{"cache_control", "strict", "defer_loading", "input_examples"},
	Part:       block,
	DecodeTool: tool.Decode, EncodeTools: tool.Encode,
}

// tool is a tool of the client, whose type is "custom" or missing.
var tool = codec.ToolWord{Types: []string{"", "custom"}, Schema: "input_schema", Needed: true}

// resultForm is a text or blocks as they are, the text of any other value.
var resultForm = codec.Form{Write: func(value []byte) []byte {
	switch jsontext.Kind(value) {
	case "string", "array":
		return value
	case "nothing", "null":
		return nil
	}
	return jsontext.AppendQuote(nil, string(value))
}}

// DecodeResponse adds the messages of a response.
func (f Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("id"), Stop: body.Get("stop_reason"), Stops: codec.AnthropicStops}
	if err := body.Want("content", "array", "string"); err != nil {
		return r, err
	}
	if content := body.Get("content"); bytes.Contains(content, []byte(`thinking"`)) {
		d.SetMember("model", body.String("model")) // no other model takes its thinking
	}
	if container := body.Get(origin.Container); !jsontext.IsNull(container) {
		r.Keep = jsontext.Object{}.With(origin.Container, container)
	}
	entry := jsontext.Object{}.With("role", body.Get("role")).With("content", body.Get("content"))
	return r, f.DecodeReply(d, entry)
}

// block returns the block of a part that does not come from the format, as a
// role can say it. Only users, and results, have media.
func block(role string, p codec.Part) (block jsontext.Object, written []string) {
	named := false
	switch {
	case p.Kind == codec.PartText, p.Kind == codec.PartRefusal:
		block = codec.TypedObject("text").With("text", p.Text)
	case p.IsMedia() && (role == "user" || role == origin.RoleTool):
		block, named = mediaBlock(p)
	}
	if block == nil {
		return nil, nil
	}
	for _, name := range ownMembers {
		block = block.With(name, p.Members.Get(name))
	}
	if written = ownMembers; named {
		written = append(slices.Clip(written), p.NameAt)
	}
	return block, written
}

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
	counts := func(input, read, write int) (int, int, int) {
		codec.SetCount(&input, usage, "input_tokens")
		codec.SetCount(&read, usage, "cache_read_input_tokens")
		codec.SetCount(&write, usage, "cache_creation_input_tokens")
		return input, read, write
	}
	if input, read, write := counts(0, 0, 0); input+read+write > 0 { // what is reported again replaces it
		input, u.CacheRead, u.CacheWrite = counts(u.Input-u.CacheRead-u.CacheWrite, u.CacheRead, u.CacheWrite)
		u.Input = input + u.CacheRead + u.CacheWrite
	}
	var r state.Usage
	codec.SetCount(&r.Output, usage, "output_tokens")
	codec.SetCount(&r.Reasoning, usage.Object("output_tokens_details"), "thinking_tokens")
	u.Report(r)
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	typ := body.String("type")
	_, event, _ := strings.Cut(typ, "_")
	return typ == "message" && body.Get("content") != nil ||
		strings.HasPrefix(typ, "message_") || strings.HasPrefix(event, "block_")
}

// IsPiece reports whether an event has a name of the format. "Your code should
// handle unknown event types gracefully" (Anthropic's reference of streaming).
func (f Format) IsPiece(name string, _ []byte) bool {
	return f.HasForm(codec.TypedObject(name))
}
