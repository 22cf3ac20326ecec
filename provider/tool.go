package provider

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/transcript"
)

// Tool is a tool that a request offers to the model.
type Tool struct {
	Name        string
	Description string
	Schema      state.JSON // of the input: a JSON Schema, or empty

	// Extra is an object of further members, or empty. Those that a format has
	// for a tool, such as cache_control for Anthropic and strict for OpenAI, are
	// sent in it. Besides, formats keep what they have read here, as in messages,
	// each in the member named after it. A tool that only one provider has, such
	// as its search, is there as a whole. What another format does not have is
	// left out and reported.
	Extra state.JSON
}

// Tools returns the tools of a request for tools of another type, such as
// *tool.Tool.
func Tools[T interface {
	Name() string
	Description() string
	Schema() state.JSON
}](tools []T) []Tool {
	offered := make([]Tool, len(tools))
	for i, t := range tools {
		offered[i] = Tool{Name: t.Name(), Description: t.Description(), Schema: t.Schema()}
	}
	return offered
}

// toolsOf returns what the format has read as tools.
func (f *Format) toolsOf(decoded []codec.Tool) []Tool {
	var tools []Tool
	for _, t := range decoded {
		tool := Tool{Name: t.Name, Description: t.Description, Schema: state.JSON(t.Schema)}
		if len(t.Kept) > 0 {
			tool.Extra = state.JSON(jsontext.Object{}.With(f.mark, t.Kept.JSON()).JSON())
		}
		tools = append(tools, tool)
	}
	return tools
}

// offer returns the tools for the format to write, nil for none.
func (f *Format) offer(tools []Tool, omit func(what string)) ([]codec.Tool, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	own := f.codec.OwnMembers(codec.TypeOffered)
	offered := make([]codec.Tool, 0, len(tools))
	for i, t := range tools {
		extra, err := f.readMembers(t.Extra)
		if err != nil {
			return nil, inTool(i, err)
		}
		one := codec.Tool{
			Name: t.Name, Description: t.Description, Schema: codec.ValueOrNil(t.Schema), Kept: extra.Object(f.mark),
		}
		switch {
		case one.Item() != nil:
		case isForeignItem(extra):
			omit("tool " + describeTool(i, t))
			continue
		case t.Name == "":
			return nil, inTool(i, f.newError("$.name", "want a name, got none"))
		}
		if _, err := f.readMembers(t.Schema); err != nil {
			return nil, inTool(i, err)
		}
		if f != Gemini && extra.Get(f.mark) == nil && len(one.Schema) > 0 && !origin.IsForeign(f.mark) {
			schema, left := codec.WithoutUnions(one.Schema)
			for _, name := range left {
				omit("member " + name + " of the schema of tool " + describeTool(i, t))
			}
			one.Schema = schema
		}
		for _, m := range extra {
			if slices.Contains(own, m.Name) {
				one.Own = append(one.Own, m)
			}
		}
		for _, member := range codec.OmittedOfTool(extra, f.mark, own) {
			omit("member " + member + " of tool " + describeTool(i, t))
		}
		offered = append(offered, one)
	}
	return offered, nil
}

// readMembers is readObject for a text that may be empty.
func (f *Format) readMembers(text state.JSON) (jsontext.Object, error) {
	if text == "" {
		return nil, nil
	}
	return f.readObject([]byte(text))
}

// isForeignItem reports whether a tool is one that only another format has.
func isForeignItem(extra jsontext.Object) bool {
	for _, m := range extra {
		if extra.Object(m.Name).Get(origin.Item) != nil {
			return true
		}
	}
	return false
}

// describeTool names a tool.
func describeTool(i int, t Tool) string {
	if t.Name == "" {
		return fmt.Sprint(i)
	}
	return fmt.Sprintf("%.64q", t.Name)
}

// ToolNames are the names of tools, by the names that a request offers instead
// of them. A nil ToolNames has none.
type ToolNames map[string]string

