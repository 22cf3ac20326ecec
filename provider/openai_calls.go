package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// The kinds of calls. A call that has another kind than that of a function
// keeps its kind.
const (
	customCall = "custom"        // whose input is a text
	legacyCall = "function_call" // the only one of its entry, without an id
)

// chatCalls returns the calls of an entry and its other members. It returns
// false for calls that are none of the known kinds.
func chatCalls(entry jsontext.Object) (calls []call, rest jsontext.Object, ok bool) {
	rest = entry
	switch list := entry.Get("tool_calls"); jsontext.Kind(list) {
	case "nothing", "null":
	case "array":
		elements, err := jsontext.Elements(list)
		if err != nil {
			return nil, nil, false
		}
		for _, element := range elements {
			sent, err := jsontext.Members(element)
			c, ok := chatCall(sent)
			if err != nil || !ok {
				return nil, nil, false
			}
			calls = append(calls, c)
		}
		if len(calls) > 0 {
			rest = rest.Without("tool_calls")
		}
	default:
		return nil, nil, false
	}
	switch only := entry.Get("function_call"); jsontext.Kind(only) {
	case "nothing", "null":
	case "object":
		function, err := jsontext.Members(only)
		if err != nil {
			return nil, nil, false
		}
		c := call{kept: jsontext.Object{}.WithString("kind", legacyCall)}
		c.setFunction(legacyCall, function)
		if c.name != "" || c.input != nil { // or it is a zero value that some send
			calls, rest = append(calls, c), rest.Without("function_call")
		}
	default:
		return nil, nil, false
	}
	return calls, rest, true
}

// chatCall reads an element of tool_calls.
func chatCall(sent jsontext.Object) (c call, ok bool) {
	kind, body := "", "function"
	if stringOf(sent.Get("type")) == customCall {
		kind, body = customCall, "custom"
		c.kept = c.kept.WithString("kind", kind)
	}
	function, err := jsontext.Members(sent.Get(body))
	if err != nil {
		return c, false
	}
	c.id = stringOf(sent.Get("id"))
	plain := jsontext.Object{}.WithString("id", c.id).WithString("type", body)
	c.kept = append(c.kept, difference(sent.Without(body), plain)...)
	c.setFunction(kind, function)
	return c, true
}

// setFunction sets what an object with a name and arguments says.
func (c *call) setFunction(kind string, sent jsontext.Object) {
	c.name = stringOf(sent.Get("name"))
	c.input = chatInput(kind, sent.Get(chatArguments(kind)))
	if d := difference(sent, chatFunction(kind, c.name, state.JSON(c.input))); d != nil {
		c.kept = c.kept.With("function", d.JSON())
	}
}

// chatArguments returns the name of the member with the arguments.
func chatArguments(kind string) string {
	if kind == customCall {
		return "input"
	}
	return "arguments"
}

// chatInput returns the input for what is sent as arguments.
func chatInput(kind string, sent []byte) []byte {
	if kind == customCall {
		return sent
	}
	return arguments(sent)
}

// chatFunction returns the plain object with the name and the arguments.
func chatFunction(kind, name string, input state.JSON) jsontext.Object {
	text := argumentsText(input)
	if kind == customCall {
		text = jsontext.AppendQuote(nil, input.Text())
	}
	return jsontext.Object{}.WithString("name", name).With(chatArguments(kind), text)
}

// chatCall returns a call and its kind: an element of tool_calls, or what
// function_call is.
func (e *encoder) chatCall(c state.ToolCall) (kind string, object jsontext.Object) {
	kept, _ := e.keptOf(c)
	kind = chatKind(kept, c.ID)

	// Arguments are spelled as they were unless the input has changed.
	spelling := inside(kept, "function")
	member, said := chatArguments(kind), []string{}
	if sent := inside(spelling, more).Get(member); !equal(chatInput(kind, sent), []byte(c.Input)) {
		said = append(said, member)
	}
	function := restore(chatFunction(kind, c.Name, c.Input), spelling, unlessEmpty(said, "name", c.Name)...)
	if kind == legacyCall {
		return kind, function
	}
	body := "function"
	if kind == customCall {
		body = "custom"
	}
	object = jsontext.Object{}.WithString("id", c.ID).WithString("type", body)
	return kind, restore(object, kept, unlessEmpty(nil, "id", c.ID)...).With(body, function.JSON())
}

// chatKind returns the kind that is kept of a call or a result. A call that was
// given an identifier since is one of a function.
func chatKind(kept jsontext.Object, id string) string {
	kind := stringOf(kept.Get("kind"))
	if kind == legacyCall && id != "" {
		return ""
	}
	return kind
}

// chatResult returns the plain entry of a result.
func chatResult(kind, id, name string, content []byte) jsontext.Object {
	if kind == legacyCall {
		return jsontext.Object{}.WithString("role", "function").WithString("name", name).With("content", content)
	}
	return jsontext.Object{}.WithString("role", "tool").WithString("tool_call_id", id).With("content", content)
}

// unlessEmpty appends the name of a member that has a text. If it has none, what
// was sent may have been missing or no text.
func unlessEmpty(names []string, name, text string) []string {
	if text == "" {
		return names
	}
	return append(names, name)
}
