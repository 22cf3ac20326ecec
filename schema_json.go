package state

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// schemaText is a schema as data.
type schemaText struct {
	Fields          []fieldText         `json:"fields"`
	Team            map[string][]string `json:"team,omitzero"`
	Limits          *limitsText         `json:"limits,omitempty"`
	AllowUndeclared bool                `json:"allow_undeclared,omitempty"`
}

type fieldText struct {
	Name        string    `json:"name"`
	Type        string    `json:"type"`
	Description string    `json:"description,omitempty"`
	UpdateRules string    `json:"update_rules,omitempty"`
	Owner       string    `json:"owner,omitempty"`
	Read        scopeText `json:"read,omitzero"`
	Write       scopeText `json:"write,omitzero"`
	Handler     string    `json:"handler,omitempty"`
	Secret      bool      `json:"secret,omitempty"`
	Shared      bool      `json:"shared,omitempty"`
	Ephemeral   bool      `json:"ephemeral,omitempty"`
	NoCopy      bool      `json:"no_copy,omitempty"`
	MaxBytes    int       `json:"max_bytes,omitempty"`
	Was         []string  `json:"was,omitempty"`
}

type limitsText struct {
	NameBytes   int `json:"name_bytes,omitempty"`
	ValueBytes  int `json:"value_bytes,omitempty"`
	Depth       int `json:"depth,omitempty"`
	Keys        int `json:"keys,omitempty"`
	Results     int `json:"results,omitempty"`
	Journal     int `json:"journal,omitempty"`
	ResultBytes int `json:"result_bytes,omitempty"`
}

// scopeText is a scope as "private", "public" or a list of names.
type scopeText struct{ Scope }

func (s scopeText) MarshalJSON() ([]byte, error) {
	if names := s.agents(); names != nil {
		return json.Marshal(names)
	}
	return json.Marshal(s.String())
}

// ParseSchema returns the schema that is given as JSON:
//
//	{
//	  "fields": [{
//	    "name": "order_id", "type": "string", "description": "…", "update_rules": "…",
//	    "owner": "support", "read": "public", "write": ["billing"],
//	    "handler": "replace", "secret": false, "shared": false, "ephemeral": false, "max_bytes": 100,
//	    "was": ["order"]
//	  }],
//	  "team": {"support": ["billing"]},
//	  "limits": {"keys": 100},
//	  "allow_undeclared": false
//	}
//
// The types string, number, integer, boolean, date, list, object and any are
// the Go types string, float64, int64, bool, [Time], []any, map[string]any and
// any. A handler is one of those given, or is named as Handler.Name names those
// of this package. The error gives the place of everything that is not known.
func ParseSchema(data []byte, handlers ...AnyHandler) (*Schema, error) {
	return parseSchema(data, handlerSet{given: handlers})
}

// parseSchemaByName is ParseSchema for a caller that has no handlers: those that
// are not of this package are known by their names only, and merge nothing.
func parseSchemaByName(data []byte) (*Schema, error) {
	return parseSchema(data, handlerSet{byName: true})
}

// handlerSet is the handlers that a schema in JSON may name, besides those of
// this package.
type handlerSet struct {
	given  []AnyHandler
	byName bool // any name will do
}

func parseSchema(data []byte, handlers handlerSet) (*Schema, error) {
	text, err := decodeSchema(data)
	if err != nil {
		return nil, asKind(ErrInvalidSchema, jsonError("schema", err))
	}
	var parts []Part
	var errs []error
	for i, f := range text.Fields {
		part, err := f.part(handlers)
		if err != nil {
			errs = append(errs, jsonError("schema", fault.Under(jsontext.Index("$.fields", i), err)))
			continue
		}
		parts = append(parts, part)
	}
	if text.Team != nil {
		parts = append(parts, Team(text.Team))
	}
	if l := text.Limits; l != nil {
		parts = append(parts, Limits(*l))
	}
	if text.AllowUndeclared {
		parts = append(parts, AllowUndeclared)
	}
	schema, err := NewSchema(parts...)
	if err != nil || len(errs) > 0 {
		if mistakes, ok := err.(schemaError); ok {
			errs = append(errs, mistakes...)
		}
		return nil, schemaError(errs)
	}
	return schema, nil
}

