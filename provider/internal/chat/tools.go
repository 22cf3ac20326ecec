package chat

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownOfTool are the members of a function besides those that all formats have.
var ownOfTool = []string{"strict"}

// decodeTool reads a function. The tool keeps the difference of the element, and
//
//	function  the difference of the function
func decodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	function := element.Object("function")
	t, ok := codec.FunctionTool(function, "parameters")
	if typ := element.Get("type"); !ok || typ != nil && string(typ) != `"function"` {
		return nil, false
	}
	plain := codec.TypedObject("function").With("function", element.Get("function"))
	t.Kept = codec.Difference(element, plain)
	if inner := codec.Difference(function, t.PlainFunction("parameters")); inner != nil {
		t.Kept = t.Kept.With("function", inner.JSON())
	}
	return []codec.Tool{t}, true
}

// encodeTools writes functions.
func encodeTools(tools []codec.Tool) [][]byte {
	return codec.EncodeEachTool(tools, func(t codec.Tool) jsontext.Object {
		function := t.Function("parameters", t.Kept.Object("function"))
		return codec.Restore(codec.TypedObject("function").With("function", function.JSON()), t.Kept)
	})
}
