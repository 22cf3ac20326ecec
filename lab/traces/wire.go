package traces

import (
	"fmt"
	"slices"
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

	// isRequest, isResponse and isEvent recognise the body of a request, that of
	// a response, and an event of a streamed one. They are asked in the order of
	// wires.
	isRequest, isResponse, isEvent func(o jsontext.Object) bool

	// isMessage recognises an entry of the conversation that no wire before
	// this one in messageWires has.
	isMessage func(o jsontext.Object) bool

	// repeated returns the entries that a later request repeats of a response.
	repeated func(body jsontext.Object) [][]byte
}

var (
	openAIChat = &wire{
		name: "OpenAI chat", api: "openai_chat", format: provider.OpenAI, profile: transcript.OpenAI,
		conversation: "messages",
		isRequest: func(o jsontext.Object) bool {
			first := firstElement(o.Get("messages"))
			return isChatRole(first) && !anthropicRequest(o)
		},
		isMessage: isChatRole,
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
		isRequest: func(o jsontext.Object) bool {
			if first := firstElement(o.Get("input")); first != nil {
				return loose.Has("role", "type")(first)
			}
			// The input of embeddings and moderations is a string, too.
			return jsontext.Kind(o.Get("input")) == "string" && loose.Has("instructions", "max_output_tokens", "previous_response_id",
				"reasoning", "text", "tools", "store", "stream", "include", "truncation")(o)
		},
		isMessage: func(o jsontext.Object) bool {
			switch loose.Text(o.Get("type")) {
			case "message", "function_call", "function_call_output", "reasoning", "item_reference":
				return true
			}
			return hasBlock(o, "input_text", "output_text", "input_image", "input_file")
		},
		isResponse: func(o jsontext.Object) bool {
			return jsontext.Kind(o.Get("output")) == "array" && loose.Text(o.Get("object")) == "response"
		},
		isEvent:  func(o jsontext.Object) bool { return strings.HasPrefix(loose.Text(o.Get("type")), "response.") },
		repeated: func(body jsontext.Object) [][]byte { return loose.Elements(body.Get("output")) },
	}
	anthropic = &wire{
		name: "Anthropic", api: "anthropic_messages", format: provider.Anthropic, profile: transcript.Anthropic,
		conversation: "messages",
		isRequest: func(o jsontext.Object) bool {
			return isChatRole(firstElement(o.Get("messages"))) && anthropicRequest(o)
		},
		isMessage: isAnthropicMessage,
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
		isRequest: func(o jsontext.Object) bool {
			return firstElement(o.Get("contents")).Get("parts") != nil
		},
		isMessage:  func(o jsontext.Object) bool { return jsontext.Kind(o.Get("parts")) == "array" },
		isResponse: isGemini,
		isEvent:    isGemini,
		repeated: func(body jsontext.Object) [][]byte {
			return withRole("model", firstChoice(body.Get("candidates"), "content"))
		},
	}

	wires = []*wire{openAIChat, openAIResponses, anthropic, gemini}

	// messageWires are in the order from the most particular form of a message
	// to the most general one.
	messageWires = []*wire{gemini, openAIResponses, anthropic, openAIChat}
)

// wireOfRequest returns the format of the body of a request, nil if it has
// none.
func wireOfRequest(o jsontext.Object) *wire {
	for _, w := range wires {
		if w.isRequest(o) {
			return w
		}
	}
	return nil
}

// wireOfMessages returns the format of a bare array of messages, nil if an
// element is no message.
func wireOfMessages(list [][]byte) *wire {
	best := len(messageWires)
	for _, raw := range list {
		o := loose.Members(raw)
		found := slices.IndexFunc(messageWires, func(w *wire) bool { return w.isMessage(o) })
		if found < 0 {
			return nil
		}
		best = min(best, found)
	}
	if best == len(messageWires) {
		return nil
	}
	return messageWires[best]
}

// holdsEvent reports whether one of the events is of the format.
func (w *wire) holdsEvent(events [][]byte) bool {
	return slices.ContainsFunc(events, func(event []byte) bool {
		o, err := jsontext.Members(event)
		return err == nil && w.isEvent(o)
	})
}

func isChatRole(o jsontext.Object) bool {
	switch loose.Text(o.Get("role")) {
	case "system", "developer", "user", "assistant", "tool", "function":
		return true
	}
	return false
}

// anthropicRequest reports whether a request with messages is Anthropic's. One
// without any of the signs is the same in both formats.
func anthropicRequest(o jsontext.Object) bool {
	if loose.Has("system", "anthropic_version", "anthropic_beta", "stop_sequences", "mcp_servers")(o) || loose.Members(o.Get("thinking")) != nil ||
		strings.Contains(loose.Text(o.Get("model")), "claude") && o.Get("max_tokens") != nil && !hasChatOnly(o) {
		return true
	}
	for _, tool := range loose.Elements(o.Get("tools")) {
		if loose.Members(tool).Get("input_schema") != nil {
			return true
		}
	}
	return slices.ContainsFunc(loose.Elements(o.Get("messages")), func(raw []byte) bool { return isAnthropicMessage(loose.Members(raw)) })
}

// hasChatOnly reports whether a request has what only Chat Completions has.
func hasChatOnly(o jsontext.Object) bool {
	return slices.ContainsFunc(loose.Elements(o.Get("messages")), func(raw []byte) bool {
		m := loose.Members(raw)
		role := loose.Text(m.Get("role"))
		return role == "tool" || role == "system" || role == "developer" || m.Get("tool_calls") != nil || hasBlock(m, "image_url", "input_audio")
	}) || slices.ContainsFunc(loose.Elements(o.Get("tools")), func(raw []byte) bool { return loose.Members(raw).Get("function") != nil })
}

func isAnthropicMessage(o jsontext.Object) bool {
	if role := loose.Text(o.Get("role")); role != "user" && role != "assistant" {
		return false
	}
	return hasBlock(o, "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use")
}

// hasBlock reports whether the content of a message has a part of one of the
// types.
func hasBlock(o jsontext.Object, types ...string) bool {
	return slices.ContainsFunc(loose.Elements(o.Get("content")), func(part []byte) bool {
		return slices.Contains(types, loose.Text(loose.Members(part).Get("type")))
	})
}

// firstElement returns the object that is first in an array, nil if there is
// none.
func firstElement(list []byte) jsontext.Object {
	elements := loose.Elements(list)
	if len(elements) == 0 {
		return nil
	}
	return loose.Members(elements[0])
}

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
	}
	var known []string
	for _, w := range wires {
		known = append(known, w.api)
	}
	return nil, fmt.Sprintf("an exchange of api %.40q, which is none of %s", api, strings.Join(known, ", "))
}