// decodeSchema reads the text.
func decodeSchema(data []byte) (*schemaText, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: 16, Bytes: 16 << 20}); err != nil {
		return nil, err
	}
	r := jsontext.ReadObject("$", data)
	text := &schemaText{AllowUndeclared: r.Bool("allow_undeclared")}
	for i, data := range r.Elements("fields") {
		field, err := decodeField(jsontext.ReadObject(jsontext.Index("$.fields", i), data))
		if err != nil {
			return nil, err
		}
		text.Fields = append(text.Fields, field)
	}
	if team := r.Object("team"); team != nil {
		text.Team = map[string][]string{}
		for _, m := range team.Rest() {
			text.Team[m.Name] = team.Strings(m.Name)
		}
		if err := team.Err(); err != nil {
			return nil, err
		}
	}
	if limits := r.Object("limits"); limits != nil {
		text.Limits = &limitsText{
			NameBytes: limits.Int("name_bytes"), ValueBytes: limits.Int("value_bytes"), Depth: limits.Int("depth"),
			Keys: limits.Int("keys"), Results: limits.Int("results"), Journal: limits.Int("journal"),
			ResultBytes: limits.Int("result_bytes"),
		}
		if err := limits.End(); err != nil {
			return nil, err
		}
	}
	return text, r.End()
}

func decodeField(r *jsontext.Reader) (fieldText, error) {
	f := fieldText{
		Name: r.String("name"), Type: r.String("type"), Description: r.String("description"),
		UpdateRules: r.String("update_rules"), Owner: r.String("owner"), Handler: r.String("handler"),
		Read: decodeScope(r, "read"), Write: decodeScope(r, "write"),
		Secret: r.Bool("secret"), Shared: r.Bool("shared"), Ephemeral: r.Bool("ephemeral"), NoCopy: r.Bool("no_copy"),
		MaxBytes: r.Int("max_bytes"), Was: r.Strings("was"),
	}
	return f, r.End()
}

func decodeScope(r *jsontext.Reader, name string) scopeText {
	switch data := r.Value(name); string(data) {
	case "", "null", `"private"`:
		return scopeText{Private}
	case `"public"`:
		return scopeText{Public}
	default:
		if jsontext.Kind(data) == "array" {
			if names := r.Strings(name); len(names) > 0 {
				return scopeText{Only(names...)}
			}
		}
		r.Fault(name, `"private", "public" or a list of names`, "another value")
		return scopeText{}
	}
}

// fieldTypes makes fields of the types that ParseSchema knows.
var fieldTypes = map[string]func(fieldText, handlerSet) (Part, error){
	"string": func(f fieldText, hs handlerSet) (Part, error) {
		return fieldOf(f, hs, Max[string](), Min[string]())
	},
	"number": func(f fieldText, hs handlerSet) (Part, error) {
		return fieldOf(f, hs, Sum[float64](), Max[float64](), Min[float64]())
	},
	"integer": func(f fieldText, hs handlerSet) (Part, error) {
		return fieldOf(f, hs, Sum[int64](), Max[int64](), Min[int64]())
	},
	"boolean": func(f fieldText, hs handlerSet) (Part, error) { return fieldOf[bool](f, hs) },
	"date":    func(f fieldText, hs handlerSet) (Part, error) { return fieldOf[Time](f, hs) },
	"list": func(f fieldText, hs handlerSet) (Part, error) {
		var n int
		if _, err := fmt.Sscanf(f.Handler, "keep_last(%d)", &n); err == nil {
			return fieldOf(f, hs, KeepLast[[]any](n))
		}
		return fieldOf(f, hs, Append[[]any](), Union[[]any]())
	},
	"object": func(f fieldText, hs handlerSet) (Part, error) { return fieldOf(f, hs, MergeMap[map[string]any]()) },
	"any":    func(f fieldText, hs handlerSet) (Part, error) { return fieldOf[any](f, hs) },
}

// part returns the field that the text describes. An error is a fault below the
// field's own path.
func (f fieldText) part(handlers handlerSet) (Part, error) {
	if f.Name == messagesName && f.Type == "messages" {
		return fieldOf(f, handlers, Handler[[]Message]{appendHandler})
	}
	if declare, ok := fieldTypes[f.Type]; ok {
		return declare(f, handlers)
	}
	names := slices.Sorted(maps.Keys(fieldTypes))
	return nil, &fault.Error{
		Path: "$.type", Got: fmt.Sprintf("%s is not one of %s", fault.Quote(f.Type), strings.Join(names, ", ")),
	}
}

