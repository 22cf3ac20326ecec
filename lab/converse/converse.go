// Package converse is a codec of the Converse API of Amazon Bedrock, made with
// nothing but what package provider exports. It shows that a format can be added
// outside, and what that takes.
//
// See https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
package converse

import (
	"errors"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Format is the format of Converse and ConverseStream. Pass the events of a
// stream to Event, each as {"messageStart":{…}} and so on: their framing is
// binary.
var Format = provider.New("converse", transcript.Profile{}, codec{})

type codec struct{}

// object is the members of an object. Structs of encoding/json confuse members
// that differ in case.
type object map[string]state.JSON

// objectOf returns the members of a value, none if it is not an object.
func objectOf(value state.JSON) object {
	var members object
	if !strings.HasPrefix(string(value), "{") || value.Decode(&members) != nil {
		return nil
	}
	return members
}

// listOf returns the elements of an array of objects, and false for any other
// value.
func listOf(value state.JSON) ([]state.JSON, bool) {
	var elements []state.JSON
	if !strings.HasPrefix(string(value), "[") || value.Decode(&elements) != nil {
		return nil, false
	}
	for _, element := range elements {
		if !strings.HasPrefix(string(element), "{") {
			return nil, false
		}
	}
	return elements, true
}

// text returns a member that is a string.
func (o object) text(name string) string {
	if !o.isText(name) {
		return ""
	}
	return o[name].Text()
}

func (o object) isText(name string) bool { return strings.HasPrefix(string(o[name]), `"`) }

// encode returns the JSON of a value that is made of JSON and texts.
func encode(v any) state.JSON {
	text, err := state.JSONOf(v)
	if err != nil {
		return "null" // as for no value
	}
	return text
}

func (codec) DecodeRequest(body state.JSON) (provider.Body, error) {
	var b provider.Body
	settings := objectOf(body)
	if system, ok := listOf(settings["system"]); ok && len(system) > 0 {
		b.Entries = append(b.Entries, provider.Entry{Role: "system", Parts: partsOf("system", system), JSON: settings["system"]})
		delete(settings, "system")
	}
	messages, ok := listOf(settings["messages"])
	if !ok {
		return b, &provider.Error{Path: "$.messages", Problem: "want an array of objects"}
	}
	delete(settings, "messages")
	for _, message := range messages {
		b.Entries = append(b.Entries, entryOf(message))
	}
	config := objectOf(settings["toolConfig"])
	if tools, ok := listOf(config["tools"]); ok && len(tools) > 0 {
		b.Tools = tools
		delete(config, "tools")
		delete(settings, "toolConfig")
		if len(config) > 0 {
			settings["toolConfig"] = encode(config)
		}
	}
	b.Settings = encode(settings)
	return b, nil
}

// entryOf reads a message. One whose content is not an array of blocks has no
// parts, and is kept as it is.
func entryOf(message state.JSON) provider.Entry {
	members := objectOf(message)
	e := provider.Entry{Role: members.text("role"), JSON: message}
	if content, ok := listOf(members["content"]); ok && members.isText("role") {
		e.Parts = partsOf(e.Role, content)
	}
	return e
}

func (codec) EncodeEntry(e provider.Entry) []state.JSON {
	content := make([]state.JSON, len(e.Parts))
	for i, p := range e.Parts {
		if content[i] = p.JSON; p.JSON == "" {
			content[i] = encode(object{"text": state.JSONText(p.Text)})
		}
	}
	role := e.Role
	switch role {
	case "system", "developer":
		return []state.JSON{encode(content)}
	case provider.RoleTool:
		role = "user"
	}
	return []state.JSON{encode(object{"role": state.JSONText(role), "content": encode(content)})}
}

func (codec) EncodeRequest(b provider.Body) (state.JSON, error) {
	body := objectOf(b.Settings)
	if body == nil {
		body = object{}
	}
	var system []state.JSON
	messages := []state.JSON{}
	for i, e := range b.Entries {
		switch {
		case e.Role == "system" || e.Role == "developer":
			blocks, _ := listOf(e.JSON) // EncodeEntry has made it
			system = append(system, blocks...)
		case i > 0 && b.Entries[i-1].Role == provider.RoleTool && e.Role == "user":
			// Results of another API: roles have to alternate.
			messages[len(messages)-1] = joined(messages[len(messages)-1], e.JSON)
		default:
			messages = append(messages, e.JSON)
		}
	}
	body["messages"] = encode(messages)
	if system != nil {
		body["system"] = encode(system)
	}
	if b.Tools != nil {
		config := objectOf(body["toolConfig"])
		if config == nil {
			config = object{}
		}
		if _, ok := config["tools"]; ok {
			return "", errors.New("toolConfig.tools is in the settings and is also made of the tools")
		}
		config["tools"] = encode(b.Tools)
		body["toolConfig"] = encode(config)
	}
	return encode(body), nil
}

// joined returns a message with the content of another one.
func joined(message, next state.JSON) state.JSON {
	members := objectOf(message)
	content, _ := listOf(members["content"]) // EncodeEntry has made it
	more, ok := listOf(objectOf(next)["content"])
	if !ok {
		return message
	}
	members["content"] = encode(append(content, more...))
	return encode(members)
}

func (codec) DecodeTool(element state.JSON) (provider.Tool, bool) {
	spec := objectOf(objectOf(element)["toolSpec"])
	schema := objectOf(spec["inputSchema"])["json"]
	ok := spec.isText("name") && strings.HasPrefix(string(schema), "{")
	tool := provider.Tool{Name: spec.text("name"), Description: spec.text("description"), Schema: schema}
	if system := objectOf(objectOf(element)["systemTool"]); system != nil {
		tool.Name = system.text("name")
	}
	return tool, ok
}

func (codec) EncodeTool(t provider.Tool) state.JSON {
	if t.Schema == "" {
		t.Schema = `{"type":"object"}` // which is required
	}
	spec := object{"name": state.JSONText(t.Name), "inputSchema": encode(object{"json": t.Schema})}
	if t.Description != "" {
		spec["description"] = state.JSONText(t.Description)
	}
	return encode(object{"toolSpec": encode(spec)})
}
