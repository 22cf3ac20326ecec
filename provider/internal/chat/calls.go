package chat

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// The kinds of calls. A call of a function has the kind "", which is not kept.
const (
	customCall = "custom"        // its input is a text
	legacyCall = "function_call" // the only call of its entry, without an id
)

// callsOf returns the calls of an entry and its other members. It returns false
// for calls of an unknown kind.
func callsOf(entry jsontext.Object) (calls []codec.Call, rest jsontext.Object, ok bool) {
	rest = entry
	if list := entry.Get("tool_calls"); !jsontext.IsNull(list) {
		elements, err := jsontext.Elements(list)
		if err != nil {
			return nil, nil, false
		}
		for _, element := range elements {
			c, ok := callOf(element)
			if !ok {
				return nil, nil, false
			}
			calls = append(calls, c)
		}
		if len(calls) > 0 {
			rest = rest.Without("tool_calls")
		}
	}
	if only := entry.Get("function_call"); !jsontext.IsNull(only) {
		function, err := jsontext.Members(only)
		if err != nil {
			return nil, nil, false
		}
		c := codec.Call{Kept: jsontext.Object{}.WithString("kind", legacyCall)}
		setFunction(&c, legacyCall, function)
		if c.Name != "" || c.Input != nil { // some providers send a zero value
			calls, rest = append(calls, c), rest.Without("function_call")
		}
	}
	return calls, rest, true
}

// callOf reads an element of tool_calls.
func callOf(element []byte) (c codec.Call, ok bool) {
	sent, err := jsontext.Members(element)
	if err != nil {
		return c, false
	}
	kind, body := "", "function"
	if jsontext.IsText(sent.Get("type"), customCall) {
		kind, body = customCall, "custom"
		c.Kept = c.Kept.WithString("kind", kind)
	}
	function, err := jsontext.Members(sent.Get(body))
	if err != nil {
		return c, false
	}
	c.ID = sent.String("id")
	plain := plainCall(codec.SentText(sent, "id"), body, sent.Get(body))
	c.Kept = append(c.Kept, codec.Difference(sent, plain)...)
	setFunction(&c, kind, function)
	return c, true
}

// setFunction sets what an object with a name and arguments says.
func setFunction(c *codec.Call, kind string, sent jsontext.Object) {
	c.Name = sent.String("name")
	input, plain := callInput(kind, sent.Get(argumentsMember(kind)))
	c.Input = input
	if d := codec.Difference(sent, plainFunction(kind, codec.SentText(sent, "name"), plain)); d != nil {
		c.Kept = c.Kept.With("function", d.JSON())
	}
}

// argumentsMember returns the name of the member with the arguments.
func argumentsMember(kind string) string {
	if kind == customCall {
		return "input"
	}
	return "arguments"
}

// callInput returns the input of a call for its arguments, and the plain ones
// as codec.ArgumentsInput does.
func callInput(kind string, arguments []byte) (input, plain []byte) {
	if kind != customCall {
		return codec.ArgumentsInput(arguments)
	}
	switch jsontext.Kind(arguments) {
	case "nothing":
		return nil, callArguments(kind, "")
	case "null":
		return nil, nil
	case "string":
		return arguments, arguments
	}
	return arguments, nil
}

// callArguments returns the arguments of a call for its input.
func callArguments(kind string, input state.JSON) []byte {
	if kind == customCall {
		return jsontext.AppendQuote(nil, input.Text())
	}
	return codec.InputArguments(input)
}

// plainFunction returns the plain object with the name and the arguments.
func plainFunction(kind string, name, arguments []byte) jsontext.Object {
	return jsontext.Object{{Name: "name", Value: name}, {Name: argumentsMember(kind), Value: arguments}}
}

// plainCall returns the plain element of tool_calls, whose function is in the
// member body.
func plainCall(id []byte, body string, function []byte) jsontext.Object {
	typ := jsontext.AppendQuote(nil, body)
	return jsontext.Object{{Name: "id", Value: id}, {Name: "type", Value: typ}, {Name: body, Value: function}}
}

// encodeCall returns a call and its kind: an element of tool_calls, or the
// value of function_call.
func encodeCall(e *codec.Encoder, c state.ToolCall) (kind string, object jsontext.Object) {
	kept, _ := e.KeptOfCall(c)
	kind = keptKind(kept, c.ID)

	// The arguments are spelled as they were, unless the input has changed.
	spelling := kept.Object("function")
	changed := unlessEmpty(nil, "name", c.Name)
	arguments := argumentsMember(kind)
	sent, _ := codec.SentMember(spelling, arguments)
	if input, _ := callInput(kind, sent); !codec.EqualJSON(input, []byte(c.Input)) {
		changed = append(changed, arguments)
	}
	name := jsontext.AppendQuote(nil, c.Name)
	function := codec.Restore(plainFunction(kind, name, callArguments(kind, c.Input)), spelling, changed...)
	if kind == legacyCall {
		return kind, function
	}
	body := "function"
	if kind == customCall {
		body = "custom"
	}
	object = plainCall(jsontext.AppendQuote(nil, c.ID), body, function.JSON())
	return kind, codec.Restore(object, kept, unlessEmpty([]string{body}, "id", c.ID)...)
}

// keptKind returns the kind that is kept of a call or a result. A legacy call
// that has been given an id is a call of a function.
func keptKind(kept jsontext.Object, id string) string {
	kind := kept.String("kind")
	if kind == legacyCall && id != "" {
		return ""
	}
	return kind
}

// plainResult returns the plain entry of a result, which answers a call by its
// id, or by its name if it is a legacy call.
func plainResult(kind string, by, content []byte) jsontext.Object {
	role, name := `"tool"`, "tool_call_id"
	if kind == legacyCall {
		role, name = `"function"`, "name"
	}
	return jsontext.Object{{Name: "role", Value: []byte(role)}, {Name: name, Value: by}, {Name: "content", Value: content}}
}

// unlessEmpty appends the name of a member, unless its text is empty. What was
// sent in place of an empty text may have been missing or of another kind.
func unlessEmpty(names []string, name, text string) []string {
	if text == "" {
		return names
	}
	return append(names, name)
}
