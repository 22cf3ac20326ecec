package traces

import (
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// chat reads a chat message as τ-bench has it in traj, SWE-agent in history and
// mini-swe-agent in messages:
//
//	{"role": "user", "content": "…"}
//	{"role": "assistant", "content": null, "tool_calls": [{"id": "…", "function": {"name": "…", "arguments": "{…}"}}]}
//	{"role": "tool", "tool_call_id": "…", "content": "…"}
//
// What is said in any other role is taken as said to the model.
func (c *conversation) chat(e *entry, o jsontext.Object) error {
	switch role := loose.Text(o.Get("role")); {
	case role == "assistant":
		return c.chatTurn(e, o)
	case role == "tool", role == "function":
		return c.chatResult(e, o)
	case isResponse(o):
		return c.response(e, o)
	case isResponseResult(o):
		return c.responseResult(e, o)
	}
	m, err := textMessage(o)
	if err == nil {
		c.say(e, m)
	}
	return err
}

// textMessage returns a text message with all members of a chat message.
func textMessage(o jsontext.Object) (state.Message, error) {
	own, rest := roleOf(o)
	return message("text", own.With("content", o.Get("content")), rest.Without("content"))
}

// roleOf returns the role as a string, and the other members. A role that is no
// string is among them.
func roleOf(o jsontext.Object) (role, rest jsontext.Object) {
	if raw := o.Get("role"); jsontext.Kind(raw) == "string" {
		return jsontext.Object{}.With("role", raw), o.Without("role")
	}
	return jsontext.Object{}.WithString("role", "unknown"), o
}

// chatTurn reads an assistant's message. Text and calls become two messages; the
// first of them has the other members.
func (c *conversation) chatTurn(e *entry, o jsontext.Object) error {
	agent := "assistant"
	for _, name := range []string{"name", "agent"} {
		if by := loose.Text(o.Get(name)); by != "" {
			agent = by
		}
	}
	calls, from := chatCalls(o)
	var output []state.Message
	if len(calls) > 0 {
		o = o.Without(from)
	}
	if len(calls) == 0 || saysSomething(o.Get("content")) {
		m, err := textMessage(o)
		if err != nil {
			return err
		}
		output = append(output, m)
	}
	if len(calls) > 0 {
		own, rest := roleOf(o)
		if len(output) > 0 {
			rest = nil
		}
		m, err := message("tool_call", own.With("tools", jsontext.Array(calls)), rest)
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
	switch jsontext.Kind(content) {
	case "nothing", "null":
		return false
	case "string":
		return loose.Text(content) != ""
	case "array":
		return len(loose.Elements(content)) > 0
	}
	return true
}

// chatCalls returns the calls in a message and the name of the member they are
// in. That the member is there says nothing: it may be null, [], or a call
// without a name.
func chatCalls(o jsontext.Object) (calls [][]byte, from string) {
	for _, element := range loose.Elements(o.Get("tool_calls")) {
		calls = append(calls, chatCall(element))
	}
	if len(calls) > 0 {
		return calls, "tool_calls"
	}
	// What there was before tool_calls.
	old := o.Get("function_call")
	if loose.Text(loose.Members(old).Get("name")) != "" {
		return [][]byte{chatCall(old)}, "function_call"
	}
	return nil, ""
}

// chatCall returns a call as a message has it.
func chatCall(raw []byte) []byte {
	o, err := jsontext.Members(raw)
	if err != nil { // no object: a call of nothing
		return jsontext.Object{}.With("value", raw).JSON()
	}
	id, rest := loose.TakeText(o, "id")
	fn, err := jsontext.Members(rest.Get("function"))
	if err != nil { // no object
		name, rest := loose.TakeText(rest, "name")
		own := jsontext.Object{id, name}.With("input", input(rest.Get("arguments")))
		return loose.Join(own, rest.Without("arguments"))
	}
	name, more := loose.TakeText(fn, "name")
	own := jsontext.Object{id, name}.With("input", input(more.Get("arguments")))
	rest = rest.Without("function")
	if more = more.Without("arguments"); len(more) > 0 {
		rest = rest.With("function", more.JSON())
	}
	return loose.Join(own, rest)
}

// chatResult reads a tool's message. SWE-agent has a list of the calls that it
// answers; each gets a result.
func (c *conversation) chatResult(e *entry, o jsontext.Object) error {
	own, rest := roleOf(o)
	own, rest = own.With("content", o.Get("content")), rest.Without("content")
	for _, id := range answeredIDs(o) {
		if err := c.answer(e, id, loose.Text(o.Get("name")), loose.Text(o.Get("agent")), own, rest); err != nil {
			return err
		}
	}
	return nil
}

// answeredIDs returns the ids of the calls that a tool's message answers, at
// least one, which is "" if the message has none.
func answeredIDs(o jsontext.Object) []string {
	id := loose.Text(o.Get("tool_call_id"))
	list := loose.Elements(o.Get("tool_call_ids"))
	if id != "" || len(list) == 0 {
		return []string{id}
	}
	ids := make([]string, len(list))
	for i, element := range list {
		ids[i] = loose.Text(element)
	}
	return ids
}
