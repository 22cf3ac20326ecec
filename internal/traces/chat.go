package traces

import (
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/strict"
)

// chat reads a chat message as τ-bench has it in traj, SWE-agent in history and
// mini-swe-agent in messages:
//
//	{"role": "user", "content": "…"}
//	{"role": "assistant", "content": null, "tool_calls": [{"id": "…", "function": {"name": "…", "arguments": "{…}"}}]}
//	{"role": "tool", "tool_call_id": "…", "content": "…"}
//
// What is said in any other role is taken as said to the model.
func (c *conversation) chat(pointer string, raw []byte) error {
	members, err := strict.Members(raw)
	if err != nil {
		return err
	}
	return c.read(pointer, raw, func(e *entry) error {
		switch role := text(get(members, "role")); {
		case role == "assistant":
			return c.chatTurn(e, members)
		case role == "tool", role == "function":
			return c.chatResult(e, members)
		case role == "" && strict.Kind(get(members, "output")) == "array":
			return c.response(e, members)
		case role == "" && text(get(members, "type")) == "function_call_output":
			return c.responseResult(e, members)
		}
		m, err := textMessage(members)
		if err == nil {
			c.say(e, m)
		}
		return err
	})
}

// textMessage returns a text message with all members of a chat message.
func textMessage(members []strict.Member) (state.Message, error) {
	role, rest := roleOf(members)
	content := strict.Member{Name: "content", Value: get(members, "content")}
	return message("text", []strict.Member{role, content}, without(rest, "content"))
}

// roleOf returns the role as a string, and the other members. A role that is no
// string is among them.
func roleOf(members []strict.Member) (role strict.Member, rest []strict.Member) {
	if raw := get(members, "role"); strict.Kind(raw) == "string" {
		return strict.Member{Name: "role", Value: raw}, without(members, "role")
	}
	return str("role", "unknown"), members
}

// chatTurn reads an assistant's message. Text and calls become two messages; the
// first of them has the other members.
func (c *conversation) chatTurn(e *entry, members []strict.Member) error {
	agent := text(get(members, "agent"))
	if agent == "" {
		agent = text(get(members, "name"))
	}
	if agent == "" {
		agent = "assistant"
	}
	calls, from := chatCalls(members)
	var output []state.Message
	members = without(members, from...)
	if len(calls) == 0 || saysSomething(get(members, "content")) {
		m, err := textMessage(members)
		if err != nil {
			return err
		}
		output = append(output, m)
	}
	if len(calls) > 0 {
		role, rest := roleOf(members)
		if len(output) > 0 {
			rest = nil
		}
		own := []strict.Member{role, {Name: "tools", Value: array(calls)}}
		m, err := message("tool_call", own, rest)
		if err != nil {
			return err
		}
		output = append(output, m)
	}
	c.turn(e, agent, time.Time{}, output...)
	return nil
}

// saysSomething reports whether content is more than null, "" or [].
func saysSomething(content []byte) bool {
	switch strict.Kind(content) {
	case "nothing", "null":
		return false
	case "string":
		return text(content) != ""
	case "array":
		parts, _ := strict.Elements(content)
		return len(parts) > 0
	}
	return true
}

// chatCalls returns the calls in a message and the name of the member they are in. That the
// member is there says nothing: it may be null, [], or a call without a name.
func chatCalls(members []strict.Member) (calls [][]byte, from []string) {
	list := get(members, "tool_calls")
	if strict.Kind(list) == "array" {
		elements, _ := strict.Elements(list)
		for _, element := range elements {
			calls = append(calls, chatCall(element))
		}
	}
	if len(calls) > 0 {
		return calls, []string{"tool_calls"}
	}
	// What there was before tool_calls.
	old := get(members, "function_call")
	if strict.Kind(old) == "object" {
		if inner, _ := strict.Members(old); text(get(inner, "name")) != "" {
			return [][]byte{chatCall(old)}, []string{"function_call"}
		}
	}
	return nil, nil
}

// chatCall returns a call as a message has it.
func chatCall(raw []byte) []byte {
	members, err := strict.Members(raw)
	if err != nil { // no object: a call of nothing
		return object(nil, []strict.Member{{Name: "value", Value: raw}})
	}
	id, rest := takeText(members, "id")
	fn, err := strict.Members(get(rest, "function"))
	if err != nil { // no object
		name, rest := takeText(rest, "name")
		arguments := strict.Member{Name: "input", Value: input(get(rest, "arguments"))}
		return object([]strict.Member{id, name, arguments}, without(rest, "arguments"))
	}
	name, more := takeText(fn, "name")
	arguments := strict.Member{Name: "input", Value: input(get(more, "arguments"))}
	rest = without(rest, "function")
	if more = without(more, "arguments"); len(more) > 0 {
		rest = append(rest, strict.Member{Name: "function", Value: object(nil, more)})
	}
	return object([]strict.Member{id, name, arguments}, rest)
}

func array(elements [][]byte) []byte {
	b := []byte{'['}
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']')
}

// chatResult reads a tool's message. SWE-agent has a list of the calls that it
// answers; each gets a result.
func (c *conversation) chatResult(e *entry, members []strict.Member) error {
	ids := []string{text(get(members, "tool_call_id"))}
	if list := get(members, "tool_call_ids"); ids[0] == "" && strict.Kind(list) == "array" {
		if elements, _ := strict.Elements(list); len(elements) > 0 {
			ids = ids[:0]
			for _, element := range elements {
				ids = append(ids, text(element))
			}
		}
	}
	role, rest := roleOf(members)
	own := []strict.Member{role, {Name: "content", Value: get(members, "content")}}
	rest = without(rest, "content")
	for _, id := range ids {
		if err := c.answer(e, id, text(get(members, "name")), text(get(members, "agent")), own, rest); err != nil {
			return err
		}
	}
	return nil
}
