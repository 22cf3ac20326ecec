package traces

import (
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// chat reads a chat message, as in the member traj of τ-bench, history of
// SWE-agent and messages of mini-swe-agent:
//
//	{"role": "user", "content": "…"}
//	{"role": "assistant", "content": null, "tool_calls": [{"id": "…", "function": {"name": "…", "arguments": "{…}"}}]}
//	{"role": "tool", "tool_call_id": "…", "content": "…"}
//
// A message with any other role counts as input of the model.
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
		c.addMessage(e, m)
	}
	return err
}

// textMessage returns a text message with all members of a chat message.
func textMessage(o jsontext.Object) (state.Message, error) {
	own, rest := roleOf(o)
	return newMessage("text", own.With("content", o.Get("content")), rest.Without("content"))
}

// roleOf returns the role as a string, and the other members. A role that is
// not a string stays among them.
func roleOf(o jsontext.Object) (role, rest jsontext.Object) {
	if raw := o.Get("role"); jsontext.Kind(raw) == "string" {
		return jsontext.Object{}.With("role", raw), o.Without("role")
	}
	return jsontext.Object{}.WithString("role", "unknown"), o
}

// chatTurn reads an assistant's message. Text and calls become two messages.
// The first one gets the other members.
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
	if len(calls) == 0 || isContent(o.Get("content")) {
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
		m, err := newMessage("tool_call", own.With("tools", jsontext.Array(calls)), rest)
		if err != nil {
			return err
		}
		output = append(output, m)
	}
	c.addTurn(e, agent, time.Time{}, output...)
	return nil
}

// isContent reports whether content is more than null, "" or [].
func isContent(content []byte) bool {
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

// chatCalls returns the calls in a message and the name of the member that
// holds them. The member may exist without a call: it may be null, [], or a
// call without a name.
func chatCalls(o jsontext.Object) (calls [][]byte, from string) {
	for _, element := range loose.Elements(o.Get("tool_calls")) {
		calls = append(calls, chatCall(element))
	}
	if len(calls) > 0 {
		return calls, "tool_calls"
	}
	// The predecessor of tool_calls.
	old := o.Get("function_call")
	if loose.Text(loose.Members(old).Get("name")) != "" {
		return [][]byte{chatCall(old)}, "function_call"
	}
	return nil, ""
}

// chatCall returns a call in the form of a message.
func chatCall(raw []byte) []byte {
	o, err := jsontext.Members(raw)
	if err != nil { // not an object
		return jsontext.Object{}.With("value", raw).JSON()
	}
	id, rest := loose.TakeText(o, "id")
	fn, err := jsontext.Members(rest.Get("function"))
	if err != nil { // not an object
		name, rest := loose.TakeText(rest, "name")
		own := jsontext.Object{id, name}.With("input", callInput(rest.Get("arguments")))
		return loose.Join(own, rest.Without("arguments"))
	}
	name, more := loose.TakeText(fn, "name")
	own := jsontext.Object{id, name}.With("input", callInput(more.Get("arguments")))
	rest = rest.Without("function")
	if more = more.Without("arguments"); len(more) > 0 {
		rest = rest.With("function", more.JSON())
	}
	return loose.Join(own, rest)
}

// chatResult reads a tool's message. One message of SWE-agent may answer a list
// of calls. Each of them gets a result.
func (c *conversation) chatResult(e *entry, o jsontext.Object) error {
	own, rest := roleOf(o)
	own, rest = own.With("content", o.Get("content")), rest.Without("content")
	for _, id := range answeredIDs(o) {
		if err := c.addResult(e, id, loose.Text(o.Get("name")), loose.Text(o.Get("agent")), own, rest); err != nil {
			return err
		}
	}
	return nil
}

// answeredIDs returns the ids of the calls that a tool's message answers. It is
// a single "" if the message has no id.
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
