package state

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/exp/maps"

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
	Name        string     `json:"name"`
	Type        string     `json:"type"`
	Description string     `json:"description,omitempty"`
	UpdateRules string     `json:"update_rules,omitempty"`
	Owner       string     `json:"owner,omitempty"`
	Read        *scopeText `json:"read,omitempty"`
	Write       *scopeText `json:"write,omitempty"`
	Handler     string     `json:"handler,omitempty"`
	Secret      bool       `json:"secret,omitempty"`
	Ephemeral   bool       `json:"ephemeral,omitempty"`
	NoCopy      bool       `json:"no_copy,omitempty"`
	MaxBytes    int        `json:"max_bytes,omitempty"`
}

type limitsText struct {
	NameBytes  int `json:"name_bytes,omitempty"`
	ValueBytes int `json:"value_bytes,omitempty"`
	Depth      int `json:"depth,omitempty"`
	Keys       int `json:"keys,omitempty"`
	Results    int `json:"results,omitempty"`
	Journal    int `json:"journal,omitempty"`
}

// scopeText is a scope as "private", "public" or a list of names.
type scopeText struct{ Scope }

func (s scopeText) MarshalJSON() ([]byte, error) {
	if names := s.agents(); names != nil {
		return json.Marshal(names)
	}
	return json.Marshal(s.String())
}

func (s *scopeText) UnmarshalJSON(data []byte) error {
	var names []string
	switch {
	case string(data) == `"private"`:
		s.Scope = Private
	case string(data) == `"public"`:
		s.Scope = Public
	case json.Unmarshal(data, &names) == nil && len(names) > 0:
		s.Scope = Only(names...)
	default:
		return errors.New(`a scope is "private", "public" or a list of names`)
	}
	return nil
}

// ParseSchema returns the schema that is given as JSON:
//
//	{
//	  "fields": [{
//	    "name": "order_id", "type": "string", "description": "…", "update_rules": "…",
//	    "owner": "support", "read": "public", "write": ["billing"],
//	    "handler": "replace", "secret": false, "ephemeral": false, "max_bytes": 100
//	  }],
//	  "team": {"support": ["billing"]},
//	  "limits": {"keys": 100},
//	  "allow_undeclared": false
//	}
//
// Types are string, number, integer, boolean, date, list, object and any, which
// are the Go types string, float64, int64, bool, [Date], []any, map[string]any
// and any. Handlers are named as the shipped ones are by Handler.Name, or are
// among those given. What is not known is an error that says where.
func ParseSchema(data []byte, handlers ...AnyHandler) (*Schema, error) {
	text, err := decodeSchema(data)
	if err != nil {
		return nil, jsonError("schema", err)
	}
	var parts []Part
	var errs []error
	for i, f := range text.Fields {
		declare, ok := fieldTypes[f.Type]
		if f.Name == messagesName && f.Type == "messages" {
			declare, ok = func(f fieldText, hs []AnyHandler) (Part, error) { return fieldOf[[]Message](f, hs) }, true
		}
		if !ok {
			names := maps.Keys(fieldTypes)
			slices.Sort(names)
			errs = append(errs, fmt.Errorf("state: schema: $.fields[%d].type: %q is none of %s", i, fault.Clip(f.Type), strings.Join(names, ", ")))
			continue
		}
		part, err := declare(f, handlers)
		if err != nil {
			errs = append(errs, within(fmt.Sprintf("schema: $.fields[%d]", i), err))
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
		return nil, errors.Join(append(errs, err)...)
	}
	return schema, nil
}

// decodeSchema reads the text, strictly.
func decodeSchema(data []byte) (*schemaText, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: 16, Bytes: 16 << 20}); err != nil {
		return nil, err
	}
	var text schemaText
	if err := exactMembers(data, reflect.TypeOf(text), map[string]reflect.Type{
		"fields": reflect.TypeFor[fieldText](), "limits": reflect.TypeFor[limitsText](),
	}); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return nil, err
	}
	return &text, nil
}

// exactMembers returns an error if an object, which has been checked, has a
// member that a struct type does not know by exactly that name; encoding/json
// would ignore it, or take it for one in another case. inner has the struct types
// of members that are objects or lists of objects.
func exactMembers(data []byte, typ reflect.Type, inner map[string]reflect.Type) error {
	return exactAt("$", data, typ, inner)
}

