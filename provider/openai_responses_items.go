package provider

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// The types of items with rules of their own. A tool that the client runs is
// called by an item of the type X_call, which has a call_id, and answered by one
// of the type X_call_output, the search for tools excepted.
const (
	itemFunction     = "function_call"
	itemCustom       = "custom_tool_call"
	itemSearch       = "tool_search_call"
	itemSearchOutput = "tool_search_output"
)

// itemReader makes messages of items. Calls that follow each other directly are
// one message.
type itemReader struct {
	d      *decoder
	calls  []call
	path   string          // of the first of calls
	hosted map[string]bool // the call_ids of calls that the provider runs itself
}

func decodeItems(d *decoder, path string, items [][]byte) error {
	r := itemReader{d: d, hosted: map[string]bool{}}
	for i, item := range items {
		if err := r.item(jsontext.Index(path, i), item); err != nil {
			return err
		}
	}
	return r.flush()
}

// flush adds the calls so far.
func (r *itemReader) flush() error {
	if len(r.calls) == 0 {
		return nil
	}
	calls := r.calls
	r.calls = nil
	return r.d.calls(r.path, "assistant", calls, nil)
}

func (r *itemReader) item(path string, data []byte) error {
	if err := want(path, data, "object"); err != nil {
		return err
	}
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	item := jsontext.Object(members)
	typ, role := stringOf(item.Get("type")), stringOf(item.Get("role"))
	id, hosted := stringOf(item.Get("call_id")), isHosted(typ, item)
	if hosted && id != "" {
		r.hosted[id] = true
	}
	if c, ok := itemCall(typ, item); ok && !hosted {
		if len(r.calls) == 0 {
			r.path = path
		}
		r.calls = append(r.calls, c)
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	switch {
	case typ == "message", typ == "" && role != "":
		if content, ok := itemContent(role, item.Get("content")); ok && role != "" {
			kept := difference(item, messageItem(role, content))
			return r.d.text(path, role, content, kept)
		}
		typ = "message"
	case typ == "":
		typ = "item_reference" // whose type may be missing
	case typ == itemSearchOutput, strings.HasSuffix(typ, "_call_output"):
		if jsontext.Kind(item.Get("call_id")) == "string" && !hosted && !r.hosted[id] {
			return r.result(path, typ, item)
		}
	}
	if role == "" {
		role = "assistant"
		if typ == "mcp_approval_response" {
			role = "user"
		}
	}
	return r.d.item(path, role, typ, data)
}

// isHosted reports whether the provider itself runs the tool. Then the call, and
// the output that the provider adds, are items as those of its other tools are:
// a client must not run it again.
func isHosted(typ string, item jsontext.Object) bool {
	return typ != itemFunction && typ != itemCustom && (stringOf(item.Get("execution")) == "server" ||
		strings.HasPrefix(stringOf(inside(item, "environment").Get("type")), "container"))
}

func (r *itemReader) result(path, typ string, item jsontext.Object) error {
	id, content := stringOf(item.Get("call_id")), item.Get(resultMember(typ))
	kept := difference(item, resultItem(typ, id, content))
	if typ != itemFunction+"_output" {
		kept = kept.WithString("type", typ)
	}
	return r.d.result(path, id, "", content, nil, kept)
}

// itemCall returns the call that an item is, false if it is none.
func itemCall(typ string, item jsontext.Object) (call, bool) {
	id, name := item.Get("call_id"), item.Get("name")
	c := call{id: stringOf(id), name: stringOf(name)}
	if typ == itemFunction || typ == itemCustom {
		for _, value := range [][]byte{id, name} {
			if want("", value, "string", "null", "nothing") != nil {
				return c, false
			}
		}
		if typ == itemFunction {
			c.input = arguments(item.Get("arguments"))
			c.kept = difference(item, callItem(typ, c.id, c.name, state.JSON(c.input)))
			return c, true
		}
		c.input = item.Get("input")
		c.kept = difference(item, callItem(typ, c.id, c.name, state.JSON(c.input))).WithString("type", typ)
		return c, jsontext.Kind(c.input) == "string"
	}
	if c.id == "" || !strings.HasSuffix(typ, "_call") {
		return c, false
	}
	c.name, c.input = typ, item.Without("type", "id", "call_id", "status").JSON()
	state := jsontext.Object{}.With("id", item.Get("id")).With("status", item.Get("status"))
	if len(state) > 0 {
		c.kept = c.kept.With(more, state.JSON())
	}
	c.kept = c.kept.WithString("type", typ)
	return c, true
}

// callItem returns the plain item of a call.
func callItem(typ, id, name string, input state.JSON) jsontext.Object {
	item := jsontext.Object{}.WithString("type", typ).WithString("call_id", id)
	switch typ {
	case itemFunction:
		return item.WithString("name", name).With("arguments", argumentsText(input))
	case itemCustom:
		return item.WithString("name", name).WithString("input", input.Text())
	}
	members, err := jsontext.Members([]byte(input))
	if err != nil { // the input was replaced by something else
		return item
	}
	return append(item, jsontext.Object(members).Without("type", "id", "call_id", "status")...)
}

// resultItem returns the plain item of a result.
func resultItem(typ, id string, content []byte) jsontext.Object {
	return jsontext.Object{}.WithString("type", typ).WithString("call_id", id).With(resultMember(typ), content)
}

func resultMember(typ string) string {
	if typ == itemSearchOutput {
		return "tools"
	}
	return "output"
}

// resultType returns the type of the item that answers a call.
func resultType(call string) string {
	switch call {
	case "":
		return itemFunction + "_output"
	case itemSearch:
		return itemSearchOutput
	}
	return call + "_output"
}

// itemContent returns the content of a message for that of an item: a text is of
// the type text there, whoever says it. It returns false for what no message
// may have.
func itemContent(role string, content []byte) ([]byte, bool) {
	switch jsontext.Kind(content) {
	case "string", "null":
		return content, true
	case "array":
	default:
		return nil, false
	}
	parts, err := jsontext.Elements(content)
	for i, part := range parts {
		members, bad := jsontext.Members(part)
		if bad != nil {
			return nil, false
		}
		object := jsontext.Object(members)
		typ, isText := stringOf(object.Get("type")), jsontext.Kind(object.Get("text")) == "string"
		if typ == "text" && !isText {
			return nil, false
		}
		if typ == itemTextType(role) && isText {
			parts[i] = object.WithString("type", "text").JSON()
		}
	}
	return jsontext.Array(parts), err == nil
}

// messageItem returns the plain item of a text, the reverse of itemContent.
func messageItem(role string, content []byte) jsontext.Object {
	if parts, err := jsontext.Elements(content); err == nil {
		for i, part := range parts {
			members, _ := jsontext.Members(part) // of a checked part
			if object := jsontext.Object(members); stringOf(object.Get("type")) == "text" {
				parts[i] = object.WithString("type", itemTextType(role)).JSON()
			}
		}
		content = jsontext.Array(parts)
	}
	return jsontext.Object{}.WithString("role", role).With("content", content)
}

// itemTextType returns the type of a text in what the role says.
func itemTextType(role string) string {
	if role == "assistant" {
		return "output_text"
	}
	return "input_text"
}