// fieldOf returns the field that a text describes. Its handler is one of those
// that were given, or one of this package for T.
func fieldOf[T any](f fieldText, handlers handlerSet, shipped ...Handler[T]) (Part, error) {
	field := &Field[T]{
		Name: f.Name, Description: f.Description, UpdateRules: f.UpdateRules, Owner: f.Owner,
		Read: f.Read.Scope, Write: f.Write.Scope,
		Secret: f.Secret, Shared: f.Shared, Ephemeral: f.Ephemeral, NoCopy: f.NoCopy, MaxBytes: f.MaxBytes,
		Was: f.Was,
	}
	if f.Handler == "" {
		return field, nil
	}
	for _, h := range handlers.given {
		if h != nil && h.Name() == f.Handler {
			typed, ok := h.(Handler[T])
			if !ok {
				want := "a handler of " + reflect.TypeFor[T]().String()
				return nil, &fault.Error{Path: "$.handler", Want: want, Got: fmt.Sprintf("%T", h)}
			}
			field.Handler = typed
			return field, nil
		}
	}
	for _, h := range append(shipped, Replace[T](), FirstWins[T](), LastWins[T]()) {
		if h.Name() == f.Handler {
			field.Handler = h
			return field, nil
		}
	}
	if handlers.byName {
		field.Handler = newHandler(f.Handler, true, func(T, bool, T) (merged T, err error) {
			return merged, errors.New("it is known by its name only")
		})
		return field, nil
	}
	return nil, &fault.Error{
		Path: "$.handler", Got: fmt.Sprintf("no handler %s for type %s", fault.Quote(f.Handler), f.Type),
	}
}

// isShippedName reports whether ParseSchema does not ask its caller for a
// handler of this name.
func isShippedName(name string) bool {
	switch name {
	case "", "replace", "append", "union", "merge_map", "sum", "max", "min", "first_wins", "last_wins":
		return true
	}
	return strings.HasPrefix(name, "keep_last(")
}

// MarshalJSON returns the schema as ParseSchema reads it. Go types that
// ParseSchema does not know become list, object or any. Validate, OneOf and
// Convert are left out. A handler of [NewHandler] must have a unique name: without one,
// or with the name of a handler of this package, it is a [TypeError].
func (s *Schema) MarshalJSON() ([]byte, error) {
	text := schemaText{Fields: []fieldText{}, Team: s.team, AllowUndeclared: s.open}
	if s.given != (Limits{}) {
		text.Limits = (*limitsText)(&s.given)
	}
	for _, sp := range s.fields {
		if sp.isDefaultMessages() {
			continue
		}
		f := fieldText{
			Name: sp.name, Type: sp.typeName(), Description: sp.description, UpdateRules: sp.updateRules, Owner: sp.owner,
			Read: scopeText{sp.read}, Write: scopeText{sp.write},
			Secret: sp.form.Secret, Shared: sp.slot.Kept, Ephemeral: sp.ephemeral, NoCopy: sp.form.NoCopy, MaxBytes: sp.maxBytes,
			Was: sp.was,
		}
		if h := sp.handler; h.kind != replaces && h.kind != appends || h.kind == replaces && sp.form.Elem != nil {
			if h.user && isShippedName(h.name) {
				return nil, &TypeError{
					Field: sp.name, Path: "handler", Want: "a handler with a name of its own", Got: fault.Quote(h.name),
				}
			}
			f.Handler = h.name // it is not the default of the type
		}
		text.Fields = append(text.Fields, f)
	}
	return json.Marshal(text)
}

// isDefaultMessages reports whether the spec is the one that a schema adds if
// the messages are not declared.
func (sp *fieldSpec) isDefaultMessages() bool {
	return sp.name == messagesName && sp.description == messagesDescription && sp.updateRules == "" &&
		sp.owner == "" && sp.read == Public && sp.write == Public && sp.handler == appendHandler &&
		!sp.ephemeral && !sp.form.NoCopy && sp.maxBytes == 0
}

// hasOwnJSON reports whether the field's type codes itself.
func (sp *fieldSpec) hasOwnJSON() bool {
	for _, typ := range []reflect.Type{sp.form.Type, reflect.PointerTo(sp.form.Type)} {
		if typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return true
		}
	}
	return sp.form.Type == reflect.TypeFor[json.Number]()
}

// typeName returns the type by which ParseSchema knows a field.
func (sp *fieldSpec) typeName() string {
	switch {
	case sp.name == messagesName:
		return "messages"
	case sp.form.Type == reflect.TypeFor[Time](), sp.form.Type == reflect.TypeFor[time.Time]():
		return "date"
	case sp.form.Any, sp.hasOwnJSON():
		return "any"
	case sp.form.Elem != nil || sp.form.Type.Kind() == reflect.Array:
		return "list"
	}
	switch kind := sp.form.Type.Kind(); {
	case kind == reflect.String:
		return "string"
	case kind == reflect.Bool:
		return "boolean"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "integer"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "number"
	case kind == reflect.Map || kind == reflect.Struct:
		return "object"
	}
	return "any"
}