func exactAt(path string, data []byte, typ reflect.Type, inner map[string]reflect.Type) error {
	if kind := jsontext.Kind(data); kind != "object" {
		return &fault.Error{Path: path, Want: "object", Got: kind}
	}
	ms, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	for _, m := range ms {
		at := jsontext.Path(path, fault.Clip(m.Name))
		known := false
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			known = known || name == m.Name
		}
		if !known {
			return &fault.Error{Path: at, Got: "unknown member"}
		}
		elem, ok := inner[m.Name]
		if !ok || string(m.Value) == "null" {
			continue
		}
		if list, _ := typ.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, m.Name) }); list.Type == nil || list.Type.Kind() != reflect.Slice {
			if err := exactAt(at, m.Value, elem, nil); err != nil {
				return err
			}
			continue
		}
		if kind := jsontext.Kind(m.Value); kind != "array" {
			return &fault.Error{Path: at, Want: "array", Got: kind}
		}
		elements, err := jsontext.Elements(m.Value)
		if err != nil {
			return err
		}
		for i, e := range elements {
			if err := exactAt(jsontext.Index(at, i), e, elem, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldTypes makes fields of the types that ParseSchema knows.
var fieldTypes = map[string]func(fieldText, []AnyHandler) (Part, error){
	"string": func(f fieldText, hs []AnyHandler) (Part, error) {
		return fieldOf(f, hs, Max[string](), Min[string]())
	},
	"number": func(f fieldText, hs []AnyHandler) (Part, error) {
		return fieldOf(f, hs, Sum[float64](), Max[float64](), Min[float64]())
	},
	"integer": func(f fieldText, hs []AnyHandler) (Part, error) {
		return fieldOf(f, hs, Sum[int64](), Max[int64](), Min[int64]())
	},
	"boolean": func(f fieldText, hs []AnyHandler) (Part, error) { return fieldOf[bool](f, hs) },
	"date":    func(f fieldText, hs []AnyHandler) (Part, error) { return fieldOf[Time](f, hs) },
	"list": func(f fieldText, hs []AnyHandler) (Part, error) {
		var n int
		if _, err := fmt.Sscanf(f.Handler, "keep_last(%d)", &n); err == nil {
			return fieldOf(f, hs, KeepLast[[]any](n))
		}
		return fieldOf(f, hs, Append[[]any](), Union[[]any]())
	},
	"object": func(f fieldText, hs []AnyHandler) (Part, error) { return fieldOf(f, hs, MergeMap[map[string]any]()) },
	"any":    func(f fieldText, hs []AnyHandler) (Part, error) { return fieldOf[any](f, hs) },
}

// fieldOf returns the field that a text describes. Its handler is one of the
// shipped ones for T, or one that was given.
func fieldOf[T any](f fieldText, given []AnyHandler, shipped ...Handler[T]) (Part, error) {
	field := &Field[T]{
		Name: f.Name, Description: f.Description, UpdateRules: f.UpdateRules, Owner: f.Owner,
		Secret: f.Secret, Ephemeral: f.Ephemeral, NoCopy: f.NoCopy, MaxBytes: f.MaxBytes,
	}
	if f.Read != nil {
		field.Read = f.Read.Scope
	}
	if f.Write != nil {
		field.Write = f.Write.Scope
	}
	if f.Handler == "" {
		return field, nil
	}
	for _, h := range given {
		if h != nil && h.Name() == f.Handler {
			typed, ok := h.(Handler[T])
			if !ok {
				return nil, &TypeError{Field: f.Name, Path: "handler", Want: reflect.TypeFor[T]().String(), Got: fmt.Sprintf("%T", h)}
			}
			field.Handler = typed
			return field, nil
		}
	}
	shipped = append(shipped, Replace[T](), FirstWins[T](), LastWins[T]())
	if f.Type == "messages" {
		shipped = append(shipped, Handler[T]{appending})
	}
	for _, h := range shipped {
		if h.Name() == f.Handler {
			field.Handler = h
			return field, nil
		}
	}
	return nil, fmt.Errorf("field %q: no handler %q for type %s", f.Name, fault.Clip(f.Handler), f.Type)
}

// MarshalJSON returns the schema as ParseSchema reads it. Go types that it does
// not know become list, object or any, and Validate and OneOf are not in it.
func (s *Schema) MarshalJSON() ([]byte, error) {
	text := schemaText{Fields: []fieldText{}, Team: s.team, AllowUndeclared: s.open}
	if s.given != (Limits{}) {
		text.Limits = (*limitsText)(&s.given)
	}
	for slot, sp := range s.specs {
		if slot == historySlot || slot == messagesSlot && sp.isDefault() {
			continue
		}
		f := fieldText{
			Name: sp.name, Type: sp.typeName(), Description: sp.description, UpdateRules: sp.updateRules, Owner: sp.owner,
			Secret: sp.secret, Ephemeral: sp.ephemeral, NoCopy: sp.noCopy, MaxBytes: sp.maxBytes,
		}
		if sp.read != Private {
			f.Read = &scopeText{sp.read}
		}
		if sp.write != Private {
			f.Write = &scopeText{sp.write}
		}
		if h := sp.handler; h.kind != replaces && h.kind != appends || h.kind == replaces && sp.list != nil {
			f.Handler = h.name // it is not the default of the type
		}
		text.Fields = append(text.Fields, f)
	}
	return json.Marshal(text)
}

// isDefault reports whether a spec is that of Messages.
func (sp *spec) isDefault() bool {
	return sp.description == Messages.Description && sp.updateRules == "" && sp.owner == "" && sp.read == Public &&
		sp.write == Public && sp.handler == appending && !sp.secret && !sp.ephemeral && !sp.noCopy && sp.maxBytes == 0
}

// hasOwnJSON reports whether the field's type says itself how it is coded.
func (sp *spec) hasOwnJSON() bool {
	for _, typ := range []reflect.Type{sp.typ, reflect.PointerTo(sp.typ)} {
		if typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return true
		}
	}
	return sp.typ == reflect.TypeFor[json.Number]()
}

// typeName returns the type by which ParseSchema knows a field.
func (sp *spec) typeName() string {
	switch {
	case sp.slot == messagesSlot:
		return "messages"
	case sp.typ == reflect.TypeFor[Time](), sp.typ == reflect.TypeFor[time.Time]():
		return "date"
	case sp.any:
		return "any"
	case sp.hasOwnJSON():
		return "any"
	case sp.list != nil || sp.typ.Kind() == reflect.Array:
		return "list"
	}
	switch kind := sp.typ.Kind(); {
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
