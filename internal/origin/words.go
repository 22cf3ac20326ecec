package origin

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// NoSignature is what Google documents for calls that Gemini did not make: from
// Gemini 3 on, the first call of a content is refused without a signature. See
// https://ai.google.dev/gemini-api/docs/thought-signatures.
const NoSignature = "skip_thought_signature_validator"

// RoleTool stands for results in the tables of what a role can say.
const RoleTool = "tool"

// words has for each format the types of the parts that a role can say, from
// the references of the APIs. Roles without a row have that of the system. The
// parts of Gemini have no types: their first known member counts as one.
var words = map[string]map[string][]string{
	OpenAI: {
		"user":      {"text", "image_url", "input_audio", "file", "video_url", "document_url"},
		"assistant": {"text", "refusal"},
		"system":    {"text"},
	},
	OpenAIResponses: {
		"user":      {"input_text", "input_image", "input_file"},
		"assistant": {"output_text", "refusal"},
		"system":    {"input_text", "input_image", "input_file"},
		RoleTool:    {"input_text", "input_image", "input_file"},
	},
	Anthropic: {
		"user":      {"text", "image", "document", "search_result", "container_upload"},
		"assistant": {"text", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "_tool_result"},
		"system":    {"text"},
		RoleTool:    {"text", "image", "document", "search_result", "tool_reference"},
	},
	Gemini: {
		"user":      {"text", "inlineData", "inline_data", "fileData", "file_data"},
		"assistant": {"text", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code", "codeExecutionResult", "code_execution_result"},
		"system":    {"text"},
		RoleTool:    nil, // a result is an object
	},
}

// InWords reports whether a part of what a role says is in the words of a
// format: the format has its type there. Two formats can have a type of one
// name.
func InWords(format, role string, part jsontext.Object) bool {
	roles := words[format]
	types, ok := roles[role]
	if !ok {
		types = roles["system"]
	}
	if format == Gemini {
		return part.Get("type") == nil && slices.ContainsFunc(types, func(name string) bool {
			return !jsontext.IsNull(part.Get(name))
		})
	}
	typ := part.String("type")
	switch {
	case format == Anthropic && (typ == "image" || typ == "document"):
		return jsontext.Kind(part.Get("source")) == "object" && slices.Contains(types, typ)
	case format == Anthropic && typ == "thinking":
		return jsontext.Kind(part.Get("thinking")) == "string" && slices.Contains(types, typ)
	case strings.HasSuffix(typ, "_tool_result"):
		return slices.Contains(types, "_tool_result")
	}
	return slices.Contains(types, typ)
}

// IsKnown reports whether a part of what a role says is in the words of any format.
func IsKnown(role string, part jsontext.Object) bool {
	return slices.ContainsFunc(builtIn[:], func(format string) bool { return InWords(format, role, part) })
}

// IsReasoning reports whether a part is reasoning of the model, which only the
// format that it came from can express.
func IsReasoning(part jsontext.Object) bool {
	switch part.String("type") {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return part.Bool("thought")
}

// SaysIn reports whether a message that came from no format has a part in the
// words of a format.
func SaysIn(m state.TextMessage, format string) bool {
	parts, _ := jsontext.Elements([]byte(m.Content())) // none if it is a text
	return IsHandmade(m) && slices.ContainsFunc(parts, func(raw []byte) bool {
		part, _ := jsontext.Members(raw) // checked with the message
		return InWords(format, m.Role(), part)
	})
}

// IsContent reports whether an element of a result is a part in the words of
// any format that has parts there, or of the Model Context Protocol.
func IsContent(part jsontext.Object) bool {
	switch part.String("type") {
	case "image", "audio", "resource", "resource_link", "image_url", "document_url":
		return true
	}
	for _, name := range [...]string{"file", "input_audio", "inlineData", "inline_data", "fileData", "file_data"} {
		if part.Object(name) != nil {
			return true
		}
	}
	return InWords(OpenAIResponses, RoleTool, part) || InWords(Anthropic, RoleTool, part)
}