// RenameTools returns the request with names of tools that the profile accepts,
// in Tools and in the choice of tools in Settings, and the names that it has
// replaced. They are those of [transcript.Profile.ToolName], which Repair gives
// the calls. The tools that only one provider has keep theirs. The request is not
// changed.
//
//	request, names := request.RenameTools(profile)
//	…
//	result.Output = names.Restore(result.Output)
func (r Request) RenameTools(p transcript.Profile) (Request, ToolNames) {
	var names ToolNames
	accepted := map[string]string{}
	for i, t := range r.Tools {
		name := p.ToolName(t.Name)
		if name == t.Name {
			continue
		}
		if extra, _ := jsontext.Members([]byte(t.Extra)); isForeignItem(extra) { // an encoder checks Extra
			continue
		}
		if names == nil {
			names, r.Tools = ToolNames{}, slices.Clone(r.Tools)
		}
		names[name], accepted[t.Name] = t.Name, name
		r.Tools[i].Name = name
	}
	if names == nil {
		return r, nil
	}
	settings, err := jsontext.Members([]byte(r.Settings))
	if err != nil { // none, or an error of the encoder
		return r, names
	}
	for i, m := range settings {
		switch m.Name {
		case "tool_choice", "toolConfig", "tool_config":
			settings[i].Value = renameIn(m.Name, m.Value, accepted)
		}
	}
	r.Settings = state.JSON(settings.JSON())
	return r, names
}

// renameIn returns the choice of tools with other names.
func renameIn(member string, value []byte, names map[string]string) []byte {
	switch jsontext.Kind(value) {
	case "object":
		object, _ := jsontext.Members(value) // the settings are checked by the encoder
		for i, m := range object {
			object[i].Value = renameIn(m.Name, m.Value, names)
		}
		return object.JSON()
	case "array":
		elements, _ := jsontext.Elements(value) // as above
		for i, element := range elements {
			elements[i] = renameIn(member, element, names)
		}
		return jsontext.Array(elements)
	case "string":
		switch member {
		case "name", "allowedFunctionNames", "allowed_function_names":
			if name, ok := names[state.JSON(value).Text()]; ok {
				return jsontext.AppendQuote(nil, name)
			}
		}
	}
	return value
}

// Restore returns messages in which calls and results have the names that were
// replaced. It returns msgs itself if there are none.
func (n ToolNames) Restore(msgs []state.Message) []state.Message {
	var restored []state.Message
	for i, m := range msgs {
		if r := n.restore(m); r != nil {
			if restored == nil {
				restored = slices.Clone(msgs)
			}
			restored[i] = r
		}
	}
	if restored == nil {
		return msgs
	}
	return restored
}

// restore returns the message with the names that were replaced, nil if it has
// none of them.
func (n ToolNames) restore(m state.Message) state.Message {
	if len(n) == 0 || m == nil {
		return nil
	}
	member := "tools"
	switch m.(type) {
	case state.ToolCallMessage:
	case state.ToolResultMessage:
		member = "tool"
	default:
		return nil
	}
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	old := members.Get(member)
	renamed := n.restoreCalls(old)
	if string(renamed) == string(old) {
		return nil
	}
	restored, err := origin.WithMember(m, member, renamed)
	if err != nil {
		return nil
	}
	return restored
}

// restoreCalls returns a call, or a list of calls, with the names that were
// replaced.
func (n ToolNames) restoreCalls(value []byte) []byte {
	if jsontext.Kind(value) == "array" {
		calls, _ := jsontext.Elements(value) // checked when the message was made
		changed := false
		for i, call := range calls {
			renamed := n.restoreCalls(call)
			changed = changed || string(renamed) != string(call)
			calls[i] = renamed
		}
		if changed {
			return jsontext.Array(calls)
		}
		return value
	}
	call, _ := jsontext.Members(value) // as above
	name, ok := n[call.String("name")]
	if !ok {
		return value
	}
	return call.WithString("name", name).JSON()
}
