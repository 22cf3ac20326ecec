package chat

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownOfTool are the members of a function besides those that all formats have.
var ownOfTool = []string{"strict"}

// decodeTool reads a function. The tool keeps the difference of the element.
func decodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	t, ok := codec.FunctionTool(element.Object("function"), "parameters")
	if typ := element.Get("type"); !ok || typ != nil && string(typ) != `"function"` {
		return nil, false
	}
	t.Kept = codec.Difference(element, plainTool(t))
	return []codec.Tool{t}, true
}

// encodeTools writes functions.
func encodeTools(tools []codec.Tool) [][]byte {
	return codec.EncodeEachTool(tools, func(t codec.Tool) jsontext.Object {
		return codec.Restore(plainTool(t), t.Kept, t.OwnNames()...)
	})
}

func plainTool(t codec.Tool) jsontext.Object {
	function := append(t.PlainFunction("parameters"), t.Own...)
	return codec.TypedObject("function").With("function", function.JSON())
}
