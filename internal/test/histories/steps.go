package histories

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// step adds a turn of the assistant that calls tools, and their results.
func (w *writer) step() {
	before := len(w.msgs)
	if w.may(origin.OpenAIResponses) && w.one(3) {
		w.reasoning()
		before++
		if w.one(3) {
			w.output()
		}
	} else if w.one(4) {
		w.add(w.said("assistant", w.mark(), w.quoted()))
	} else if w.one(3) {
		w.thought()
	}
	calls := w.calls(len(w.msgs) > before)
	served := ""
	if w.may(origin.Anthropic) && w.one(8) {
		served = w.id("srvtoolu_") // called together with the others, and answered after them
		w.own(origin.Anthropic, "assistant", `[{"type":"server_tool_use","id":"`+served+`","name":"web_search","input":{}}]`, `{"joined":true}`)
	}
	w.between(calls)
	w.results(calls)
	if w.may(origin.Anthropic) && served == "" && w.one(6) {
		w.own(origin.Anthropic, "user", `"Go on."`, `{"joined":true}`) // said with the results
	}
	if served != "" {
		w.own(origin.Anthropic, "assistant", `[{"type":"web_search_tool_result","tool_use_id":"`+served+`","content":[]},{"type":"text","text":"Found."}]`, "{}")
	}
}

// own adds a text that comes from a format.
func (w *writer) own(format, role, content, held string) {
	w.add(marked(w.said(role, "", []byte(content)), format, held))
}

// thought adds the thinking of the model before its calls. Other formats omit
// it.
func (w *writer) thought() {
	switch w.IntN(4) {
	case 0:
		w.own(origin.Anthropic, "assistant", `[{"type":"thinking","thinking":"So …","signature":"c2ln"}]`, "{}")
	case 1:
		w.own(origin.Anthropic, "assistant", `[{"type":"redacted_thinking","data":"c2ln"},{"type":"text","text":"Let me see."}]`, "{}")
	default:
		w.own(origin.Gemini, "assistant", `[{"text":"So …","thought":true}]`, "{}")
	}
}

// served returns content with a tool that the provider runs itself.
func (w *writer) served() []byte {
	id := w.id("srvtoolu_")
	return []byte(`[{"type":"server_tool_use","id":"` + id + `","name":"web_search","input":{"query":"x"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"` + id + `","content":[]},{"type":"text","text":"Found."}]`)
}

// reasoning adds an item that must be followed by the next output of the model.
func (w *writer) reasoning() {
	w.item("reasoning", `{"type":"reasoning","id":"`+w.id("rs_")+`","summary":[],"encrypted_content":"c2ln"}`)
}

// output adds a text with the id of its item, as texts after reasoning have it.
func (w *writer) output() {
	w.own(origin.OpenAIResponses, "assistant", string(w.quoted()),
		`{"more":{"type":"message","id":"`+w.id("msg_")+`","status":"completed"}}`)
}

// items adds items that are complete in themselves.
func (w *writer) items() {
	if w.may(origin.OpenAIResponses) && w.one(5) {
		w.search()
		return
	}
	switch w.IntN(4) {
	case 0:
		w.item("mcp_call", `{"type":"mcp_call","id":"`+w.id("mcp_")+`","server_label":"s","name":"n","arguments":"{}","output":"","error":null}`)
	case 1:
		w.item("web_search_call", `{"type":"web_search_call","id":"`+w.id("ws_")+`","status":"completed"}`)
	case 2:
		w.reasoning()
		w.item("mcp_call", `{"type":"mcp_call","id":"`+w.id("mcp_")+`","server_label":"s","name":"n","arguments":"{}","output":"","error":null}`)
	case 3:
		// without an id, no other item depends on it
		w.item("reasoning", `{"type":"reasoning","summary":[],"encrypted_content":"c2ln"}`)
	}
}

