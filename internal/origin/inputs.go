package origin

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// WholeInputs returns messages in which the arguments of calls that were broken off,
// or cannot be read for another reason and so are kept as a text, are the member
// arguments of an object, as where a format takes nothing but one. No provider but
// OpenAI takes the text back. What a tool takes as a text stays.
func WholeInputs(msgs []state.Message) []state.Message {
	whole := msgs
	for i, m := range msgs {
		m, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		var members jsontext.Object // of the message, and tools its calls, once one is broken
		var tools [][]byte
		for n, c := range inside.SharedCalls(m) {
			if !isBroken(c.Input) {
				continue
			}
			if tools == nil {
				members, _ = jsontext.Members([]byte(m.Raw())) // checked when the message was made
				tools, _ = jsontext.Elements(members.Get("tools"))
			}
			if tool, _ := jsontext.Members(tools[n]); !isTextTool(tool) {
				tools[n] = tool.With("input", jsontext.Object{{Name: "arguments", Value: []byte(c.Input)}}.JSON()).JSON()
			}
		}
		if tools == nil {
			continue
		}
		if mended, err := state.DecodeMessage(members.With("tools", jsontext.Array(tools)).JSON()); err == nil {
			if &whole[0] == &msgs[0] {
				whole = slices.Clone(msgs)
			}
			whole[i] = mended
		}
	}
	return whole
}

// isBroken reports whether the input of a call is the text of an object that is not
// whole.
func isBroken(input state.JSON) bool {
	if !strings.HasPrefix(string(input), `"`) {
		return false
	}
	text := strings.TrimSpace(input.Text())
	return strings.HasPrefix(text, "{") && jsontext.Check([]byte(text), jsontext.Limits{}) != nil
}

// isTextTool reports whether a call is one of a custom tool of OpenAI, whose input is
// a text.
func isTextTool(call jsontext.Object) bool {
	return call.Object(OpenAI).String("kind") == "custom" ||
		call.Object(OpenAIResponses).String("type") == "custom_tool_call"
}
