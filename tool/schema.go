package tool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// object returns the schema of what the model may fill in.
func (t *Tool) object() (state.JSON, error) {
	var properties, required []byte
	for _, p := range t.params {
		if t.injects(p.name) {
			continue
		}
		s, err := schemaOf(p.plan.Type())
		if err != nil {
			return "", fmt.Errorf("parameter %q: %w", p.name, err)
		}
		s.about(p.about)
		if properties, err = appendProperty(properties, p.name, s); err != nil {
			return "", fmt.Errorf("parameter %q: %w", p.name, err)
		}
		if p.required {
			required = jsontext.AppendQuote(append(required, ','), p.name)
		}
	}
	b := append(append([]byte(`{"type":"object","properties":{`), properties...), '}')
	if len(required) > 0 {
		b = append(append(append(b, `,"required":[`...), required[1:]...), ']')
	}
	if !t.open {
		b = append(b, `,"additionalProperties":false`...)
	}
	return state.JSON(append(b, '}')), nil
}

func appendProperty(b []byte, name string, p property) ([]byte, error) {
	text, err := state.JSONOf(p.Schema)
	if err != nil {
		return nil, err
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	return append(append(jsontext.AppendQuote(b, name), ':'), text...), nil
}

// property is the schema of a parameter.
type property struct{ *jsonschema.Schema }

// schemaOf returns the schema of what a Go type reads from JSON here.
func schemaOf(t reflect.Type) (property, error) {
	own := map[reflect.Type]*jsonschema.Schema{}
	if err := ownSchemas(t, own); err != nil {
		return property{}, err
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return property{}, err
	}
	tidy(s)
	return property{s}, nil
}

// about adds to the description.
func (p property) about(text string) {
	if p.Description != "" && text != "" {
		text += "\n"
	}
	p.Description = text + p.Description
}

// nullable adds null to what the property may be.
func (p property) nullable() property {
	switch s := p.Schema; {
	case s.Type != "":
		s.Types, s.Type = []string{s.Type, "null"}, ""
	case len(s.Types) > 0 && !slices.Contains(s.Types, "null"):
		s.Types = append(s.Types, "null")
	case len(s.AnyOf) > 0:
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
	}
	return p
}

// anything is every type: jsonschema makes of a pointer to what has no type a null.
var anything = []string{"null", "array", "boolean", "number", "object", "string"}

// ownSchemas collects the types whose JSON is not that of their Go kind.
func ownSchemas(t reflect.Type, own map[reflect.Type]*jsonschema.Schema) error {
	if t.Kind() == reflect.Pointer {
		return ownSchemas(t.Elem(), own)
	}
	if _, ok := own[t]; ok {
		return nil
	}
	pt := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		own[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[state.Time]():
		own[t] = &jsonschema.Schema{Type: "string", Description: "A date: 2006-01-02 or RFC 3339."}
	case t == reflect.TypeFor[json.Number]():
		own[t] = &jsonschema.Schema{Type: "number"}
	case t.Kind() == reflect.Interface, pt.Implements(reflect.TypeFor[json.Unmarshaler]()):
		own[t] = &jsonschema.Schema{Types: anything}
	case pt.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		own[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		own[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return ownSchemas(t.Elem(), own)
	case t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			own[t] = &jsonschema.Schema{Type: "object"}
		}
		return ownSchemas(t.Elem(), own)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if _, named := f.Tag.Lookup("json"); f.Anonymous && named {
				return fmt.Errorf("the field %s of %s is embedded and has a JSON name: name the field", f.Name, t)
			}
			if err := ownSchemas(f.Type, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// tidy takes out what is so for every list, that null is an empty one, and types
// that say nothing.
func tidy(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	switch {
	case len(s.Types) == 2 && slices.Contains(s.Types, "null") && slices.Contains(s.Types, "array"):
		s.Type, s.Types = "array", nil
	case len(s.Types) == len(anything):
		s.Types = nil
	}
	tidy(s.Items)
	tidy(s.AdditionalProperties)
	for _, p := range s.Properties {
		tidy(p)
	}
}

// rawSchema is a JSON Schema as it was given.
type rawSchema struct {
	members []jsontext.Member
	params  []param
	open    bool
}

// parseSchema reads from a JSON Schema what calls are checked for.
func parseSchema(schema state.JSON) (*rawSchema, error) {
	data := []byte(schema)
	if err := jsontext.Check(data, argumentLimits); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	members, err := jsontext.Members(data)
	if err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	s := &rawSchema{members: members, open: true}
	for _, m := range members {
		switch m.Name {
		case "type":
			if types := schemaTypes(m.Value); !slices.Contains(types, "object") {
				return nil, errors.New("the schema: $.type: want object")
			}
		case "additionalProperties":
			s.open = string(m.Value) != "false"
		case "properties":
			properties, err := jsontext.Members(m.Value)
			if err != nil {
				return nil, fmt.Errorf("the schema: $.properties: want object, got %s", jsontext.Kind(m.Value))
			}
			for _, p := range properties {
				s.params = append(s.params, rawParam(p))
			}
		}
	}
	for _, m := range members {
		if m.Name != "required" {
			continue
		}
		names, err := jsontext.Elements(m.Value)
		if err != nil {
			return nil, fmt.Errorf("the schema: $.required: want array, got %s", jsontext.Kind(m.Value))
		}
		for i, name := range names {
			if jsontext.Kind(name) != "string" {
				return nil, fmt.Errorf("the schema: $.required[%d]: want string, got %s", i, jsontext.Kind(name))
			}
			s.require(jsontext.Unquote(name))
		}
	}
	return s, nil
}

func (s *rawSchema) require(name string) {
	for i := range s.params {
		if s.params[i].name == name {
			s.params[i].required = true
			return
		}
	}
	s.params = append(s.params, param{name: name, kind: "any", required: true})
}

func rawParam(m jsontext.Member) param {
	p := param{name: m.Name, kind: "any"}
	members, _ := jsontext.Members(m.Value) // true and false are schemas too
	for _, m := range members {
		if m.Name == "type" {
			p.types = schemaTypes(m.Value)
		}
	}
	wanted := slices.DeleteFunc(slices.Clone(p.types), func(t string) bool { return t == "null" })
	if len(wanted) == 1 {
		p.kind = wanted[0]
	}
	return p
}

// schemaTypes reads the keyword type: a string or a list of such.
func schemaTypes(text []byte) (types []string) {
	list := [][]byte{text}
	if jsontext.Kind(text) == "array" {
		list, _ = jsontext.Elements(text)
	}
	for _, t := range list {
		if jsontext.Kind(t) == "string" {
			types = append(types, jsontext.Unquote(t))
		}
	}
	return types
}

// allows reports whether the type of a JSON value is one of the parameter's.
func (p *param) allows(text []byte) bool {
	if len(p.types) == 0 {
		return true
	}
	kind := jsontext.Kind(text)
	if kind == "bool" {
		kind = "boolean"
	}
	if slices.Contains(p.types, kind) {
		return true
	}
	if kind != "number" || !slices.Contains(p.types, "integer") {
		return false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return err == nil && f == math.Trunc(f)
}

// without returns the schema without the parameters that are left out.
func (s *rawSchema) without(out func(name string) bool) state.JSON {
	b := []byte{'{'}
	for i, m := range s.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendQuote(b, m.Name), ':')
		switch m.Name {
		case "properties":
			properties, _ := jsontext.Members(m.Value)
			b = append(b, '{')
			for _, p := range properties {
				if out(p.Name) {
					continue
				}
				if b[len(b)-1] != '{' {
					b = append(b, ',')
				}
				b = jsontext.AppendCompact(append(jsontext.AppendQuote(b, p.Name), ':'), p.Value)
			}
			b = append(b, '}')
		case "required":
			names, _ := jsontext.Elements(m.Value)
			b = append(b, '[')
			for _, name := range names {
				if out(jsontext.Unquote(name)) {
					continue
				}
				if b[len(b)-1] != '[' {
					b = append(b, ',')
				}
				b = append(b, name...)
			}
			b = append(b, ']')
		default:
			b = jsontext.AppendCompact(b, m.Value)
		}
	}
	return state.JSON(append(b, '}'))
}
