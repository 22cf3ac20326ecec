package tool

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// param is a parameter of a function: a member of its argument struct, or a
// property of the schema given to [Raw].
type param struct {
	name     string
	kind     string // its type in the words of value.Plan.Describe
	required bool

	// Of a struct.
	member jsonstruct.Member
	plan   *value.Plan // of the member's type

	// Of a raw schema: the JSON types that it allows. Nothing allows all.
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

// checkType returns an error if the parameter of a raw schema does not allow the
// type of a JSON value.
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
