package traces

import (
	"math"
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/strict"
)

// isSession tells the events of an ADK session from those of other formats.
func isSession(members []strict.Member, events []byte) bool {
	elements, _ := strict.Elements(events)
	if len(elements) == 0 {
		return hasAny("app_name", "appName", "user_id", "userId")(members, events)
	}
	first, _ := strict.Members(elements[0])
	return get(first, "author") != nil
}

// event reads an event of an ADK session, in snake or in camel case:
//
//	{"author": "planner", "timestamp": 1733043686.84, "content": {"role": "model", "parts": [
//		{"text": "…"}, {"function_call": {"name": "…", "args": {…}}}]}}
//	{"author": "planner", "content": {"role": "user", "parts": [
//		{"function_response": {"name": "…", "response": {…}}}]}}
//
// What an agent says is a turn of that agent. Results have no id as a rule and
// belong to the calls of the same name in their order. The first message of an
// event has the event's other members. An event without parts, such as one that
// only changes the session's state, passes through.
func (c *conversation) event(pointer string, raw []byte) error {
	members, err := strict.Members(raw)
	if err != nil {
		return err
	}
	return c.read(pointer, raw, func(e *entry) error {
		ev := event{author: text(get(members, "author")), rest: without(members, "content")}
		ev.time = seconds(text(get(members, "timestamp")))
		content, _ := strict.Members(get(members, "content")) // none if it is no object
		ev.role = text(get(content, "role"))
		if ev.role == "" {
			ev.role = "model"
			if ev.author == "user" {
				ev.role = "user"
			}
		}
		if ev.author == "" {
			ev.author = ev.role
		}
		parts, _ := strict.Elements(get(content, "parts"))
		if len(parts) == 0 {
			m, err := message("event", []strict.Member{str("role", ev.role)}, members)
			if err == nil {
				c.say(e, m)
			}
			return err
		}
		if strict.Kind(get(content, "role")) == "string" {
			content = without(content, "role")
		}
		ev.rest = append(ev.rest, without(content, "parts")...)
		return c.parts(e, &ev, parts)
	})
}

// event is what the messages of an event share.
type event struct {
	author, role string
	time         time.Time
	rest         []strict.Member // for the first message
}

// take returns the members for the first message, once.
func (ev *event) take() []strict.Member {
	rest := ev.rest
	ev.rest = nil
	return rest
}

// parts adds the parts of an event in their order: text and other parts that
// follow one another as one message, and so calls; each result by itself.
func (c *conversation) parts(e *entry, ev *event, parts [][]byte) error {
	role := str("role", ev.role)
	var output []state.Message
	flush := func() {
		switch {
		case len(output) == 0:
		case ev.author == "user":
			for _, m := range output {
				c.say(e, m)
			}
		default:
			c.turn(e, ev.author, ev.time, output...)
		}
		output = nil
	}
	for len(parts) > 0 {
		kind, n := runOf(parts)
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
		typ, own := "text", strict.Member{Name: "content", Value: contentOf(group)}
		if kind == callPart {
			calls := make([][]byte, n)
			for i, part := range group {
				calls[i] = functionCall(part)
			}
			typ, own = "tool_call", strict.Member{Name: "tools", Value: array(calls)}
		}
		m, err := message(typ, []strict.Member{role, own}, ev.take())
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

// kindOf says what a part is. Members that are null do not count: some writers
// put all that a part could have in each.
func kindOf(part []byte) string {
	members, _ := strict.Members(part)
	if strict.Kind(get(members, "function_call", "functionCall")) == "object" {
		return callPart
	}
	if strict.Kind(get(members, "function_response", "functionResponse")) == "object" {
		return responsePart
	}
	return otherPart
}

// runOf returns how many parts at the start are of one kind.
func runOf(parts [][]byte) (kind string, n int) {
	kind = kindOf(parts[0])
	for n < len(parts) && kindOf(parts[n]) == kind {
		n++
	}
	return kind, n
}

// contentOf returns the content of a text message: a string if there is one part
// with nothing but text, else the parts.
func contentOf(parts [][]byte) []byte {
	if len(parts) == 1 {
		members, _ := strict.Members(parts[0])
		if len(members) == 1 && members[0].Name == "text" && strict.Kind(members[0].Value) == "string" {
			return members[0].Value
		}
	}
	content := make([][]byte, len(parts))
	for i, part := range parts {
		content[i] = part
		members, _ := strict.Members(part)
		if strict.Kind(get(members, "text")) == "string" {
			content[i] = object([]strict.Member{str("type", "text")}, members)
		}
	}
	return array(content)
}

// functionCall returns the call in a part as a message has it.
func functionCall(part []byte) []byte {
	outer, _ := strict.Members(part)
	members, _ := strict.Members(get(outer, "function_call", "functionCall"))
	id, rest := takeText(members, "id")
	name, rest := takeText(rest, "name")
	args := strict.Member{Name: "input", Value: input(get(rest, "args"))}
	rest = append(without(rest, "args"), without(outer, "function_call", "functionCall")...)
	return object([]strict.Member{id, name, args}, rest)
}

// functionResponse adds the result in a part.
func (c *conversation) functionResponse(e *entry, ev *event, part []byte) error {
	outer, _ := strict.Members(part)
	members, _ := strict.Members(get(outer, "function_response", "functionResponse"))
	own := []strict.Member{str("role", ev.role), {Name: "content", Value: get(members, "response")}}
	rest := append(ev.take(), without(outer, "function_response", "functionResponse")...)
	if about := without(members, "response"); len(about) > 0 {
		rest = append(rest, strict.Member{Name: "function_response", Value: object(nil, about)})
	}
	return c.answer(e, text(get(members, "id")), text(get(members, "name")), ev.author, own, rest)
}

// seconds returns the time of a number of seconds, to the microsecond, which is
// what a float64 holds of it. It is zero if there is none.
func seconds(number string) time.Time {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f > 0 && f < 1e11) {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(f * 1e6))).UTC()
}
