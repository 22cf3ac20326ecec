package transcript

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// EstimateTokens returns about how many tokens a message has, without the table
// of a tokenizer. Texts, and the JSON of calls and results, are cut into words,
// numbers, marks and spaces, as the tokenizers of OpenAI do; those of others count
// up to 1.4 times as many. A picture counts by its pixels, a PDF by its pages, and
// another file as 1 100 tokens, as does one that is not in the message; a large result as much as [Shown] shows of it. A message
// that is nil has none.
func EstimateTokens(m state.Message) int {
	tokens := messageTokens
	switch m := m.(type) {
	case nil:
		return 0
	case state.TextMessage:
		if content := m.Content(); strings.HasPrefix(string(content), `"`) {
			tokens += textTokens(m.Text())
		} else {
			tokens += valueTokens("", []byte(content), memberTokens)
		}
	case state.ToolCallMessage:
		for _, c := range sharedCalls(m) {
			tokens += callTokens + textTokens(c.Name) + textTokens(string(c.Input))
			tokens += valueTokens("", []byte(c.Extra), besideText)
		}
	case state.ToolResultMessage:
		m = shown(m, true).(state.ToolResultMessage)
		tokens += resultTokens
		if content := []byte(m.Content()); areParts(content) {
			tokens += valueTokens("", content, memberTokens)
		} else {
			tokens += textTokens(m.Text())
		}
		for k := 0; ; k++ { // Gemini has files there
			name, value, ok := inside.ExtraMember(m, k)
			if !ok {
				break
			}
			tokens += valueTokens(name, []byte(value), besideText)
		}
	default:
		tokens += valueTokens("", []byte(m.Raw()), memberTokens)
	}
	return tokens
}

const (
	messageTokens = 4    // around each message
	callTokens    = 8    // around each call
	resultTokens  = 4    // around a result
	fileTokens    = 1100 // a file of which nothing is known
	sealedBytes   = 6    // of sealed reasoning, for one token of it
)

// valueTokens adds up the tokens of the texts in a value, each with the name of
// its member. Names are no texts.
func valueTokens(name string, value []byte, count func(name, text string) int) (tokens int) {
	switch jsontext.Kind(value) {
	case "object":
		members, _ := jsontext.Members(value) // checked with the message
		for _, m := range members {
			member := m.Name
			if member == "url" && (name == "image_url" || name == "source") { // and not of a search result
				member = "image_url"
			}
			tokens += valueTokens(member, m.Value, count)
		}
	case "array":
		elements, _ := jsontext.Elements(value)
		for _, e := range elements {
			tokens += valueTokens(name, e, count)
		}
	case "string":
		tokens = count(name, jsontext.Unquote(value))
	}
	return tokens
}

// memberTokens returns how many tokens a text in the content of a message has.
func memberTokens(name, text string) int {
	switch name {
	case "type", "id", "tool_use_id", "call_id", "status", "role", "media_type", "mime_type", "mimeType":
		return 0
	}
	if tokens := besideText(name, text); tokens > 0 {
		return tokens
	}
	return textTokens(text)
}

// besideText returns how many tokens files and sealed reasoning have, and 0 for a
// text.
func besideText(name, text string) int {
	switch name {
	case "signature", "thoughtSignature", "thought_signature", "encrypted_content":
		return len(text) / sealedBytes
	case "image_url", "file_id", "fileUri", "file_uri":
		return mediaTokens(text)
	case "data", "file_data", "blob": // the last of an MCP resource
		if !strings.ContainsAny(text, " \n") { // a document may be a text
			return mediaTokens(text)
		}
	}
	if strings.HasPrefix(text, "data:") {
		return mediaTokens(text)
	}
	return 0
}

// areParts reports whether the content of a result is a list of parts, and not
// data.
func areParts(content []byte) bool {
	if jsontext.Kind(content) != "array" {
		return false
	}
	elements, _ := jsontext.Elements(content)
	return !slices.ContainsFunc(elements, func(e []byte) bool {
		part, _ := jsontext.Members(e) // none if it is not an object
		return !origin.IsContent(part)
	})
}
