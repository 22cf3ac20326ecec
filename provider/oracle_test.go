package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state/provider"
)

// The oracles refuse the bodies of requests that the providers refuse. They are
// written from what the providers say and share nothing with the packages that
// they test.

type (
	jsonObject = map[string]any
	jsonArray  = []any
)

// oracles say for each format why the provider refuses a conversation. If it is
// continued, its beginning is not in the body.
var oracles = map[*provider.Format]func(body jsonObject, continued bool) error{
	provider.OpenAI:          refusedByOpenAI,
	provider.OpenAIResponses: refusedByOpenAIResponses,
	provider.Anthropic:       refusedByAnthropic,
	provider.Gemini:          refusedByGemini,
}

// refused returns why the provider refuses a body, nil if it does not.
func refused(f *provider.Format, body []byte, continued bool) error {
	var members jsonObject
	if err := json.Unmarshal(body, &members); err != nil {
		return err
	}
	return oracles[f](members, continued)
}

// breaks is the error of an entry: the rule that it breaks, and how.
func breaks(i int, rule, problem string) error {
	return fmt.Errorf("entry %d: [%s] %s", i, rule, problem)
}

var (
	openAIName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	geminiName    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
)

func textIn(value any) string { s, _ := value.(string); return s }

// objectsIn returns the objects of an array.
func objectsIn(value any) (list []jsonObject, ok bool) {
	elements, ok := value.(jsonArray)
	for _, element := range elements {
		part, is := element.(jsonObject)
		ok = ok && is
		list = append(list, part)
	}
	return list, ok
}

// openAIContent reports whether a content is text or parts that the API has.
func openAIContent(content any) bool {
	if _, ok := content.(string); ok {
		return true
	}
	list, ok := objectsIn(content)
	for _, part := range list {
		switch part["type"] {
		case "text":
			_, is := part["text"].(string)
			ok = ok && is
		case "image_url", "input_audio", "file", "refusal":
		case "thinking", "document_url", "video_url": // of other providers with the format
		default:
			return false
		}
	}
	return ok && len(list) > 0
}

func refusedByOpenAI(body jsonObject, _ bool) error {
	entries, ok := objectsIn(body["messages"])
	if !ok {
		return breaks(0, "shape", "messages is no array of objects")
	}
	waiting := map[string]bool{}
	for i, entry := range entries {
		content, role := entry["content"], textIn(entry["role"])
		if role == "tool" {
			id := textIn(entry["tool_call_id"])
			switch {
			case !waiting[id]:
				return breaks(i, "orphan-result", "a tool message must be a response to a preceding message with tool_calls")
			case !openAIContent(content):
				return breaks(i, "content", "of a tool message")
			}
			delete(waiting, id)
			continue
		}
		if len(waiting) > 0 {
			return breaks(i, "unanswered-call", "tool_calls must be followed by tool messages for each of them")
		}
		calls, ok := objectsIn(entry["tool_calls"])
		if entry["tool_calls"] != nil && !ok {
			return breaks(i, "shape", "tool_calls must be an array of calls")
		}
		switch role {
		case "system", "developer", "user":
			if !openAIContent(content) || len(calls) > 0 {
				return breaks(i, "content", "must be text or parts")
			}
		case "assistant":
			// Other content than text takes its place.
			said := len(calls) > 0
			for name, value := range entry {
				said = said || value != nil && !slices.Contains([]string{"role", "name", "content", "tool_calls"}, name)
			}
			list, empty := objectsIn(content)
			empty = content == nil || empty && len(list) == 0
			if empty && !said || !empty && !openAIContent(content) {
				return breaks(i, "content", "must be text or parts")
			}
		default:
			return breaks(i, "role", "is not known to the API")
		}
		for _, call := range calls {
			id := textIn(call["id"])
			called, arguments := call["function"], "arguments"
			if call["type"] == "custom" {
				called, arguments = call["custom"], "input"
			}
			function, ok := called.(jsonObject)
			_, is := function[arguments].(string)
			switch {
			case !ok || !is:
				return breaks(i, "shape", "a call needs a function with arguments that are a string")
			case id == "" || len(id) > 64: // OpenAI takes 40, other providers with the format more
				return breaks(i, "id", "must have 1 to 64 characters")
			case !openAIName.MatchString(textIn(function["name"])):
				return breaks(i, "name", "does not match the pattern")
			case waiting[id]:
				return breaks(i, "duplicate-id", "duplicate value for tool_call_id")
			}
			waiting[id] = true
		}
	}
	if len(waiting) > 0 {
		return breaks(len(entries), "unanswered-call", "tool_calls must be followed by tool messages for each of them")
	}
	return nil
}

