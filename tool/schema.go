package tool

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsonstruct"
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

// typeSchemas makes the schemas of the Go types in one object schema. Types
// that contain themselves are defined once, and referred to.
type typeSchemas struct {
	own   map[reflect.Type]*jsonschema.Schema // of types whose JSON is not that of their kind
	known map[reflect.Type]bool               // types that collect has seen
	names []string                            // of the definitions
	defs  jsontext.Object
}

// schemaOf returns the schema of the JSON that a Go type is read from.
func (ts *typeSchemas) schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if ts.own == nil {
		ts.own, ts.known = map[reflect.Type]*jsonschema.Schema{}, map[reflect.Type]bool{}
	}
	var recursive []reflect.Type
	if err := ts.collect(t, &recursive); err != nil {
		return nil, err
	}
	for _, r := range recursive {
		ts.refer(r)
	}
	for _, r := range recursive {
		if err := ts.define(r); err != nil {
			return nil, err
		}
	}
	return ts.infer(t)
}

// infer returns the schema of a type with references to the definitions.
func (ts *typeSchemas) infer(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: ts.own})
	if err == nil {
		simplify(s)
	}
	return s, err
}

// definitions is where references point to.
const definitions = "#/$defs/"

// refer lets the type be referred to. Package jsonschema adds null to the type
// of a schema for a pointer, so the reference has one until simplify removes
// it.
func (ts *typeSchemas) refer(t reflect.Type) {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, t.Name())
	for slices.Contains(ts.names, name) {
		name += "_"
	}
	ts.names = append(ts.names, name)
	kind := "object"
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		kind = "array"
	}
	ts.own[t] = &jsonschema.Schema{Type: kind, Ref: definitions + name}
}

// define adds the definition of a type that refer has named. Package jsonschema
// refuses types that contain themselves, but not the parts of such a type, in
// which the type is a reference.
func (ts *typeSchemas) define(t reflect.Type) (err error) {
	s := &jsonschema.Schema{Type: ts.own[t].Type}
	switch t.Kind() {
	case reflect.Struct:
		s.Properties = map[string]*jsonschema.Schema{}
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}} // which is false
		members, _ := jsonstruct.Members(t)                                    // lossless: value.For accepts the type
		for _, m := range members {
			part, err := ts.infer(m.Type)
			if err != nil {
				return err
			}
			part.Description = joinLines(m.Tag.Get("jsonschema"), part.Description)
			s.Properties[m.Name] = part
			s.PropertyOrder = append(s.PropertyOrder, m.Name)
			if m.Required() {
				s.Required = append(s.Required, m.Name)
			}
		}
	case reflect.Map:
		s.AdditionalProperties, err = ts.infer(t.Elem())
	default:
		s.Items, err = ts.infer(t.Elem())
	}
	if err != nil {
		return err
	}
	text, err := state.JSONOf(s)
	name := strings.TrimPrefix(ts.own[t].Ref, definitions)
	ts.defs = append(ts.defs, jsontext.Member{Name: name, Value: []byte(text)})
	return err
}

// collect finds the types in t whose JSON is not that of their Go kind, and
// adds those that contain themselves to recursive.
func (ts *typeSchemas) collect(t reflect.Type, recursive *[]reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		return ts.collect(t.Elem(), recursive)
	}
	if done, seen := ts.known[t]; seen {
		if _, own := ts.own[t]; !done && !own && t.Name() != "" && !slices.Contains(*recursive, t) {
			*recursive = append(*recursive, t) // it is a type around this one
		}
		return nil
	}
	ts.known[t] = false
	defer func() { ts.known[t] = true }()
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		ts.own[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[state.Time]():
		ts.own[t] = &jsonschema.Schema{Type: "string", Description: "A date: 2006-01-02 or RFC 3339."}
	case t == reflect.TypeFor[json.Number]():
		ts.own[t] = &jsonschema.Schema{Type: "number"}
	case t.Kind() == reflect.Interface, pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		ts.own[t] = &jsonschema.Schema{Types: anyTypes}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		ts.own[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		ts.own[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return ts.collect(t.Elem(), recursive)
	case t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			ts.own[t] = &jsonschema.Schema{Type: "object"}
		}
		return ts.collect(t.Elem(), recursive)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if _, named := f.Tag.Lookup("json"); f.Anonymous && named {
				return fmt.Errorf("the field %s of %s is embedded and has a JSON name: name the field", f.Name, t)
			}
			if err := ts.collect(f.Type, recursive); err != nil {
				return err
			}
		}
	}
	return nil
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

// joinLines returns two texts on separate lines. Each may be empty.
func joinLines(a, b string) string {
	if a != "" && b != "" {
		a += "\n"
	}
	return a + b
}
