package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// rawSchema is a JSON Schema as it was given to [Raw], and what calls are
// checked for.
type rawSchema struct {
	members    jsontext.Object
	params     []param
	open       bool // arguments that are not among params may be valid
	undeclared bool // the schema says that there are others
}

// parseSchema reads from a JSON Schema what calls are checked for.
func parseSchema(schema state.JSON) (*rawSchema, error) {
	data := []byte(schema)
	if err := jsontext.Check(data, argumentLimits); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	reader := jsontext.ReadObject("$", data)
	additional := string(reader.Value("additionalProperties"))
	s := &rawSchema{
		members:    reader.Rest(),
		open:       additional != "false" || reader.Has("patternProperties"),
		undeclared: additional != "false" && additional != "",
	}
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

// without returns the schema without the parameters that are hidden. It returns
// an error if that cannot be done without changing what the rest means.
func (s *rawSchema) without(hidden func(name string) bool) (state.JSON, error) {
	isHidden := func(m jsontext.Member) bool { return hidden(m.Name) }
	isHiddenName := func(name []byte) bool { return jsontext.Kind(name) == "string" && hidden(jsontext.Unquote(name)) }
	withoutMembers := func(text []byte) []byte {
		if jsontext.Kind(text) != "object" {
			return text
		}
		members, _ := jsontext.Members(text)
		return jsontext.Object(slices.DeleteFunc(members, isHidden)).JSON()
	}
	withoutNames := func(text []byte) []byte {
		if jsontext.Kind(text) != "array" {
			return text
		}
		names, _ := jsontext.Elements(text)
		return jsontext.Array(slices.DeleteFunc(names, isHiddenName))
	}
	shown := slices.Clone(s.members)
	for i := range shown {
		m := &shown[i]
		switch m.Name {
		case "properties", "default":
			m.Value = withoutMembers(m.Value)
		case "required":
			m.Value = withoutNames(m.Value)
		case "examples":
			if examples, err := jsontext.Elements(m.Value); err == nil {
				for i := range examples {
					examples[i] = withoutMembers(examples[i])
				}
				m.Value = jsontext.Array(examples)
			}
		case "dependentRequired", "dependencies":
			if dependencies, err := jsontext.Members(m.Value); err == nil {
				for i := range dependencies {
					dependencies[i].Value = withoutNames(dependencies[i].Value)
				}
				m.Value = dependencies.JSON()
			}
		}
	}
	search := mentions{root: shown, hidden: hidden, seen: map[string]bool{}}
	if place, name := search.inSchema("$", shown); place != "" {
		return "", fmt.Errorf("the schema: %s speaks of the parameter %s, which is injected: write a schema without it",
			place, fault.Quote(name))
	}
	return state.JSON(jsontext.AppendCompact(nil, shown.JSON())), nil
}

// mentions searches a schema, and all that apply to the same object, for names
// of hidden parameters.
type mentions struct {
	root   jsontext.Object
	hidden func(name string) bool
	seen   map[string]bool // the references that have been followed
}

// inSchema returns the place of a hidden name and the name, or "".
func (s mentions) inSchema(path string, schema jsontext.Object) (place, name string) {
	for _, m := range schema {
		at := jsontext.Path(path, m.Name)
		switch m.Name {
		case "allOf", "anyOf", "oneOf":
			schemas, _ := jsontext.Elements(m.Value)
			for i, schema := range schemas {
				if place, name := s.inText(jsontext.Index(at, i), schema); place != "" {
					return place, name
				}
			}
		case "not", "if", "then", "else":
			place, name = s.inText(at, m.Value)
		case "$ref", "$dynamicRef":
			place, name = s.inReference(at, m.Value)
		case "properties", "patternProperties":
			members, _ := jsontext.Members(m.Value)
			for _, property := range members {
				// A pattern such as ^user$ is a name, too.
				if pattern := strings.Trim(property.Name, "^$"); s.hidden(property.Name) || s.hidden(pattern) {
					return at, pattern
				}
			}
		case "required", "propertyNames":
			place, name = s.inStrings(at, m.Value)
		case "dependentRequired", "dependentSchemas", "dependencies":
			members, _ := jsontext.Members(m.Value)
			for _, dependency := range members {
				if s.hidden(dependency.Name) {
					return at, dependency.Name
				}
				if jsontext.Kind(dependency.Value) == "array" {
					place, name = s.inStrings(at, dependency.Value)
				} else {
					place, name = s.inText(jsontext.Path(at, dependency.Name), dependency.Value)
				}
				if place != "" {
					return place, name
				}
			}
		}
		if place != "" {
			return place, name
		}
	}
	return "", ""
}

// inText is inSchema for a schema that may be true or false.
func (s mentions) inText(path string, schema []byte) (place, name string) {
	if jsontext.Kind(schema) != "object" {
		return "", ""
	}
	members, _ := jsontext.Members(schema)
	return s.inSchema(path, members)
}

// inStrings searches all strings of a JSON value.
func (s mentions) inStrings(path string, text []byte) (place, name string) {
	switch jsontext.Kind(text) {
	case "string":
		if text := strings.Trim(jsontext.Unquote(text), "^$"); s.hidden(text) {
			return path, text
		}
	case "array":
		elements, _ := jsontext.Elements(text)
		for _, element := range elements {
			if place, name := s.inStrings(path, element); place != "" {
				return place, name
			}
		}
	case "object":
		members, _ := jsontext.Members(text)
		for _, m := range members {
			if place, name := s.inStrings(path, m.Value); place != "" {
				return place, name
			}
		}
	}
	return "", ""
}

// inReference searches the schema to which a reference of the same document
// leads.
func (s mentions) inReference(path string, text []byte) (place, name string) {
	if jsontext.Kind(text) != "string" {
		return "", ""
	}
	pointer, local := strings.CutPrefix(jsontext.Unquote(text), "#/")
	if !local || s.seen[pointer] {
		return "", ""
	}
	s.seen[pointer] = true
	value := s.root.JSON()
	for _, token := range strings.Split(pointer, "/") {
		members, _ := jsontext.Members(value)
		value = members.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
	}
	return s.inText(path, value)
}
