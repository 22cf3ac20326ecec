package tool

import (
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
