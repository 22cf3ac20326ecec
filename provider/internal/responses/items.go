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
)

// itemReader makes messages of items. Calls that follow each other are one
// message.
type itemReader struct {
	d      *codec.Decoder
	calls  []codec.Call
	first  int             // the place of the first of calls
	hosted map[string]bool // the call_ids of calls that the provider itself runs
}

func decodeItems(d *codec.Decoder, items [][]byte) error {
	r := itemReader{d: d}
	for i, raw := range items {
		item, err := jsontext.Members(raw)
		if err != nil {
			return fault.Under(jsontext.Index("$", i), err)
		}
		hosted := r.isHosted(item)
		if c, ok := callOf(item); ok && !hosted {
			if len(r.calls) == 0 {
				r.first = i
			}
			r.calls = append(r.calls, c)
			continue
		}
		if err := r.endCalls(); err != nil {
			return err
		}
		if err := r.add(raw, item, hosted); err != nil {
			return fault.Under(jsontext.Index("$", i), err)
		}
	}
	return r.endCalls()
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
// provider's other tools are: a client must not run them again.
func (r *itemReader) isHosted(item jsontext.Object) bool {
	typ := item.String("type")
	if typ == functionCall || typ == customCall || item.String("execution") != "server" &&
		!strings.HasPrefix(item.Object("environment").String("type"), "container") {
		return false
	}
	if id := item.String("call_id"); id != "" {
		if r.hosted == nil {
			r.hosted = map[string]bool{}
		}
		r.hosted[id] = true
	}
	return true
}

// add adds the message of an item that is not a call.
func (r *itemReader) add(raw []byte, item jsontext.Object, hosted bool) error {
	typ, role := item.String("type"), item.String("role")
	switch {
	case typ == "message", typ == "" && role != "":
		if content, ok := messageContent(role, item.Get("content")); ok && role != "" {
			return r.d.AddText(role, content, codec.Difference(item, plainMessage(role, content)))
		}
		typ = "message"
	case typ == "":
		typ = "item_reference" // whose type may be missing
	case typ == searchOutput, strings.HasSuffix(typ, "_call_output"):
		if jsontext.Kind(item.Get("call_id")) == "string" && !hosted && !r.hosted[item.String("call_id")] {
			return r.addResult(typ, item)
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

func (r *itemReader) addResult(typ string, item jsontext.Object) error {
	id, content := item.String("call_id"), item.Get(outputMember(typ))
	kept := codec.Difference(item, plainOutput(typ, id, content))
	if typ != outputType(functionCall) {
		kept = kept.WithString("type", typ)
	}
	return r.d.AddResult(codec.Result{ID: id, Content: content, Kept: kept})
}

// callOf returns the call that an item is, false if it is not a call.
func callOf(item jsontext.Object) (codec.Call, bool) {
	typ := item.String("type")
	c := codec.Call{ID: item.String("call_id"), Name: item.String("name")}
	switch {
	case typ == functionCall || typ == customCall:
		for _, name := range []string{"call_id", "name"} {
			if value := item.Get(name); !jsontext.IsNull(value) && jsontext.Kind(value) != "string" {
				return c, false
			}
		}
		if typ == functionCall {
			c.Input = codec.ArgumentsInput(item.Get("arguments"))
			c.Kept = codec.Difference(item, plainCall(typ, c.ID, c.Name, state.JSON(c.Input)))
			return c, true
		}
		c.Input = item.Get("input")
		c.Kept = codec.Difference(item, plainCall(typ, c.ID, c.Name, state.JSON(c.Input)))
		c.Kept = c.Kept.WithString("type", typ)
		return c, jsontext.Kind(c.Input) == "string"
	case c.ID == "" || !strings.HasSuffix(typ, "_call"):
		return c, false
	}
	c.Name, c.Input = typ, item.Without("type", "id", "call_id", "status").JSON()
	identity := jsontext.Object{}.With("id", item.Get("id")).With("status", item.Get("status"))
	c.Kept = codec.Difference(identity, nil).WithString("type", typ)
	return c, true
}

// plainCall returns the plain item of a call.
func plainCall(typ, id, name string, input state.JSON) jsontext.Object {
	item := codec.TypedObject(typ).WithString("call_id", id)
	switch typ {
	case functionCall:
		return item.WithString("name", name).With("arguments", codec.InputArguments(input))
	case customCall:
		return item.WithString("name", name).WithString("input", input.Text())
	}
	members, _ := jsontext.Members([]byte(input)) // none if the input was replaced
	return append(item, members.Without("type", "id", "call_id", "status")...)
}

// plainOutput returns the plain item of a result.
func plainOutput(typ, id string, content []byte) jsontext.Object {
	return codec.TypedObject(typ).WithString("call_id", id).With(outputMember(typ), content)
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
// has the type text there, in every role. It returns false for content that a
// message cannot have.
func messageContent(role string, content []byte) ([]byte, bool) {
	switch jsontext.Kind(content) {
	case "string", "null":
		return content, true
	case "array":
	default:
		return nil, false
	}
	parts, _ := jsontext.Elements(content)
	for i, raw := range parts {
		part, err := jsontext.Members(raw)
		if err != nil {
			return nil, false
		}
		typ, isText := part.String("type"), jsontext.Kind(part.Get("text")) == "string"
		if typ == "text" && !isText {
			return nil, false
		}
		if typ == textType(role) && isText {
			parts[i] = part.WithString("type", "text").JSON()
		}
	}
	return jsontext.Array(parts), true
}

// plainMessage returns the plain item of a text message. It reverses
// messageContent.
func plainMessage(role string, content []byte) jsontext.Object {
	if parts, err := jsontext.Elements(content); err == nil {
		for i, raw := range parts {
			part, _ := jsontext.Members(raw) // checked with the message
			if part.String("type") == "text" {
				parts[i] = part.WithString("type", textType(role)).JSON()
			}
		}
		content = jsontext.Array(parts)
	}
	return jsontext.Object{}.WithString("role", role).With("content", content)
}

// textType returns the type of a text in what a role says.
func textType(role string) string {
	if role == "assistant" {
		return "output_text"
	}
	return "input_text"
}
