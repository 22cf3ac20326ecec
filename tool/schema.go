package tool

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// objectSchema collects the schema of what a model may fill in.
type objectSchema struct {
	properties jsontext.Object
	required   [][]byte
	open       bool
	types      typeSchemas
}

// add adds a parameter with its schema. about describes the parameter, in front
// of what the schema says of its type.
func (o *objectSchema) add(name string, s *jsonschema.Schema, about string, required bool) error {
	s.Description = joinLines(about, s.Description)
	text, err := state.JSONOf(s)
	if err != nil {
		return err
	}
	o.properties = append(o.properties, jsontext.Member{Name: name, Value: []byte(text)})
	if required {
		o.required = append(o.required, jsontext.AppendQuote(nil, name))
	}
	return nil
}

// joinLines returns two texts on separate lines. Each may be empty.
func joinLines(a, b string) string {
	if a != "" && b != "" {
		a += "\n"
	}
	return a + b
}

func (o *objectSchema) json() state.JSON {
	object := jsontext.Object{}.WithString("type", "object").With("properties", o.properties.JSON())
	if len(o.types.defs) > 0 {
		object = object.With("$defs", o.types.defs.JSON())
	}
	if len(o.required) > 0 {
		object = object.With("required", jsontext.Array(o.required))
	}
	if !o.open {
		object = object.With("additionalProperties", []byte("false"))
	}
	return state.JSON(object.JSON())
}

// allowNull adds null to what a schema accepts.
func allowNull(s *jsonschema.Schema) {
	switch {
	case s.Type != "":
		s.Types, s.Type = []string{s.Type, "null"}, ""
	case len(s.Types) > 0 && !slices.Contains(s.Types, "null"):
		s.Types = append(s.Types, "null")
	case s.Ref != "":
		*s = jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}}
	case len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, func(a *jsonschema.Schema) bool { return a.Type == "null" }):
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
	}
}

// anyTypes stands for any type until simplify removes it. With no types at all,
// jsonschema would turn a pointer to such a type into a null.
var anyTypes = []string{"null", "array", "boolean", "number", "object", "string"}

// simplify removes the null of lists, which is the same as an empty list, and
// types that accept everything.
func simplify(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	switch {
	case s.Ref != "": // the type only stood for it, see define
		nullable := slices.Contains(s.Types, "null")
		*s = jsonschema.Schema{Ref: s.Ref, Description: s.Description}
		if nullable {
			allowNull(s)
		}
	case len(s.Types) == 2 && slices.Contains(s.Types, "null") && slices.Contains(s.Types, "array"):
		s.Type, s.Types = "array", nil
	case len(s.Types) == len(anyTypes):
		s.Types = nil
	}
	simplify(s.Items)
	simplify(s.AdditionalProperties)
	for _, p := range s.Properties {
		simplify(p)
	}
}
