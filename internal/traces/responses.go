package traces

import (
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/strict"
)

// response reads a turn that mini-swe-agent has recorded from the Responses
// API. It has no role, and its output is a list of items:
//
//	{"object": "response", "output": [
//		{"type": "reasoning", …},
//		{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "…"}]},
//		{"type": "function_call", "call_id": "…", "name": "…", "arguments": "{…}"}]}
//
// Calls that follow one another are one message. Items that are neither text nor
// calls keep their type and pass through.
func (c *conversation) response(e *entry, members []strict.Member) error {
	items, err := strict.Elements(get(members, "output"))
	if err != nil {
		return err
	}
	var output []state.Message
	rest := without(members, "output") // goes to the first message
	add := func(typ string, own, more []strict.Member) error {
		m, err := message(typ, own, append(more, rest...))
		output, rest = append(output, m), nil
		return err
	}
	role := str("role", "assistant")
	var calls [][]byte
	flush := func() error {
		if len(calls) == 0 {
			return nil
		}
		tools := strict.Member{Name: "tools", Value: array(calls)}
		calls = nil
		return add("tool_call", []strict.Member{role, tools}, nil)
	}
	for _, raw := range items {
		item, err := strict.Members(raw)
		if err != nil {
			item = []strict.Member{{Name: "value", Value: raw}}
		}
		typ := text(get(item, "type"))
		if typ == "function_call" {
			calls = append(calls, responseCall(item))
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if typ == "message" {
			by, more := roleOf(item)
			content := strict.Member{Name: "content", Value: get(item, "content")}
			err = add("text", []strict.Member{by, content}, without(more, "content"))
		} else {
			err = add("item", nil, item)
		}
		if err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if len(output) == 0 {
		if err := add("text", []strict.Member{role}, nil); err != nil {
			return err
		}
	}
	c.turn(e, "assistant", time.Time{}, output...)
	return nil
}

// responseCall returns a call whose id is the one that results refer to. The
// item has an id too, which stays beside it.
func responseCall(item []strict.Member) []byte {
	call, rest := takeText(item, "call_id")
	name, rest := takeText(rest, "name")
	call.Name = "id"
	arguments := strict.Member{Name: "input", Value: input(get(rest, "arguments"))}
	return object([]strict.Member{call, name, arguments}, without(rest, "arguments"))
}

// responseResult reads {"type": "function_call_output", "call_id": "…", "output": "…"}.
func (c *conversation) responseResult(e *entry, members []strict.Member) error {
	own := []strict.Member{str("role", "tool"), {Name: "content", Value: get(members, "output")}}
	return c.answer(e, text(get(members, "call_id")), "", "", own, without(members, "output"))
}
