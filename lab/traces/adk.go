package traces

import (
	"math"
	"strconv"
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// isSession reports whether an object with events is an ADK session.
func isSession(o jsontext.Object) bool {
	events := loose.Elements(o.Get("events"))
	if len(events) == 0 {
		return loose.Has("app_name", "appName", "user_id", "userId")(o)
	}
	return loose.Members(events[0]).Get("author") != nil
}

// event reads an event of an ADK session, in snake or in camel case:
//
//	{"author": "planner", "timestamp": 1733043686.84, "content": {"role": "model", "parts": [
//		{"text": "…"}, {"function_call": {"name": "…", "args": {…}}}]}}
//	{"author": "planner", "content": {"role": "user", "parts": [
//		{"function_response": {"name": "…", "response": {…}}}]}}
//
// The parts of an agent are a turn of that agent. Results usually have no id
// and belong to the calls of the same name in their order. The first message of
// an event gets the event's other members. An event without parts, such as one
// that only changes the state of the session, becomes a message of type event.
func (c *conversation) event(e *entry, o jsontext.Object) error {
	ev := event{author: loose.Text(o.Get("author")), rest: o.Without("content")}
	ev.time = unixSeconds(loose.Text(o.Get("timestamp")))
	content := loose.Members(o.Get("content"))
	ev.role = loose.Text(content.Get("role"))
	if ev.role == "" {
		ev.role = "model"
		if ev.author == "user" {
			ev.role = "user"
		}
	}
	if ev.author == "" {
		ev.author = ev.role
	}
	parts := loose.Elements(content.Get("parts"))
	if len(parts) == 0 {
		m, err := newMessage("event", jsontext.Object{}.WithString("role", ev.role), o)
		if err == nil {
			c.addMessage(e, m)
		}
		return err
	}
	if role := content.Get("role"); jsontext.Kind(role) == "string" && loose.Text(role) != "" {
		content = content.Without("role")
	}
	ev.rest = append(ev.rest, content.Without("parts")...)
	return c.parts(e, &ev, parts)
}

// event holds what the messages of an event share.
type event struct {
	author, role string
	time         time.Time
	rest         jsontext.Object // for the first message
}

// takeRest returns the members for the first message, the first time.
func (ev *event) takeRest() jsontext.Object {
	rest := ev.rest
	ev.rest = nil
	return rest
}

// parts adds the parts of an event in their order. Adjacent calls become one
// message, and so do adjacent parts that are neither calls nor results. Each
// result becomes a separate message.
func (c *conversation) parts(e *entry, ev *event, parts [][]byte) error {
	role := jsontext.Object{}.WithString("role", ev.role)
	var output []state.Message
	flush := func() {
		switch {
		case len(output) == 0:
		case ev.author == "user":
			for _, m := range output {
				c.addMessage(e, m)
			}
		default:
			c.addTurn(e, ev.author, ev.time, output...)
		}
		output = nil
	}
	for len(parts) > 0 {
		kind, n := leadingRun(parts)
		group := parts[:n]
		parts = parts[n:]
		if kind == responsePart {
			flush()
			for _, part := range group {
				if err := c.functionResponse(e, ev, part); err != nil {
					return err
				}
			}
			continue
		}
		typ, own := "text", role.With("content", partsContent(group))
		if kind == callPart {
			calls := make([][]byte, n)
			for i, part := range group {
				calls[i] = functionCall(part)
			}
			typ, own = "tool_call", role.With("tools", jsontext.Array(calls))
		}
		m, err := newMessage(typ, own, ev.takeRest())
		if err != nil {
			return err
		}
		output = append(output, m)
	}
	flush()
	return nil
}

const (
	callPart     = "function_call"
	responsePart = "function_response"
	otherPart    = ""
)

// partKind returns the kind of a part and the member that holds it. Members
// that are null do not count: some writers put every possible member in each
// part.
func partKind(part jsontext.Object) (kind, in string) {
	for _, m := range part {
		switch m.Name {
		case "function_call", "functionCall":
			kind = callPart
		case "function_response", "functionResponse":
			kind = responsePart
		default:
			continue
		}
		if jsontext.Kind(m.Value) == "object" {
			return kind, m.Name
		}
	}
	return otherPart, ""
}

// leadingRun returns the kind of the first part and the number of parts of that
// kind at the start.
func leadingRun(parts [][]byte) (kind string, n int) {
	kind, _ = partKind(loose.Members(parts[0]))
	for n = 1; n < len(parts); n++ {
		if next, _ := partKind(loose.Members(parts[n])); next != kind {
			break
		}
	}
	return kind, n
}

// partsContent returns the content of a text message: a string for a single
// part that has only text, and otherwise the parts.
func partsContent(parts [][]byte) []byte {
	if len(parts) == 1 {
		part := loose.Members(parts[0])
		if len(part) == 1 && jsontext.Kind(part.Get("text")) == "string" {
			return part.Get("text")
		}
	}
	content := make([][]byte, len(parts))
	for i, raw := range parts {
		content[i] = raw
		if part := loose.Members(raw); jsontext.Kind(part.Get("text")) == "string" {
			content[i] = loose.Join(jsontext.Object{}.WithString("type", "text"), part)
		}
	}
	return jsontext.Array(content)
}

// functionCall returns the call in a part in the form of a message.
func functionCall(part []byte) []byte {
	outer := loose.Members(part)
	_, in := partKind(outer)
	id, rest := loose.TakeText(loose.Members(outer.Get(in)), "id")
	name, rest := loose.TakeText(rest, "name")
	own := jsontext.Object{id, name}.With("input", callInput(rest.Get("args")))
	return loose.Join(own, append(rest.Without("args"), outer.Without(in)...))
}

// functionResponse adds the result in a part.
func (c *conversation) functionResponse(e *entry, ev *event, part []byte) error {
	outer := loose.Members(part)
	_, in := partKind(outer)
	response := loose.Members(outer.Get(in))
	own := jsontext.Object{}.WithString("role", ev.role).With("content", response.Get("response"))
	rest := append(ev.takeRest(), outer.Without(in)...)
	if about := response.Without("response"); len(about) > 0 {
		rest = append(rest, jsontext.Member{Name: "function_response", Value: about.JSON()})
	}
	return c.addResult(e, loose.Text(response.Get("id")), loose.Text(response.Get("name")), ev.author, own, rest)
}

// unixSeconds returns the time of a number of seconds, rounded to a
// microsecond, the precision of a float64. It returns the zero time if number
// is not a time.
func unixSeconds(number string) time.Time {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f > 0 && f < 1e11) {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(f * 1e6))).UTC()
}
