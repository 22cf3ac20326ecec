package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/lab/traces/loose"
)

// newMessage makes a message by decoding its JSON. A constructor would lose the
// difference between null and missing, the spelling of numbers, and members
// that it does not know.
func newMessage(typ string, own, rest jsontext.Object) (state.Message, error) {
	with := func(typ string) []byte {
		return loose.Join(append(jsontext.Object{}.WithString("type", typ), own...), rest)
	}
	m, err := state.DecodeMessage(with(typ))
	if err != nil && typ == "text" {
		// The content has a shape that a text message cannot have.
		return state.DecodeMessage(with("other"))
	}
	return m, err
}

// inputDepth is the depth up to which arguments become JSON in a message.
// Deeper arguments stay text.
const inputDepth = 56

// callInput returns the arguments of a call. A string that holds an object
// becomes the object. Anything else stays as it is.
func callInput(arguments []byte) []byte {
	if jsontext.Kind(arguments) != "string" {
		return arguments
	}
	inner := []byte(jsontext.Unquote(arguments))
	if jsontext.Kind(inner) != "object" || jsontext.Check(inner, jsontext.Limits{Depth: inputDepth}) != nil {
		return arguments
	}
	return inner
}
