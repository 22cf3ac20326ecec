package tool

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// param is a parameter of a function.
type param struct {
	name     string
	kind     string // its type in the words of value.Plan
	required bool
	about    string // for the model

	index []int       // where it is in the struct
	plan  *value.Plan // of its Go type

	types []string // what a raw schema allows, nothing for all
}

// arguments is where the arguments of one call go.
type arguments interface {
	// set takes an argument of the model. p is nil if the tool is open and does
	// not declare it.
	set(p *param, m jsontext.Member) error
	// inject takes the value of a field. p is nil as with set.
	inject(p *param, name string, v any) error
	// value returns what the function is given.
	value() any
}

// structArguments fill a struct.
type structArguments struct{ in reflect.Value }

func (a structArguments) set(p *param, m jsontext.Member) error {
	return decode(member(a.in, p.index), p.plan, m.Value)
}

// decode stores a checked JSON text. The scalars, which most arguments and outputs
// are, are read without the plan, where they have the form that it would write.
func decode(dst reflect.Value, plan *value.Plan, text []byte) error {
	if plan.Scalar() {
		switch kind := dst.Kind(); {
		case kind == reflect.String && text[0] == '"':
			dst.SetString(jsontext.Unquote(text))
			return nil
		case kind == reflect.Bool && (text[0] == 't' || text[0] == 'f'):
			dst.SetBool(text[0] == 't')
			return nil
		case dst.CanInt():
			if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && !dst.OverflowInt(n) {
				dst.SetInt(n)
				return nil
			}
		}
	}
	v, _, err := plan.Decode(text, value.Limits{})
	if err == nil {
		dst.Set(v)
	}
	return err
}

func (a structArguments) inject(p *param, _ string, v any) error {
	dst := member(a.in, p.index)
	if v != nil && reflect.TypeOf(v) == dst.Type() {
		dst.Set(reflect.ValueOf(v))
		return nil
	}
	c, _, err := p.plan.Convert(v, value.Limits{})
	if err == nil {
		dst.Set(c)
	}
	return err
}

func (a structArguments) value() any { return a.in.Addr().Interface() }

// member returns a field of a struct and makes the embedded ones it is in.
func member(v reflect.Value, index []int) reflect.Value {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

// mapArguments are what they are.
type mapArguments map[string]any

var anyPlan, _ = value.For(reflect.TypeFor[any]())

func (a mapArguments) set(_ *param, m jsontext.Member) error {
	v, _, err := anyPlan.Decode(m.Value, value.Limits{})
	if err == nil {
		a[m.Name] = v.Interface()
	}
	return err
}

func (a mapArguments) inject(_ *param, name string, v any) error {
	a[name] = v
	return nil
}

func (a mapArguments) value() any { return map[string]any(a) }

// objectArguments stay JSON.
type objectArguments struct{ text []byte }

func (a *objectArguments) set(p *param, m jsontext.Member) error {
	if p != nil && !p.allows(m.Value) {
		return &fault.Error{Path: "$", Want: strings.Join(p.types, " or "), Got: jsontext.Kind(m.Value)}
	}
	a.add(m.Name)
	a.text = jsontext.AppendCompact(a.text, m.Value)
	return nil
}

func (a *objectArguments) inject(p *param, name string, v any) error {
	text := []byte("null")
	if v != nil {
		plan, err := value.For(reflect.TypeOf(v))
		if err != nil {
			return err
		}
		if text, err = plan.AppendJSON(nil, reflect.ValueOf(v)); err != nil {
			return err
		}
	}
	if p != nil && !p.allows(text) {
		return &fault.Error{Path: "$", Want: strings.Join(p.types, " or "), Got: jsontext.Kind(text)}
	}
	a.add(name)
	a.text = append(a.text, text...)
	return nil
}

func (a *objectArguments) add(name string) {
	sep := byte(',')
	if len(a.text) == 0 {
		sep = '{'
	}
	a.text = append(jsontext.AppendQuote(append(a.text, sep), name), ':')
}

func (a *objectArguments) value() any {
	if len(a.text) == 0 {
		return state.JSON("{}")
	}
	return state.JSON(append(a.text, '}'))
}

// parameters returns the parameters that a struct type stands for.
func parameters(in reflect.Type) ([]param, error) {
	plan, err := value.For(in)
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	if in.Kind() != reflect.Struct || plan.Describe() != "object" {
		return nil, fmt.Errorf("the arguments are a %s; they must be a struct or a map[string]any", in)
	}
	return members(in, nil), nil
}

// members returns the JSON members of a struct type that value.For has accepted,
// so that there is nothing in it without a name or with two.
func members(t reflect.Type, index []int) (params []param) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if inner := f.Type; f.Anonymous && name == "" {
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				params = append(params, members(inner, at)...)
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		if name == "" || strings.ContainsAny(name, "\\\"'`") {
			name = f.Name
		}
		plan, err := value.For(f.Type)
		if err != nil {
			continue
		}
		params = append(params, param{
			name:     name,
			kind:     plan.Describe(),
			required: !strings.Contains(options, "omit"),
			about:    f.Tag.Get("jsonschema"),
			index:    at,
			plan:     plan,
		})
	}
	return params
}
