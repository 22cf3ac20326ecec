// Package anthropic is the format of Anthropic's Messages API.
package anthropic

import (
	"slices"

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
	OtherRole:   "role other than user, assistant, system and developer",
	Calls:       []codec.Word{{Type: "tool_use", ID: "id", Name: "name", Value: "input", Form: codec.ObjectForm}},
	Results:     []codec.Word{{Type: "tool_result", ID: "tool_use_id", Value: "content", Failed: "is_error", Form: resultForm}},
	NoEmptyText: true,
	OwnOfCall:   ownMembers, OwnOfResult: ownMembers, OwnOfTool: ownOfTool,
	Part:       block,
	DecodeTool: decodeTool, EncodeTools: encodeTools,
}

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
	r := codec.Response{ID: body.String("id"), Stop: body.Get("stop_reason")}
	if err := body.Want("content", "array", "string"); err != nil {
		return r, err
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
