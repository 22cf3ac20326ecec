package responses

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownOfTool are the members of a function besides those that all formats have.
var ownOfTool = []string{"strict", "defer_loading"}

// DecodeTool reads a function. The tool keeps the difference of the element.
func (Format) DecodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	t, ok := codec.FunctionTool(element, "parameters")
	if !ok || element.String("type") != "function" {
		return nil, false
	}
	t.Kept = codec.Difference(element.Without("type"), t.PlainFunction("parameters"))
	return []codec.Tool{t}, true
}

// EncodeTools writes functions.
func (Format) EncodeTools(tools []codec.Tool) [][]byte {
	return codec.EncodeEachTool(tools, func(t codec.Tool) jsontext.Object {
		return append(codec.TypedObject("function"), t.Function("parameters", t.Kept)...)
	})
}
