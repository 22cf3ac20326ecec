package provider

import (
	"strconv"

	"github.com/agentstate/state/internal/jsontext"
)

// openAI is the codec of Chat Completions. An entry of a tool is a result. Any
// other entry says something, calls tools, or does both, and so becomes a text
// message, one with calls, or one of each.
type openAI struct{}

func (c openAI) request(d *decoder, body jsontext.Object) (jsontext.Object, error) {
	entries, err := elementsAt("$.messages", body.Get("messages"))
	if err != nil {
		return nil, err
	}
	for i, text := range entries {
		path := jsontext.Index("$.messages", i)
		entry, err := membersAt(path, text)
		if err != nil {
			return nil, err
		}
		if err := c.entry(d, path, text, entry); err != nil {
			return nil, err
		}
	}
	return body.Without("messages"), nil
}

func (c openAI) response(d *decoder, body jsontext.Object) (id string, stop []byte, created int64, err error) {
	id = stringOf(body.Get("id"))
	seconds, _ := strconv.ParseFloat(string(body.Get("created")), 64) // 0 for what is no number
	if string(body.Get("choices")) == "null" {
		return id, nil, int64(seconds), nil
	}
	choices, err := elementsAt("$.choices", body.Get("choices"))
	if err != nil || len(choices) == 0 {
		return id, nil, int64(seconds), err
	}
	choice, err := membersAt("$.choices[0]", choices[0])
	if err != nil {
		return "", nil, 0, err
	}
	stop = choice.Get("finish_reason")
	text := choice.Get("message")
	if kind := jsontext.Kind(text); kind == "nothing" || kind == "null" { // as when a filter took it
		return id, stop, int64(seconds), nil
	}
	const path = "$.choices[0].message"
	message, err := membersAt(path, text)
	if err != nil {
		return "", nil, 0, err
	}
	if jsontext.Kind(message.Get("role")) != "string" { // some leave it out, but none accept it so
		message = message.WithString("role", "assistant")
		text = message.JSON()
	}
	return id, stop, int64(seconds), c.entry(d, path, text, message)
}

// entry adds the messages of an entry.
func (c openAI) entry(d *decoder, path string, text []byte, entry jsontext.Object) error {
	role, content := stringOf(entry.Get("role")), entry.Get("content")
	if role == "tool" || role == "function" && stringOf(entry.Get("name")) != "" {
		return c.result(d, path, role, entry)
	}
	calls, rest, ok := chatCalls(entry)
	if !ok || jsontext.Kind(entry.Get("role")) != "string" || role == "function" || !isContent(content) {
		return d.item(path, role, "message", text)
	}
	plain := jsontext.Object{}.WithString("role", role)
	if len(calls) == 0 || !isEmpty(content) {
		kept := difference(rest, plain.With("content", content))
		if err := d.text(path, role, content, kept); err != nil || len(calls) == 0 {
			return err
		}
		return d.calls(path, role, calls, nil)
	}
	kept := difference(rest, plain.With("content", []byte("null")))
	if n := len(d.msgs); n > 0 && d.msgs[n-1].Role() == role && (d.msgs[n-1].Type() == "text" || d.msgs[n-1].Type() == "tool_call") {
		kept = kept.With("joined", []byte("false")) // it would be taken for one entry with that
	}
	return d.calls(path, role, calls, kept)
}

// result adds the result of a tool, or of what was called function before there
// were tools.
func (openAI) result(d *decoder, path, role string, entry jsontext.Object) error {
	id, name, content := stringOf(entry.Get("tool_call_id")), stringOf(entry.Get("name")), entry.Get("content")
	kind := ""
	if role == "function" {
		kind, id = legacyCall, "" // it answers by name
	}
	kept := difference(entry, chatResult(kind, id, name, content))
	if kind != "" {
		kept = kept.WithString("kind", kind)
	}
	return d.result(path, id, name, content, nil, kept)
}

// isContent reports whether a text message can have the content.
func isContent(content []byte) bool {
	switch jsontext.Kind(content) {
	case "nothing", "null", "string":
		return true
	case "array":
	default:
		return false
	}
	parts, err := jsontext.Elements(content)
	for _, part := range parts {
		members, wrong := jsontext.Members(part)
		if wrong != nil {
			return false
		}
		o := jsontext.Object(members)
		if stringOf(o.Get("type")) == "text" && jsontext.Kind(o.Get("text")) != "string" {
			return false
		}
	}
	return err == nil
}

// isEmpty reports whether content says nothing.
func isEmpty(content []byte) bool {
	switch jsontext.Kind(content) {
	case "nothing", "null":
		return true
	case "string":
		return len(content) == len(`""`)
	case "array":
		parts, err := jsontext.Elements(content)
		return err == nil && len(parts) == 0
	}
	return false
}

// elementsAt returns the elements of an array.
func elementsAt(path string, value []byte) ([][]byte, error) {
	if err := want(path, value, "array"); err != nil {
		return nil, err
	}
	return jsontext.Elements(value)
}

// membersAt returns the members of an object.
func membersAt(path string, value []byte) (jsontext.Object, error) {
	if err := want(path, value, "object"); err != nil {
		return nil, err
	}
	return jsontext.Members(value)
}