// search adds a call that is not a function call, with a common result.
func (w *writer) search() {
	search := state.ToolCall{ID: w.id("search_"), Name: "tool_search_call"}
	tool := jsontext.Object{}.WithString("type", "tool").WithString("id", search.ID).WithString("name", search.Name).With("input", []byte(`{"arguments":{}}`))
	tool = marked(tool, origin.OpenAIResponses, `{"type":"tool_search_call"}`)
	o := jsontext.Object{}.WithString("type", "tool_call").WithString("role", "assistant").With("tools", jsontext.Array([][]byte{tool.JSON()}))
	w.add(marked(o, origin.OpenAIResponses, "{}"))
	w.result(search, origin.OpenAIResponses, "{}")
}

func (w *writer) item(typ, item string) {
	w.add(jsontext.Object{}.WithString("type", origin.OpenAIResponses+"."+typ).WithString("role", "assistant").With(origin.Item, []byte(item)))
}

// calls adds one message with calls, or two that form one entry, and returns
// the calls. spoke is true if a text precedes them.
func (w *writer) calls(spoke bool) []state.ToolCall {
	var calls []state.ToolCall
	for range pick(w.Rand, 1, 1, 1, 1, 2, 2, 3, 5) {
		calls = append(calls, w.call(calls))
	}
	split := len(calls)
	if w.one(4) {
		split = w.IntN(len(calls)) + 1
	}
	for i, part := range [][]state.ToolCall{calls[:split], calls[split:]} {
		if len(part) == 0 {
			continue
		}
		mark := w.mark()
		held := "{}"
		switch {
		case i == 0 && spoke && w.one(6), i > 0 && w.one(6) && w.may(origin.Anthropic, origin.Gemini):
			held = `{"joined":false}` // than the text or the calls before, a separate entry
		case i == 0 && w.may(origin.Anthropic) && mark == origin.Anthropic && w.one(4):
			part[0].ID = "toolu_again" // which it takes from its own model
		}
		var tools [][]byte
		for _, c := range part {
			tool := jsontext.Object{}.WithString("type", "tool").WithString("id", c.ID).WithString("name", c.Name)
			if c.Input != "" && (c.Input[0] == '{' || mark == "" || mark == origin.OpenAI || mark == origin.OpenAIResponses) {
				tool = tool.With("input", []byte(c.Input))
			} else if mark == origin.Anthropic {
				tool = tool.With("input", []byte("{}"))
			}
			tools = append(tools, w.kept(tool, mark).JSON())
		}
		o := jsontext.Object{}.WithString("type", "tool_call").WithString("role", "assistant").With("tools", jsontext.Array(tools))
		w.add(marked(o, mark, held))
	}
	return calls
}

// kept adds the members that the format of a call keeps in it.
func (w *writer) kept(tool jsontext.Object, mark string) jsontext.Object {
	if w.one(2) {
		return tool
	}
	switch mark {
	case origin.OpenAIResponses:
		return marked(tool, mark, `{"more":{"id":"`+w.id("fc_")+`","status":"completed"}}`)
	case origin.Gemini:
		return marked(tool, mark, `{"more":{"thoughtSignature":"c2ln"}}`)
	}
	return marked(tool, mark, "{}")
}

