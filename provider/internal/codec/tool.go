package codec

import (
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Tool is a tool that a request offers to the model.
type Tool struct {
	Name, Description string
	Schema            []byte          // of the input, nil if there is none
	Own               jsontext.Object // members that a program has set, in the words of the format
	Kept              jsontext.Object // for the format
}

// Item returns the element of a tool that only the format has, nil for others.
func (t Tool) Item() []byte { return t.Kept.Get(origin.Item) }

// ItemTool returns the tool of an element that is not a tool of the client.
func ItemTool(element jsontext.Object, raw []byte) Tool {
	return Tool{Name: element.String("name"), Kept: jsontext.Object{}.With(origin.Item, raw)}
}

// A ToolWord is how an API says a tool of the client.
type ToolWord struct {
	In     string   // the member with the tool, "" for the element itself
	Types  []string // of the element: the first is written, the others are read; "" is none
	Schema string   // the member with the schema of the input
	Needed bool     // the API demands a schema
}

// Read returns the tool of an element, false if it is not one of the client. The
// tool keeps the difference of the element.
func (w ToolWord) Read(element jsontext.Object) (Tool, bool) {
	function, typ := element, element.Get("type")
	if w.In != "" {
		function = element.Object(w.In)
	}
	t := Tool{Name: function.String("name"), Description: function.String("description")}
	isTyped := func(name string) bool { return name == "" && jsontext.IsNull(typ) || jsontext.IsText(typ, name) }
	if t.Name == "" || !isOptional(function.Get("description"), "string") ||
		!isOptional(function.Get(w.Schema), "object") ||
		w.Types != nil && !slices.ContainsFunc(w.Types, isTyped) {
		return Tool{}, false
	}
	if jsontext.Kind(function.Get(w.Schema)) == "object" {
		t.Schema = function.Get(w.Schema)
	}
	t.Kept = Difference(element, w.plain(t))
	return t, true
}

// Write returns the element for a tool: the plain one with what a program has
// set, and with the difference that was kept.
func (w ToolWord) Write(t Tool) jsontext.Object {
	own := make([]string, len(t.Own))
	for i, m := range t.Own {
		own[i] = m.Name
	}
	return Restore(w.plain(t), t.Kept, own...)
}

func (w ToolWord) plain(t Tool) (element jsontext.Object) {
	if t.Schema == nil && w.Needed {
		t.Schema = []byte(`{"type":"object"}`)
	}
	function := jsontext.Object{}.WithString("name", t.Name)
	if t.Description != "" {
		function = function.WithString("description", t.Description)
	}
	function = append(function.With(w.Schema, t.Schema), t.Own...)
	if len(w.Types) > 0 && w.Types[0] != "" {
		element = TypedObject(w.Types[0])
	}
	if w.In != "" {
		return element.With(w.In, function.JSON())
	}
	return append(element, function...)
}

// Decode returns the tool of an element that has one.
func (w ToolWord) Decode(element jsontext.Object) ([]Tool, bool) {
	t, ok := w.Read(element)
	return []Tool{t}, ok
}

// Encode returns the elements of tools that have one each.
func (w ToolWord) Encode(tools []Tool) [][]byte { return EncodeEachTool(tools, w.Write) }

// EncodeEachTool returns the elements of tools that have one each.
func EncodeEachTool(tools []Tool, encode func(Tool) jsontext.Object) [][]byte {
	elements := make([][]byte, len(tools))
	for i, t := range tools {
		if elements[i] = t.Item(); elements[i] == nil {
			elements[i] = encode(t).JSON()
		}
	}
	return elements
}

// SplitTools returns a request for the members of a body. The tools are those of
// the member tools. If one of its elements is not an object, all stay in the
// settings. decode returns the tools of an element, and false for a tool that
// only its provider has.
func SplitTools(members jsontext.Object, decode func(element jsontext.Object) ([]Tool, bool)) Request {
	elements, err := members.Elements("tools")
	if err != nil || len(elements) == 0 {
		return Request{Settings: members}
	}
	var tools []Tool
	for _, raw := range elements {
		element, err := jsontext.Members(raw)
		if err != nil {
			return Request{Settings: members}
		}
		decoded, ok := decode(element)
		if !ok {
			decoded = []Tool{ItemTool(element, raw)}
		}
		tools = append(tools, decoded...)
	}
	return Request{Tools: tools, Settings: members.Without("tools")}
}

// Body returns the body of a request: the settings with the elements of the
// tools and the members with the messages. Members that are empty in the
// settings are as in a request that had no messages yet.
func (r Request) Body(encode func([]Tool) [][]byte, messages jsontext.Object) (jsontext.Object, error) {
	body := r.Settings
	if r.Tools != nil {
		switch string(body.Get("tools")) {
		case "", "null", "[]":
			body = body.With("tools", jsontext.Array(encode(r.Tools)))
		default:
			return nil, &fault.Error{Path: "$.tools", Got: "is in the settings and is also made of the tools"}
		}
	}
	for _, m := range messages {
		switch string(body.Get(m.Name)) {
		case "", "null", "[]", `""`:
			body = body.With(m.Name, m.Value)
		default:
			return nil, &fault.Error{
				Path: jsontext.Path("$", m.Name), Got: "is in the settings and is also made of the messages",
			}
		}
	}
	return body, nil
}

// OmittedOfTool returns the names of the members of a tool that a format does not
// send: those of no format that are not its own, and those that other formats
// keep.
func OmittedOfTool(extra jsontext.Object, mark string, own []string) []string {
	var names []string
	add := func(members jsontext.Object) {
		for _, m := range members {
			switch string(m.Value) {
			case "null", "false", `""`: // as without it, but an empty object turns a tool on
			default:
				if m.Name != "type" {
					names = append(names, m.Name)
				}
			}
		}
	}
	for _, m := range extra {
		switch {
		case m.Name == mark, slices.Contains(own, m.Name):
		case origin.IsFormat(m.Name):
			kept := extra.Object(m.Name)
			add(keptMembers(kept))
			add(kept.Object("tool"))
		default:
			add(jsontext.Object{m})
		}
	}
	return names
}

// WithoutUnions returns a schema without oneOf, anyOf and allOf at its top, which
// Anthropic and OpenAI refuse in every request with the tool: "input_schema does not
// support oneOf, allOf, or anyOf at the top level" (claude-code#27337,
// MemPalace#1728). Their properties are optional ones of the schema then, and those
// that allOf requires are required. left are the names of what is gone.
func WithoutUnions(schema []byte) (plain []byte, left []string) {
	members, _ := jsontext.Members(schema) // checked with the tool
	properties := members.Object("properties")
	required, _ := members.Elements("required")
	for _, name := range []string{"oneOf", "anyOf", "allOf"} {
		alternatives, err := members.Elements(name)
		if err != nil || alternatives == nil {
			continue
		}
		left = append(left, name)
		for _, raw := range alternatives {
			alternative, _ := jsontext.Members(raw) // none if it is true or false
			for _, p := range alternative.Object("properties") {
				if properties.Get(p.Name) == nil {
					properties = properties.With(p.Name, p.Value)
				}
			}
			if more, _ := alternative.Elements("required"); name == "allOf" {
				required = append(required, more...)
			}
		}
	}
	if left == nil {
		return schema, nil
	}
	members = members.Without(left...).WithString("type", "object").With("properties", properties.JSON())
	if len(required) > 0 {
		members = members.With("required", jsontext.Array(required))
	}
	return members.JSON(), left
}

// isOptional reports whether a value is of a kind, null or missing.
func isOptional(value []byte, kind string) bool {
	return jsontext.IsNull(value) || jsontext.Kind(value) == kind
}