// responsesContent reports whether a content is text or parts that the API has
// for the role.
func responsesContent(content any, role string) bool {
	if _, ok := content.(string); ok {
		return true
	}
	list, ok := objectsIn(content)
	for _, part := range list {
		typ := textIn(part["type"])
		switch typ {
		case "input_text", "output_text":
			_, is := part["text"].(string)
			ok = ok && is && (typ == "output_text") == (role == "assistant")
		case "input_image", "input_file", "input_audio", "refusal":
		default:
			return false
		}
	}
	return ok
}

func refusedByOpenAIResponses(body jsonObject, continued bool) error {
	if _, ok := body["input"].(string); ok || body["input"] == nil {
		return nil
	}
	items, ok := objectsIn(body["input"])
	if !ok {
		return breaks(0, "shape", "input is no array of objects")
	}
	waiting, seen := map[string]bool{}, map[string]bool{}
	searched := map[string]bool{} // calls of another kind, which may have such an output too
	thought := false              // the last item is reasoning that needs what follows from it
	for i, item := range items {
		typ, role, id := textIn(item["type"]), textIn(item["role"]), textIn(item["call_id"])
		if item["type"] == nil {
			typ = "message"
		}
		// A text that follows counts only as the item that it was, with its id.
		if thought && (strings.HasSuffix(typ, "_output") || typ == "message" && (role != "assistant" || item["id"] == nil)) {
			return breaks(i, "reasoning", "was provided without its required following item")
		}
		own := textIn(item["id"])
		if seen[own] {
			return breaks(i, "duplicate-item", "duplicate item found")
		}
		seen[own] = own != "" && typ != "item_reference"
		thought = typ == "reasoning" && strings.HasPrefix(own, "rs_") // other providers with the format do not mind
		switch typ {
		case "":
			return breaks(i, "shape", "type must be a string")
		case "message":
			switch {
			case !slices.Contains([]string{"user", "assistant", "system", "developer"}, role):
				return breaks(i, "role", "is not known to the API")
			case !responsesContent(item["content"], role):
				return breaks(i, "content", "must be text or parts")
			}
		case "function_call":
			_, is := item["arguments"].(string)
			switch {
			case !is:
				return breaks(i, "shape", "arguments must be a string")
			case id == "" || len(id) > 64:
				return breaks(i, "id", "must have 1 to 64 characters")
			case !openAIName.MatchString(textIn(item["name"])):
				return breaks(i, "name", "does not match the pattern")
			case waiting[id]:
				return breaks(i, "duplicate-id", "is that of another call without output")
			}
			waiting[id] = true
		case "function_call_output":
			switch {
			case id == "":
				return breaks(i, "id", "of an output is missing")
			case !waiting[id] && !searched[id] && !continued:
				return breaks(i, "orphan-result", "no tool call found for function call output")
			case !responsesContent(item["output"], "user"):
				return breaks(i, "content", "output must be text or parts")
			}
			delete(waiting, id)
			delete(searched, id)
		default:
			searched[id] = id != "" && strings.HasSuffix(typ, "_call")
		}
	}
	switch {
	case thought:
		return breaks(len(items), "reasoning", "was provided without its required following item")
	case len(waiting) > 0:
		return breaks(len(items), "unanswered-call", "no tool output found for function call")
	}
	return nil
}

// anthropicTurn is a sequence of entries of one side, which the API merges.
type anthropicTurn struct {
	at     int
	role   string
	blocks []jsonObject
}

func refusedByAnthropic(body jsonObject, _ bool) error {
	if blocks, ok := objectsIn(body["system"]); ok {
		for _, block := range blocks {
			if textIn(block["text"]) == "" {
				return breaks(0, "empty", "system: text content blocks must be non-empty")
			}
		}
	} else if _, ok := body["system"].(string); !ok && body["system"] != nil {
		return breaks(0, "shape", "system must be text or blocks")
	}
	entries, ok := objectsIn(body["messages"])
	if !ok {
		return breaks(0, "shape", "messages is no array of objects")
	}
	var turns []anthropicTurn
	for i, entry := range entries {
		role := textIn(entry["role"])
		switch {
		case !slices.Contains([]string{"user", "assistant", "system"}, role):
			return breaks(i, "role", "is not known to the API")
		case role == "system" && (len(turns) == 0 || turns[len(turns)-1].role == "assistant" && !endsServed(turns[len(turns)-1])):
			return breaks(i, "system", "is only supported after the user's turn")
		}
		last := i == len(entries)-1 && role == "assistant"
		blocks, ok := objectsIn(entry["content"])
		if s, is := entry["content"].(string); is {
			blocks, ok = nil, true
			if s != "" || !last {
				blocks = []jsonObject{{"type": "text", "text": s}}
			}
		}
		if !last && (!ok || len(blocks) == 0) {
			return breaks(i, "empty", "all messages must have non-empty content except for the optional final assistant message")
		}
		if n := len(turns); n > 0 && turns[n-1].role == role {
			turns[n-1].blocks = append(turns[n-1].blocks, blocks...)
		} else {
			turns = append(turns, anthropicTurn{i, role, blocks})
		}
	}
	return anthropicTurns(turns)
}

