package tool

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// rawSchema is a JSON Schema as it was given to [Raw], and what calls are
// checked for.
type rawSchema struct {
	members jsontext.Object
	params  []param
	open    bool
}

// parseSchema reads from a JSON Schema what calls are checked for.
func parseSchema(schema state.JSON) (*rawSchema, error) {
	data := []byte(schema)
	if err := jsontext.Check(data, argumentLimits); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	reader := jsontext.ReadObject("$", data)
	s := &rawSchema{members: reader.Rest(), open: string(reader.Value("additionalProperties")) != "false"}
	if typ := reader.Value("type"); typ != nil && !slices.Contains(schemaTypes(typ), "object") {
		reader.Fault("type", "object", "another type")
	}
	if text := reader.Value("properties"); text != nil {
		properties := jsontext.ReadObject(reader.Path("properties"), text)
		if err := properties.Err(); err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		for _, m := range properties.Rest() {
			s.params = append(s.params, schemaParam(m))
		}
	}
	if reader.Has("required") {
		reader.Require("required") // null is not a list
	}
	for _, name := range reader.Strings("required") {
		i := slices.IndexFunc(s.params, func(p param) bool { return p.name == name })
		if i < 0 {
			i = len(s.params)
			s.params = append(s.params, param{name: name, kind: "any"})
		}
		s.params[i].required = true
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	return s, nil
}

// schemaParam returns the parameter that a property stands for.
func schemaParam(property jsontext.Member) param {
	p := param{name: property.Name, kind: "any"}
	members, _ := jsontext.Members(property.Value) // none: true and false are schemas too
	p.types = schemaTypes(members.Get("type"))
	notNull := slices.DeleteFunc(slices.Clone(p.types), func(t string) bool { return t == "null" })
	if len(notNull) == 1 {
		p.kind = notNull[0]
	}
	return p
}

// schemaTypes returns the types that the keyword type names: a string or a list
// of strings.
func schemaTypes(text []byte) (types []string) {
	names := [][]byte{text}
	if jsontext.Kind(text) == "array" {
		names, _ = jsontext.Elements(text)
	}
	for _, name := range names {
		if jsontext.Kind(name) == "string" {
			types = append(types, jsontext.Unquote(name))
		}
	}
	return types
}

// without returns the schema without the parameters that are hidden.
func (s *rawSchema) without(hidden func(name string) bool) state.JSON {
	shown := slices.Clone(s.members)
	for i, m := range shown {
		switch m.Name {
		case "properties":
			properties, _ := jsontext.Members(m.Value)
			shown[i].Value = jsontext.Object(slices.DeleteFunc(properties, func(p jsontext.Member) bool {
				return hidden(p.Name)
			})).JSON()
		case "required":
			names, _ := jsontext.Elements(m.Value)
			shown[i].Value = jsontext.Array(slices.DeleteFunc(names, func(name []byte) bool {
				return hidden(jsontext.Unquote(name))
			}))
		}
	}
	return state.JSON(jsontext.AppendCompact(nil, shown.JSON()))
}
