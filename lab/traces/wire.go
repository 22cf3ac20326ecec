package traces

import (
	"fmt"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// wire is a format of package provider with its name in recordings and the
// functions that recognise its bodies.
type wire struct {
	name    string // in the report
	api     string // in recorded exchanges
	format  *provider.Format
	profile transcript.Profile

	conversation string // the member of a request that holds it

	// isResponse and isEvent recognise the body of a response and an event of a
	// streamed one.
	isResponse, isEvent func(o jsontext.Object) bool

	// repeated returns the entries that a later request repeats of a response.
	repeated func(body jsontext.Object) [][]byte
}

var (
	openAIChat = &wire{
		name: "OpenAI chat", api: "openai_chat", format: provider.OpenAI, profile: transcript.OpenAI,
		conversation: "messages",
		isResponse: func(o jsontext.Object) bool {
			return jsontext.Kind(o.Get("choices")) == "array" || isFailure(o, "type", "param")
		},
		isEvent: func(o jsontext.Object) bool {
			return jsontext.Kind(o.Get("choices")) == "array" && loose.Text(o.Get("object")) != "chat.completion"
		},
		repeated: func(body jsontext.Object) [][]byte {
			return withRole("assistant", firstChoice(body.Get("choices"), "message"))
		},
	}
	openAIResponses = &wire{
		name: "OpenAI Responses", api: "openai_responses", format: provider.OpenAIResponses, profile: transcript.OpenAIResponses,
		conversation: "input",
		isResponse: func(o jsontext.Object) bool {
			return jsontext.Kind(o.Get("output")) == "array" && loose.Text(o.Get("object")) == "response"
		},
		isEvent:  func(o jsontext.Object) bool { return strings.HasPrefix(loose.Text(o.Get("type")), "response.") },
		repeated: func(body jsontext.Object) [][]byte { return loose.Elements(body.Get("output")) },
	}
	anthropic = &wire{
		name: "Anthropic", api: "anthropic_messages", format: provider.Anthropic, profile: transcript.Anthropic,
		conversation: "messages",
		isResponse: func(o jsontext.Object) bool {
			return loose.Text(o.Get("type")) == "message" && jsontext.Kind(o.Get("content")) == "array" ||
				loose.Text(o.Get("type")) == "error" && o.Get("error") != nil
		},
		isEvent: func(o jsontext.Object) bool {
			switch loose.Text(o.Get("type")) {
			case "message_start", "message_delta", "message_stop", "ping",
				"content_block_start", "content_block_delta", "content_block_stop":
				return true
			}
			return false
		},
		repeated: func(body jsontext.Object) [][]byte {
			entry := jsontext.Object{}.With("role", body.Get("role")).With("content", body.Get("content"))
			return withRole("assistant", [][]byte{entry.JSON()})
		},
	}
	gemini = &wire{
		name: "Gemini", api: "gemini_generateContent", format: provider.Gemini, profile: transcript.Gemini,
		conversation: "contents",
		isResponse:   isGemini,
		isEvent:      isGemini,
		repeated: func(body jsontext.Object) [][]byte {
			return withRole("model", firstChoice(body.Get("candidates"), "content"))
		},
	}

	wires = []*wire{openAIChat, openAIResponses, anthropic, gemini}
)

// isFailure reports whether a body has only an error, and the error has one of
// the members.
func isFailure(o jsontext.Object, names ...string) bool {
	if len(o) != 1 {
		return false
	}
	return loose.Has(names...)(loose.Members(o.Get("error")))
}

func isGemini(o jsontext.Object) bool {
	return jsontext.Kind(o.Get("candidates")) == "array" || o.Get("promptFeedback") != nil || isFailure(o, "status")
}

// firstChoice returns an object that is a member of the first element of list,
// none if it is missing.
func firstChoice(list []byte, name string) [][]byte {
	choices := loose.Elements(list)
	if len(choices) == 0 {
		return nil
	}
	value := loose.Members(choices[0]).Get(name)
	if jsontext.Kind(value) != "object" {
		return nil
	}
	return [][]byte{value}
}

// withRole returns entries with a role, which a response may leave out.
func withRole(role string, entries [][]byte) [][]byte {
	var list [][]byte
	for _, raw := range entries {
		entry := loose.Members(raw)
		if jsontext.Kind(entry.Get("role")) != "string" {
			entry = entry.WithString("role", role)
		}
		list = append(list, entry.JSON())
	}
	return list
}

// wireOf returns the format of a recorded exchange, or the kind of one that
// package provider does not read.
func wireOf(api string) (w *wire, other string) {
	for _, w := range wires {
		if w.api == api {
			return w, ""
		}
	}
	switch api {
	case "bedrock_converse":
		return nil, "a Bedrock Converse exchange"
	case "a2a_jsonrpc":
		return nil, "A2A frames"
	case "mcp_jsonrpc":
		return nil, "MCP frames"
	case "":
		return nil, "an exchange that names no api"
	}
	return nil, fmt.Sprintf("an exchange of api %.40q", api)
}
