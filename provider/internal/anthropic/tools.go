package anthropic

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// ownOfTool are the members of a tool besides those that all formats have.
var ownOfTool = []string{"cache_control", "strict", "defer_loading", "input_examples"}

const schemaMember = "input_schema"

// decodeTool reads a tool of the client. Its type is "custom" or missing. The
// tool keeps the difference of the element.
func decodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	t, ok := codec.FunctionTool(element, schemaMember)
	if typ := element.Get("type"); !ok || !jsontext.IsNull(typ) && string(typ) != `"custom"` {
		return nil, false
	}
	t.Kept = codec.Difference(element, withSchema(t).PlainFunction(schemaMember))
	return []codec.Tool{t}, true
}

// encodeTools writes tools of the client.
func encodeTools(tools []codec.Tool) [][]byte {
	return codec.EncodeEachTool(tools, func(t codec.Tool) jsontext.Object { return withSchema(t).Function(schemaMember, t.Kept) })
}

// withSchema returns a tool that has a schema, which is required.
func withSchema(t codec.Tool) codec.Tool {
	if t.Schema == nil {
		t.Schema = []byte(`{"type":"object"}`)
	}
	return t
}
