package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/lab/traces/loose"
)

// message makes a message by decoding it, not with a constructor: so it keeps
// null apart from missing, numbers as spelled, and all members of the file.
func message(typ string, own, rest jsontext.Object) (state.Message, error) {
	with := func(typ string) []byte {
		return loose.Join(append(jsontext.Object{}.WithString("type", typ), own...), rest)
	}
	m, err := state.DecodeMessage(with(typ))
	if err != nil && typ == "text" {
		// Content of a shape that a text message does not have passes through
		// in a message of a type of its own.
		return state.DecodeMessage(with("other"))
	}
	return m, err
}

// inputDepth is how deep arguments may nest if they are to be JSON in a message
// and not text.
const inputDepth = 56

// input returns the arguments of a call: an object as it is, and so one that is
// written as a string. Any other string stays a string.
func input(arguments []byte) []byte {
	if jsontext.Kind(arguments) != "string" {
		return arguments
	}
	inner := []byte(jsontext.Unquote(arguments))
	if jsontext.Kind(inner) != "object" || jsontext.Check(inner, jsontext.Limits{Depth: inputDepth}) != nil {
		return arguments
	}
	return inner
}
