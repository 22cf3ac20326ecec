package sdks

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The rules of the providers, written from their documentation and the words of
// their errors, and not with the packages of this repository.

// object is a JSON object.
type object map[string]any

func (o object) text(name string) string { s, _ := o[name].(string); return s }

func (o object) object(name string) object { m, _ := o[name].(map[string]any); return m }

func (o object) list(name string) []object {
	elements, _ := o[name].([]any)
	objects := make([]object, len(elements))
	for i, e := range elements {
		objects[i], _ = e.(map[string]any)
	}
	return objects
}

// said is what a request says, in no provider's words.
type said struct {
	results []string // the outputs at the end that the model has not seen
	streams bool
}

// refused is the error of a request that a provider would refuse.
func refused(format string, args ...any) (said, error) {
	return said{}, fmt.Errorf(format, args...)
}

// apiRules read a request of an API, and refuse what the provider refuses.
var apiRules = map[string]func(body object) (said, error){
	"chat": checkChat, "responses": checkResponses, "anthropic": checkAnthropic, "gemini": checkGemini,
}

func checkChat(body object) (said, error) {
	known := map[string]bool{}
	for _, t := range body.list("tools") {
		known[t.object("function").text("name")] = true
	}
	s := said{streams: body["stream"] == true}
	if len(body.list("messages")) == 0 {
		return refused("empty array: messages")
	}
	var open []string // calls of the turn that wait for their results
	for i, m := range body.list("messages") {
		role := m.text("role")
		if role != "tool" {
			if len(open) > 0 {
				return refused("messages.%d: tool_call_ids without a response: %q", i, open)
			}
			s.results = nil
		}
		switch role {
		case "system", "developer", "user":
			if m["content"] == nil {
				return refused("messages.%d: content is null", i)
			}
		case "assistant":
			for _, c := range m.list("tool_calls") {
				if !known[c.object("function").text("name")] || !json.Valid([]byte(c.object("function").text("arguments"))) {
					return refused("messages.%d: unknown tool or bad arguments", i)
				}
				open = append(open, c.text("id"))
			}
			if m["content"] == nil && len(open) == 0 {
				return refused("messages.%d: neither content nor tool_calls", i)
			}
		case "tool":
			at := slices.Index(open, m.text("tool_call_id"))
			if at < 0 {
				return refused("messages.%d: role tool must follow the tool_calls with its id", i)
			}
			open = slices.Delete(open, at, at+1)
			s.results = append(s.results, m.text("content"))
		default:
			return refused("messages.%d: unknown role", i)
		}
	}
	if len(open) > 0 {
		return refused("messages: tool_call_ids without a response: %q", open)
	}
	return s, nil
}

func checkResponses(body object) (said, error) {
	known := map[string]bool{}
	for _, t := range body.list("tools") {
		known[t.text("name")] = true
	}
	s := said{streams: body["stream"] == true}
	if input, ok := body["input"].(string); ok && input != "" {
		return s, nil
	}
	if len(body.list("input")) == 0 {
		return refused("missing required parameter: input")
	}
	open, items := map[string]bool{}, map[string]bool{}
	for i, item := range body.list("input") {
		if id := item.text("id"); id != "" {
			if items[id] {
				return refused("input.%d: duplicate item %q", i, id)
			}
			items[id] = true
		}
		switch item.text("type") {
		case "", "message":
			switch item.text("role") {
			case "user", "assistant", "system", "developer":
			default:
				return refused("input.%d: unknown role", i)
			}
			s.results = nil
		case "reasoning":
			if following := body.list("input")[i+1:]; len(following) == 0 || following[0].text("role") == "user" {
				return refused("input.%d: reasoning without its required following item", i)
			}
		case "function_call":
			if !known[item.text("name")] || !json.Valid([]byte(item.text("arguments"))) {
				return refused("input.%d: unknown tool or bad arguments", i)
			}
			open[item.text("call_id")] = true
			s.results = nil
		case "function_call_output":
			if !open[item.text("call_id")] {
				return refused("input.%d: no tool call found for %q", i, item.text("call_id"))
			}
			delete(open, item.text("call_id"))
			s.results = append(s.results, item.text("output"))
		default:
			return refused("input.%d: unknown type", i)
		}
	}
	if len(open) > 0 {
		return refused("input: no tool output found for %v", open)
	}
	return s, nil
}

// turn is what one role says before another speaks.
type turn struct {
	role  string
	parts []object
}

