package responses

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// The types of items with special rules. An item of type X_call with a call_id
// calls a tool that the client runs, and an item of type X_call_output answers
// it. The output of the search for tools has another type.
const (
	functionCall = "function_call"
	customCall   = "custom_tool_call"
	searchCall   = "tool_search_call"
	searchOutput = "tool_search_output"
	localOutput  = "local_shell_call_output"
	agentsCall   = "multi_agent_call"
	agentsOutput = "multi_agent_call_output"
)

// itemReader makes messages of items. Calls that follow each other are one
// message.
type itemReader struct {
	d      *codec.Decoder
	calls  []codec.Call
	first  int             // the place of the first of calls
	hosted map[string]bool // the call_ids of calls that the provider itself runs
}

// decodeItems adds the messages of an array of items.
func decodeItems(d *codec.Decoder, items []byte) error {
	r := itemReader{d: d}
	err := jsontext.EachObject(items, func(i int, raw []byte, item jsontext.Object) error {
		typ := typeOf(item)
		hosted := isHosted(typ, item)
		if hosted && item.String("call_id") != "" {
			if r.hosted == nil {
				r.hosted = map[string]bool{}
			}
			r.hosted[item.String("call_id")] = true
		}
		if c, ok := callOf(typ, item); ok && !hosted {
			if len(r.calls) == 0 {
				r.first = i
			}
			r.calls = append(r.calls, c)
			return nil
		}
		if err := r.endCalls(); err != nil {
			return err
		}
		if err := r.add(raw, typ, item, hosted); err != nil {
			return fault.Under(jsontext.Index("$", i), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.endCalls()
}

// typeOf returns the type of an item. Those of most items take no memory.
func typeOf(item jsontext.Object) string {
	value := item.Get("type")
	for _, typ := range [...]string{"message", functionCall, "function_call_output", "reasoning"} {
		if jsontext.IsText(value, typ) {
			return typ
		}
	}
	return item.String("type")
}

// endCalls adds the calls so far.
func (r *itemReader) endCalls() error {
	if len(r.calls) == 0 {
		return nil
	}
	err := r.d.AddCalls("assistant", r.calls, nil)
	r.calls = r.calls[:0]
	return fault.Under(jsontext.Index("$", r.first), err)
}

// isHosted reports whether the provider itself runs the tool. Its calls, and
// the outputs that the provider adds, are kept whole, as items of the
// provider's other tools are: a client must not run them again. Agents are among
// them ("server-hosted multi-agent execution", github.com/openai/openai-go/v3
// v3.99.0 of 2026-11-12, BetaResponseNewParamsMultiAgent).
func isHosted(typ string, item jsontext.Object) bool {
	switch typ {
	case functionCall, customCall:
		return false
	case agentsCall, agentsOutput:
		return true
	}
	return item.String("execution") == "server" ||
		strings.HasPrefix(item.Object("environment").String("type"), "container")
}

// add adds the message of an item that is not a call.
func (r *itemReader) add(raw []byte, typ string, item jsontext.Object, hosted bool) error {
	role := item.String("role")
	switch {
	case typ == "message", typ == "" && role != "":
		sent := item.Get("content")
		if content, plain, ok := messageContent(role, sent); ok && role != "" {
			if !plain {
				sent = itemContent(role, content)
			}
			return r.d.AddText(role, content, codec.Difference(item, plainMessage(item.Get("role"), sent)))
		}
		typ = "message"
	case typ == "":
		typ = "item_reference" // whose type may be missing
	case typ == searchOutput, strings.HasSuffix(typ, "_call_output"):
		if id := answered(typ, item); jsontext.Kind(id) == "string" && !hosted && !r.hosted[jsontext.Unquote(id)] {
			return r.addResult(typ, item, id)
		}
	}
	if role == "" {
		role = "assistant"
		if typ == "mcp_approval_response" {
			role = "user"
		}
	}
	return r.d.AddItem(role, typ, raw)
}

func (r *itemReader) addResult(typ string, item jsontext.Object, id []byte) error {
	content := item.Get(outputMember(typ))
	kept := codec.Difference(item, plainOutput(typ, id, content))
	if typ != outputType(functionCall) {
		kept = kept.WithString("type", typ)
	}
	return r.d.AddResult(codec.Result{ID: jsontext.Unquote(id), Content: content, Kept: kept})
}

// answered returns the id of the call that an item answers, nil if there is none.
// The output of a local shell may have it as its id (github.com/openai/openai-go/v3
// v3.99.0 of 2026-11-12, ResponseInputItemLocalShellCallOutput, has no call_id).
func answered(typ string, item jsontext.Object) []byte {
	id := item.Get("call_id")
	if id == nil && typ == localOutput {
		return item.Get("id")
	}
	return id
}

// callOf returns the call that an item is, false if it is not a call.
func callOf(typ string, item jsontext.Object) (codec.Call, bool) {
	if !strings.HasSuffix(typ, "_call") {
		return codec.Call{}, false
	}
	c := codec.Call{ID: item.String("call_id"), Name: item.String("name")}
	if typ == functionCall || typ == customCall {
		for _, name := range []string{"call_id", "name"} {
			if value := item.Get(name); !jsontext.IsNull(value) && jsontext.Kind(value) != "string" {
				return c, false
			}
		}
		c.Input = item.Get(argumentsMember(typ))
		plain, ok := c.Input, true
		if typ == functionCall {
			c.Input, plain = codec.ArgumentsInput(c.Input)
		} else {
			ok = jsontext.Kind(c.Input) == "string"
		}
		id, name := codec.SentText(item, "call_id"), codec.SentText(item, "name")
		c.Kept = codec.Difference(item, plainCall(typ, id, name, plain))
		if typ == customCall {
			c.Kept = c.Kept.WithString("type", typ)
		}
		return c, ok
	}
	if c.ID == "" {
		return c, false
	}
	c.Name, c.Input = typ, item.Without("type", "id", "call_id", "status").JSON()
	identity := jsontext.Object{}.With("id", item.Get("id")).With("status", item.Get("status"))
	c.Kept = codec.Difference(identity, nil).WithString("type", typ)
	return c, true
}

// argumentsMember returns the name of the member with the arguments of a call
// of a function or a custom tool.
func argumentsMember(typ string) string {
	if typ == customCall {
		return "input"
	}
	return "arguments"
}

// callArguments returns the arguments of a call for its input.
func callArguments(typ string, input state.JSON) []byte {
	switch typ {
	case functionCall:
		return codec.InputArguments(input)
	case customCall:
		return jsontext.AppendQuote(nil, input.Text())
	}
	return []byte(input)
}

// plainCall returns the plain item of a call. The arguments of other tools than
// functions and custom ones are members of the item.
func plainCall(typ string, id, name, arguments []byte) jsontext.Object {
	item := jsontext.Object{
		{Name: "type", Value: jsontext.AppendQuote(nil, typ)}, {Name: "call_id", Value: id},
		{Name: "name", Value: name}, {Name: argumentsMember(typ), Value: arguments},
	}
	if typ == functionCall || typ == customCall {
		return item
	}
	members, _ := jsontext.Members(arguments) // none if the input was replaced
	return append(item[:2], members.Without("type", "id", "call_id", "status")...)
}

// plainOutput returns the plain item of a result.
func plainOutput(typ string, id, content []byte) jsontext.Object {
	return jsontext.Object{
		{Name: "type", Value: jsontext.AppendQuote(nil, typ)}, {Name: "call_id", Value: id},
		{Name: outputMember(typ), Value: content},
	}
}

func outputMember(typ string) string {
	if typ == searchOutput {
		return "tools"
	}
	return "output"
}

// outputType returns the type of the item that answers a call, by default that
// of a function.
func outputType(call string) string {
	switch call {
	case "":
		call = functionCall
	case searchCall:
		return searchOutput
	}
	return call + "_output"
}

// messageContent returns the content of a message for that of an item: a text
// has the type text there, in every role. The content is plain if itemContent
// reverses this. It returns false for content that a message cannot have.
func messageContent(role string, content []byte) (message []byte, plain, ok bool) {
	switch jsontext.Kind(content) {
	case "string", "null":
		return content, true, true
	case "array":
	default:
		return nil, false, false
	}
	textType, plain, ok := textType(role), true, true
	message = append(make([]byte, 0, len(content)), '[')
	err := jsontext.EachElement(content, func(element jsontext.Span) error {
		part := element.In(content)
		var typ, text jsontext.Span
		if err := jsontext.EachMember(part, func(name []byte, value jsontext.Span) error {
			switch string(name) {
			case "type":
				typ = value
			case "text":
				text = value
			}
			return nil
		}); err != nil {
			return err
		}
		isText := jsontext.Kind(text.In(part)) == "string"
		if jsontext.IsText(typ.In(part), "text") {
			plain, ok = false, ok && isText
		}
		if len(message) > 1 {
			message = append(message, ',')
		}
		if isText && jsontext.IsText(typ.In(part), textType) {
			message = append(append(message, part[:typ.From]...), `"text"`...)
			part = part[typ.To:]
		}
		message = append(message, part...)
		return nil
	})
	return append(message, ']'), plain, ok && err == nil
}

// itemContent reverses messageContent.
func itemContent(role string, content []byte) []byte {
	parts, err := jsontext.Elements(content)
	if err != nil { // it is a text
		return content
	}
	for i, raw := range parts {
		part, _ := jsontext.Members(raw) // checked with the message
		if part.String("type") == "text" {
			parts[i] = part.WithString("type", textType(role)).JSON()
		}
	}
	return jsontext.Array(parts)
}

// plainMessage returns the plain item of a text message.
func plainMessage(role, content []byte) jsontext.Object {
	return jsontext.Object{{Name: "role", Value: role}, {Name: "content", Value: content}}
}

// textType returns the type of a text in what a role says.
func textType(role string) string {
	if role == "assistant" {
		return "output_text"
	}
	return "input_text"
}
