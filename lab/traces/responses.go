package traces

import (
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// isResponse and isResponseResult recognise the entries that mini-swe-agent
// records from the Responses API. Neither has a role.
func isResponse(o jsontext.Object) bool {
	return loose.Text(o.Get("role")) == "" && jsontext.Kind(o.Get("output")) == "array"
}

func isResponseResult(o jsontext.Object) bool {
	return loose.Text(o.Get("role")) == "" && loose.Text(o.Get("type")) == "function_call_output"
}

// response reads a turn. Its output is a list of items:
//
//	{"object": "response", "output": [
//		{"type": "reasoning", …},
//		{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "…"}]},
//		{"type": "function_call", "call_id": "…", "name": "…", "arguments": "{…}"}]}
//
// Adjacent calls become one message. An item that is neither text nor a call
// keeps its type.
func (c *conversation) response(e *entry, o jsontext.Object) error {
	var output []state.Message
	rest := o.Without("output") // for the first message
	add := func(typ string, own, more jsontext.Object) error {
		m, err := newMessage(typ, own, append(more[:len(more):len(more)], rest...))
		output, rest = append(output, m), nil
		return err
	}
	assistant := jsontext.Object{}.WithString("role", "assistant")
	var calls [][]byte
	flush := func() error {
		if len(calls) == 0 {
			return nil
		}
		own := assistant.With("tools", jsontext.Array(calls))
		calls = nil
		return add("tool_call", own, nil)
	}
	for _, raw := range loose.Elements(o.Get("output")) {
		item, err := jsontext.Members(raw)
		if err != nil {
			item = jsontext.Object{}.With("value", raw)
		}
		typ := loose.Text(jsontext.Object(item).Get("type"))
		if typ == "function_call" {
			calls = append(calls, responseCall(item))
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if typ == "message" {
			own, more := roleOf(item)
			err = add("text", own.With("content", more.Get("content")), more.Without("content"))
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
		if err := add("text", assistant, nil); err != nil {
			return err
		}
	}
	c.addTurn(e, "assistant", time.Time{}, output...)
	return nil
}

// responseCall returns a call with the id that results refer to. The id of the
// item stays in a separate member.
func responseCall(item jsontext.Object) []byte {
	id, rest := loose.TakeText(item, "call_id")
	name, rest := loose.TakeText(rest, "name")
	id.Name = "id"
	own := jsontext.Object{id, name}.With("input", callInput(rest.Get("arguments")))
	return loose.Join(own, rest.Without("arguments"))
}

// responseResult reads {"type": "function_call_output", "call_id": "…",
// "output": "…"}.
func (c *conversation) responseResult(e *entry, o jsontext.Object) error {
	own := jsontext.Object{}.WithString("role", "tool").With("content", o.Get("output"))
	return c.addResult(e, loose.Text(o.Get("call_id")), "", "", own, o.Without("output"))
}
