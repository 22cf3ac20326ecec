package tool

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// objectSchema collects the schema of what a model may fill in.
type objectSchema struct {
	properties jsontext.Object
	required   [][]byte
	open       bool
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
	if len(o.required) > 0 {
		object = object.With("required", jsontext.Array(o.required))
	}
	if !o.open {
		object = object.With("additionalProperties", []byte("false"))
	}
	return state.JSON(object.JSON())
}

// schemaOf returns the schema of the JSON that a Go type is read from.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	own := map[reflect.Type]*jsonschema.Schema{}
	if err := collectSchemas(t, own); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}
	simplify(s)
	return s, nil
}

// allowNull adds null to what a schema accepts.
func allowNull(s *jsonschema.Schema) {
	switch {
	case s.Type != "":
		s.Types, s.Type = []string{s.Type, "null"}, ""
	case len(s.Types) > 0 && !slices.Contains(s.Types, "null"):
		s.Types = append(s.Types, "null")
	case len(s.AnyOf) > 0:
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
	}
}

// anyTypes stands for any type until simplify removes it. With no types at all,
// jsonschema would turn a pointer to such a type into a null.
var anyTypes = []string{"null", "array", "boolean", "number", "object", "string"}

// collectSchemas adds the types in t whose JSON is not that of their Go kind.
func collectSchemas(t reflect.Type, own map[reflect.Type]*jsonschema.Schema) error {
	if t.Kind() == reflect.Pointer {
		return collectSchemas(t.Elem(), own)
	}
	if _, ok := own[t]; ok {
		return nil
	}
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		own[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[state.Time]():
		own[t] = &jsonschema.Schema{Type: "string", Description: "A date: 2006-01-02 or RFC 3339."}
	case t == reflect.TypeFor[json.Number]():
		own[t] = &jsonschema.Schema{Type: "number"}
	case t.Kind() == reflect.Interface, pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		own[t] = &jsonschema.Schema{Types: anyTypes}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		own[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		own[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return collectSchemas(t.Elem(), own)
	case t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			own[t] = &jsonschema.Schema{Type: "object"}
		}
		return collectSchemas(t.Elem(), own)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if _, named := f.Tag.Lookup("json"); f.Anonymous && named {
				return fmt.Errorf("the field %s of %s is embedded and has a JSON name: name the field", f.Name, t)
			}
			if err := collectSchemas(f.Type, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// simplify removes the null of lists, which is the same as an empty list, and
// types that accept everything.
func simplify(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	switch {
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
