package tool

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// argumentLimits bound what a model may send. They are those of a message.
var argumentLimits = jsontext.Limits{Bytes: 64 << 20, Depth: 64}

// param is a parameter of a function: a member of its argument struct, or a
// property of the schema given to [Raw].
type param struct {
	name     string
	kind     string // its type, as value.Plan.Describe names it
	required bool

	// Set for a member of a struct.
	member jsonstruct.Member
	plan   *value.Plan // of the member's type

	// Set for a raw schema: the JSON types that it allows. An empty list allows
	// all.
	types []string
}

// structParams returns the parameters that an argument struct stands for.
func structParams(in reflect.Type) ([]param, error) {
	plan, err := value.For(in)
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	if in.Kind() != reflect.Struct || plan.Describe() != "object" {
		return nil, fmt.Errorf("the arguments are a %s; they must be a struct or a map[string]any", in)
	}
	members, _ := jsonstruct.Members(in) // lossless: value.For accepts the type
	params := make([]param, 0, len(members))
	for _, m := range members {
		plan, err := value.For(m.Type)
		if err != nil {
			return nil, fmt.Errorf("the arguments: %w", err)
		}
		params = append(params, param{
			name: m.Name, kind: plan.Describe(), required: m.Required(), member: m, plan: plan,
		})
	}
	return params, nil
}

// checkType returns an error if the parameter of a raw schema does not allow
// the type of a JSON value.
func (p *param) checkType(text []byte) error {
	kind := jsontext.Kind(text)
	if kind == "bool" {
		kind = "boolean"
	}
	if len(p.types) == 0 || slices.Contains(p.types, kind) {
		return nil
	}
	if kind == "number" && slices.Contains(p.types, "integer") {
		if f, err := strconv.ParseFloat(string(text), 64); err == nil && f == math.Trunc(f) {
			return nil
		}
	}
	return &fault.Error{Path: "$", Want: strings.Join(p.types, " or "), Got: kind}
}

// accepts reports whether some value of a Go type converts to the parameter.
func (p *param) accepts(typ reflect.Type) bool {
	return p.plan != nil && p.plan.Type() == typ || kindFits(describeType(typ), p.kind)
}

// describeType returns the kind of a type, for people and models.
func describeType(t reflect.Type) string {
	plan, err := value.For(t)
	if err != nil {
		return t.String()
	}
	return plan.Describe()
}

// kindFits reports whether some value of one kind converts to another kind.
func kindFits(from, to string) bool {
	if from == "any" || to == "any" || from == to {
		return true
	}
	fromElement, fromList := strings.CutPrefix(from, "list of ")
	toElement, toList := strings.CutPrefix(to, "list of ")
	switch {
	case to == "array": // of a raw schema
		return fromList
	case fromList && toList:
		return kindFits(fromElement, toElement)
	case toList:
		return kindFits(from, toElement) // one element becomes a list of one
	case fromList:
		return false
	}
	isNumber := func(kind string) bool { return kind == "integer" || kind == "number" }
	isText := func(kind string) bool { return kind == "string" || kind == "date" }
	return isNumber(from) && isNumber(to) || isText(from) && isText(to)
}

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