// endsServed reports whether a turn ends with the result of one of the
// provider's own tools.
func endsServed(turn anthropicTurn) bool {
	n := len(turn.blocks)
	return n > 0 && strings.HasSuffix(textIn(turn.blocks[n-1]["type"]), "_tool_result")
}

func anthropicTurns(turns []anthropicTurn) error {
	served := map[string]bool{}
	waiting := map[string]bool{} // the calls of the turn before
	unserved := map[string]int{} // the turns of the provider's own calls without a result
	spoke := 0                   // the last turn of the user's that is more than results
	for _, turn := range turns {
		calls := map[string]bool{}
		results := true // so far there are only results
		for _, block := range turn.blocks {
			typ, id := textIn(block["type"]), textIn(block["id"])
			switch {
			case typ == "text":
				calls := slices.ContainsFunc(turn.blocks, func(b jsonObject) bool { return b["type"] == "tool_use" })
				if text := textIn(block["text"]); text == "" || strings.TrimSpace(text) == "" && !calls {
					return breaks(turn.at, "empty", "text content blocks must be non-empty")
				}
			case typ == "image" && turn.role == "assistant":
				return breaks(turn.at, "content", "image blocks are not permitted within assistant turns")
			case typ == "tool_use":
				_, is := block["input"].(jsonObject)
				switch {
				case turn.role != "assistant" || !is:
					return breaks(turn.at, "shape", "tool_use is for an assistant, and its input a dictionary")
				case !anthropicID.MatchString(id):
					return breaks(turn.at, "id", "does not match the pattern")
				case !anthropicName.MatchString(textIn(block["name"])):
					return breaks(turn.at, "name", "does not match the pattern")
				case calls[id]: // in another turn it is accepted
					return breaks(turn.at, "duplicate-id", "tool_use ids must be unique")
				}
				calls[id] = true
			case typ == "tool_result":
				id = textIn(block["tool_use_id"])
				switch {
				case turn.role != "user" || !anthropicResult(block):
					return breaks(turn.at, "shape", "tool_result is for a user, and its content text or blocks")
				case !waiting[id]:
					return breaks(turn.at, "orphan-result", "unexpected tool_use_id found in tool_result blocks")
				case !results:
					return breaks(turn.at, "not-adjacent", "tool_use ids were found without tool_result blocks immediately after")
				}
				delete(waiting, id)
			case typ == "server_tool_use", typ == "mcp_tool_use":
				served[id], unserved[id] = true, turn.at
			case strings.HasSuffix(typ, "_tool_result"):
				id = textIn(block["tool_use_id"])
				if !served[id] {
					return breaks(turn.at, "server-tool", "must have a corresponding server_tool_use block before it")
				}
				delete(unserved, id)
			case !slices.Contains([]string{"image", "document", "search_result", "thinking", "redacted_thinking",
				"compaction", "container_upload", "tool_addition"}, typ):
				return breaks(turn.at, "shape", "type of block "+typ)
			}
			results = results && typ == "tool_result"
			if turn.role == "user" && typ != "tool_result" {
				spoke = turn.at
			}
		}
		if len(waiting) > 0 {
			return breaks(turn.at, "unanswered-call", "tool_use ids were found without tool_result blocks immediately after")
		}
		waiting = calls
	}
	for _, called := range unserved {
		if called < spoke {
			return breaks(called, "server-tool", "was found without a corresponding result block")
		}
	}
	if len(waiting) > 0 {
		return breaks(len(turns), "unanswered-call", "tool_use ids were found without tool_result blocks immediately after")
	}
	return nil
}

// anthropicResult reports whether the API takes the members of a result.
func anthropicResult(block jsonObject) bool {
	_, flag := block["is_error"].(bool)
	if block["is_error"] != nil && !flag {
		return false
	}
	if _, ok := block["content"].(string); ok || block["content"] == nil {
		return true
	}
	list, ok := objectsIn(block["content"])
	for _, part := range list {
		ok = ok && slices.Contains([]string{"text", "image", "document", "search_result", "tool_reference"}, textIn(part["type"]))
	}
	return ok
}
