package tool

import (
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// argumentLimits bound what a model may send. They are those of a message.
var argumentLimits = jsontext.Limits{Bytes: 64 << 20, Depth: 64}

// arguments collect the arguments of one call. In both methods p is nil if the
// tool is open and does not declare the parameter.
type arguments interface {
	// addArgument takes an argument of the model.
	addArgument(p *param, m jsontext.Member) error
	// addField takes the value of a field that is injected.
	addField(p *param, name string, v any) error
	// input returns what the function is given.
	input() any
}

// structArguments fill a struct.
type structArguments struct{ in reflect.Value }

func (a structArguments) addArgument(p *param, m jsontext.Member) error {
	return p.plan.DecodeInto(p.member.MakeField(a.in), m.Value)
}

func (a structArguments) addField(p *param, _ string, v any) error {
	field := p.member.MakeField(a.in)
	if v != nil && reflect.TypeOf(v) == field.Type() {
		field.Set(reflect.ValueOf(v)) // a read of a state returns a copy
		return nil
	}
	converted, _, err := p.plan.Convert(v, value.Limits{})
	if err == nil {
		field.Set(converted)
	}
	return err
}

func (a structArguments) input() any { return a.in.Addr().Interface() }

// mapArguments fill a map.
type mapArguments map[string]any

var anyPlan, _ = value.For(reflect.TypeFor[any]())

func (a mapArguments) addArgument(_ *param, m jsontext.Member) error {
	v, _, err := anyPlan.Decode(m.Value, value.Limits{})
	if err == nil {
		a[m.Name] = v.Interface()
	}
	return err
}

func (a mapArguments) addField(_ *param, name string, v any) error {
	a[name] = v
	return nil
}

func (a mapArguments) input() any { return map[string]any(a) }

// jsonArguments stay JSON, for the function of a raw tool.
type jsonArguments struct{ members jsontext.Object }

func (a *jsonArguments) addArgument(p *param, m jsontext.Member) error {
	return a.add(p, m.Name, jsontext.AppendCompact(nil, m.Value))
}

func (a *jsonArguments) addField(p *param, name string, v any) error {
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
	return a.add(p, name, text)
}

func (a *jsonArguments) add(p *param, name string, text []byte) error {
	if p != nil {
		if err := p.checkType(text); err != nil {
			return err
		}
	}
	a.members = append(a.members, jsontext.Member{Name: name, Value: text})
	return nil
}

func (a *jsonArguments) input() any { return state.JSON(a.members.JSON()) }