// call returns a call that may be made together with the others.
func (w *writer) call(others []state.ToolCall) state.ToolCall {
	c := state.ToolCall{
		ID:   w.id("call_"),
		Name: pick(w.Rand, "get_weather", "search", "search", "a", "_x-1", strings.Repeat("n", 64)),
		Input: pick[state.JSON](w.Rand, "", `{}`, `{"city":"Paris"}`, `{"city":"Paris"}`, `{"n":299.0,"big":12345678901234567890,"list":[{"a":null}]}`,
			`{"text":"日本 \"x\""}`, `"not an object"`),
	}
	switch {
	case w.may(origin.OpenAI, origin.OpenAIResponses):
		c.Name = pick(w.Rand, c.Name, c.Name, "1st", "-")
		c.ID = pick(w.Rand, c.ID, c.ID, "functions.search:"+c.ID, c.ID+strings.Repeat("x", 64-len(c.ID)))
		if w.may(origin.OpenAI) && w.one(3) {
			c.ID = "call_again" + pick(w.Rand, "", "_2", "_3") // an id is free once its call is answered
		}
	case w.may(origin.Anthropic):
		c.Name = pick(w.Rand, c.Name, c.Name, strings.Repeat("n", 128))
		c.ID = pick(w.Rand, c.ID, c.ID, "toolu_"+c.ID+strings.Repeat("x", 60))
	case w.may(origin.Gemini):
		c.Name = pick(w.Rand, c.Name, c.Name, "ns.tool:v1")
		c.ID = pick(w.Rand, c.ID, "", "", "twice")
	}
	if slices.ContainsFunc(others, func(o state.ToolCall) bool { return o.ID == c.ID }) && !w.may(origin.Gemini) {
		c.ID = w.id("call_")
	}
	return c
}

// between adds messages that may stand between calls and their results.
func (w *writer) between(calls []state.ToolCall) {
	if w.one(12) {
		w.foreign()
	}
	switch {
	case w.one(12):
		// said after the calls, in the same entry
		w.own(pick(w.Rand, Formats...), "assistant", string(w.quoted()), `{"joined":true}`)
	case w.may(origin.Anthropic, origin.OpenAIResponses, origin.Gemini) && w.one(8):
		w.add(w.said("assistant", "", w.quoted()))
	case w.may(origin.OpenAIResponses) && w.one(6):
		if !slices.ContainsFunc(calls, func(c state.ToolCall) bool { return strings.HasPrefix(c.ID, "call_again") }) {
			w.user()
			w.step()
		}
	}
}

// results adds the results of the calls in any order.
func (w *writer) results(calls []state.ToolCall) {
	order := w.Perm(len(calls))
	for i, n := range order {
		mark, held := w.mark(), "{}"
		if i > 0 && (mark == origin.Gemini || mark == origin.Anthropic) {
			held = pick(w.Rand, held, `{"joined":true}`, `{"joined":false}`)
		}
		w.result(calls[n], mark, held)
		if i < len(order)-1 && w.may(origin.OpenAIResponses) && w.one(8) {
			w.add(w.said(pick(w.Rand, "user", "assistant"), "", w.quoted()))
		}
	}
}

func (w *writer) result(c state.ToolCall, mark, held string) {
	if w.may(origin.Gemini) && w.one(6) {
		c.ID = "" // it takes a result without the id of its call
	}
	tool := jsontext.Object{}.WithString("type", "tool").WithString("id", c.ID).WithString("name", c.Name)
	if c.Input != "" && mark == "" && w.one(2) {
		tool = tool.With("input", []byte(c.Input))
	}
	o := jsontext.Object{}.WithString("type", "tool_result").WithString("role", "tool_result").With("tool", tool.JSON())
	content := pick(w.Rand, `""`, `"299.0"`, `"true"`, `"{\"a\":1}"`, `"[{\"type\":\"text\",\"text\":\"x\"}]"`,
		`"Sunny, 22 °C"`, `"Error: no such city"`)
	switch mark {
	case "":
		content = pick(w.Rand, content, content, `299.0`, `true`, `null`, `{"a":1}`, `["a",{"b":2}]`, `[{"type":"text","text":"Sunny"}]`, `[]`,
			`[{"type":"text","text":"A picture"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]`)
	case origin.Anthropic:
		content = pick(w.Rand, content, `[{"type":"text","text":"Sunny"}]`, "")
	case origin.Gemini:
		content = pick(w.Rand, `{"output":"Sunny"}`, `{"error":"no such city"}`, `{}`, `{"n":299.0}`)
	}
	if content != "" {
		o = o.With("content", []byte(content))
	}
	if mark == "" && w.one(6) {
		o = o.With("is_error", []byte("true"))
	}
	w.add(marked(o, mark, held))
}