// turns returns the turns of entries: consecutive ones of a role are one.
func turns(entries []object, parts func(object) []object) []turn {
	var all []turn
	for _, e := range entries {
		if n := len(all); n == 0 || all[n-1].role != e.text("role") {
			all = append(all, turn{role: e.text("role")})
		}
		last := &all[len(all)-1]
		last.parts = append(last.parts, parts(e)...)
	}
	return all
}

func checkAnthropic(body object) (said, error) {
	known, used := map[string]bool{}, map[string]bool{}
	for _, t := range body.list("tools") {
		known[t.text("name")] = true
	}
	if n, _ := body["max_tokens"].(float64); n < 1 {
		return refused("max_tokens: field required")
	}
	thinks := body.object("thinking").text("type") == "enabled"
	s := said{streams: body["stream"] == true}
	all := turns(body.list("messages"), func(m object) []object {
		if text, ok := m["content"].(string); ok {
			return []object{{"type": "text", "text": text}}
		}
		return m.list("content")
	})
	if len(all) == 0 || all[0].role != "user" || all[len(all)-1].role != "user" {
		return refused("messages: the first and the last message must be the user's")
	}
	var open []string
	for i, t := range all {
		s.results = nil
		switch t.role {
		case "user":
			for k, p := range t.parts {
				if p.text("type") == "text" && p.text("text") == "" {
					return refused("messages.%d: text content blocks must be non-empty", i)
				}
				if p.text("type") != "tool_result" {
					continue
				}
				at := slices.Index(open, p.text("tool_use_id"))
				if at < 0 {
					return refused("messages.%d: unexpected tool_use_id %q", i, p.text("tool_use_id"))
				}
				if k > 0 && t.parts[k-1].text("type") != "tool_result" {
					return refused("messages.%d: tool_result blocks must come first", i)
				}
				open = slices.Delete(open, at, at+1)
				s.results = append(s.results, anthropicText(p))
			}
			if len(open) > 0 {
				return refused("messages.%d: tool_use ids without tool_result: %q", i, open)
			}
		case "assistant":
			if len(t.parts) == 0 {
				return refused("messages.%d: content is empty", i)
			}
			calls := false
			for _, p := range t.parts {
				if p.text("type") != "tool_use" {
					continue
				}
				calls = true
				if id := p.text("id"); used[id] || !known[p.text("name")] || p["input"] == nil {
					return refused("messages.%d: tool_use ids must be unique, and tools known: %q", i, id)
				}
				used[p.text("id")] = true
				open = append(open, p.text("id"))
			}
			if first := t.parts[0]; thinks && calls && first.text("type") != "thinking" {
				return refused("messages.%d: expected thinking, but found %s", i, first.text("type"))
			} else if first.text("type") == "thinking" && first.text("signature") != signature {
				return refused("messages.%d: invalid signature in thinking block", i)
			}
		default:
			return refused("messages.%d: unknown role", i)
		}
	}
	return s, nil
}

func anthropicText(result object) string {
	if text, ok := result["content"].(string); ok {
		return text
	}
	text := ""
	for _, p := range result.list("content") {
		text += p.text("text")
	}
	return text
}

func checkGemini(body object) (said, error) {
	known := map[string]bool{}
	for _, t := range body.list("tools") {
		for _, f := range t.list("functionDeclarations") {
			known[f.text("name")] = true
		}
	}
	var s said
	all := turns(body.list("contents"), func(c object) []object { return c.list("parts") })
	if len(all) == 0 || all[0].role != "user" {
		return refused("contents: the first turn must be the user's")
	}
	var open []string
	for i, t := range all {
		s.results = nil
		if len(t.parts) == 0 || t.role != "user" && t.role != "model" {
			return refused("contents[%d]: no parts, or an unknown role", i)
		}
		var calls []string
		for _, p := range t.parts {
			if r := p.object("functionResponse"); r != nil {
				at := slices.Index(open, r.text("name"))
				if at < 0 || r.object("response") == nil {
					return refused("contents[%d]: function response %q without its call", i, r.text("name"))
				}
				open = slices.Delete(open, at, at+1)
				text, _ := json.Marshal(r["response"])
				s.results = append(s.results, string(text))
			}
			if c := p.object("functionCall"); c != nil {
				if !known[c.text("name")] {
					return refused("contents[%d]: unknown function %q", i, c.text("name"))
				}
				calls = append(calls, c.text("name"))
			}
		}
		if len(open) > 0 {
			return refused("contents[%d]: the number of function response parts must equal that of the calls", i)
		}
		open = calls
	}
	if len(open) > 0 {
		return refused("contents: function calls without responses")
	}
	return s, nil
}
