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
	if place, name := search.inSchema("$", shown.JSON()); place != "" {
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

// inSchema returns the place of a hidden name and the name, or "". text is a
// schema, which may be true or false, or a list of schemas.
func (s mentions) inSchema(path string, text []byte) (place, name string) {
	schemas, _ := jsontext.Elements(text)
	for i := 0; i < len(schemas) && place == ""; i++ {
		place, name = s.inSchema(jsontext.Index(path, i), schemas[i])
	}
	members, _ := jsontext.Members(text)
	for i := 0; i < len(members) && place == ""; i++ {
		place, name = s.inKeyword(jsontext.Path(path, members[i].Name), members[i].Name, members[i].Value)
	}
	return place, name
}

// inKeyword is inSchema for the value of a keyword.
func (s mentions) inKeyword(at, keyword string, text []byte) (place, name string) {
	switch keyword {
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		return s.inSchema(at, text)
	case "$ref", "$dynamicRef":
		return s.inSchema(at, s.follow(text))
	case "required", "propertyNames":
		return s.inStrings(at, text)
	case "properties", "patternProperties", "dependentRequired", "dependentSchemas", "dependencies":
		members, _ := jsontext.Members(text)
		for i := 0; i < len(members) && place == ""; i++ {
			m := members[i]
			switch {
			case s.names(m.Name) != "":
				return at, s.names(m.Name)
			case keyword == "properties", keyword == "patternProperties": // of other objects
			case jsontext.Kind(m.Value) == "array":
				place, name = s.inStrings(at, m.Value)
			default:
				place, name = s.inSchema(jsontext.Path(at, m.Name), m.Value)
			}
		}
	}
	return place, name
}

// names returns the hidden name that a text is, or "". A pattern such as ^user$ is
// a name, too.
func (s mentions) names(text string) string {
	if name := strings.Trim(text, "^$"); s.hidden(name) {
		return name
	}
	return ""
}

// inStrings searches all strings of a JSON value.
func (s mentions) inStrings(path string, text []byte) (place, name string) {
	if jsontext.Kind(text) == "string" {
		if name := s.names(jsontext.Unquote(text)); name != "" {
			return path, name
		}
	}
	parts, _ := jsontext.Elements(text)
	members, _ := jsontext.Members(text)
	for _, m := range members {
		parts = append(parts, m.Value)
	}
	for i := 0; i < len(parts) && place == ""; i++ {
		place, name = s.inStrings(path, parts[i])
	}
	return place, name
}

// follow returns the schema to which a reference of the same document leads, the
// first time.
func (s mentions) follow(text []byte) []byte {
	if jsontext.Kind(text) != "string" {
		return nil
	}
	pointer, local := strings.CutPrefix(jsontext.Unquote(text), "#/")
	if !local || s.seen[pointer] {
		return nil
	}
	s.seen[pointer] = true
	value := s.root.JSON()
	for _, token := range strings.Split(pointer, "/") {
		members, _ := jsontext.Members(value)
		value = members.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
	}
	return value
}
