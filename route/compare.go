package route

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

var anyType = reflect.TypeFor[any]()

// operandLimits bound what a field is compared with.
var operandLimits = value.Limits{Bytes: maxJSON, Depth: 64}

// orders says which order of a field and its operand an op asks for.
var orders = map[string]func(order int) bool{
	"gt":  func(order int) bool { return order > 0 },
	"gte": func(order int) bool { return order >= 0 },
	"lt":  func(order int) bool { return order < 0 },
	"lte": func(order int) bool { return order <= 0 },
}

// compile makes n a question that compares its field with operands, which are
// converted to the type that they must have. A json.RawMessage is decoded.
func (n *node) compile(operands []any, has func(*state.State) bool, get func(*state.State) (any, error)) {
	var values []reflect.Value
	var texts [][]byte
	if n.Op != "has" {
		if values, texts = n.convertAll(operands); n.err != nil {
			return
		}
	}
	contains := func(got reflect.Value) bool {
		return slices.ContainsFunc(values, func(v reflect.Value) bool { return equal(got, v) })
	}
	holds := func(got reflect.Value) bool { // the ops that order
		order, ok := compare(got, values[0])
		return ok && orders[n.Op](order)
	}
	switch n.Op {
	case "has":
		holds = func(reflect.Value) bool { return true }
	case "eq", "in":
		holds = contains
	case "ne":
		holds = func(got reflect.Value) bool { return !contains(got) }
	case "match":
		holds = n.match(values[0].String())
	case "contains":
		holds = func(got reflect.Value) bool {
			for i := 0; got.Kind() == reflect.Slice && i < got.Len(); i++ {
				if contains(indirect(got.Index(i))) {
					return true
				}
			}
			return false
		}
	}
	switch n.Op {
	case "has":
	case "in":
		n.Value = jsontext.Array(texts)
	default:
		n.Value = texts[0]
	}
	n.ask = func(st *state.State) (bool, error) {
		if n.Op == "has" && has(st) {
			return true, nil
		}
		v, err := get(st)
		return err == nil && holds(indirect(reflect.ValueOf(v))), err
	}
}

// convertAll returns operands as values of the type that they must have, and as
// JSON. It notes what is wrong with them.
func (n *node) convertAll(operands []any) (values []reflect.Value, texts [][]byte) {
	typ, isAny := n.fieldType, n.fieldType == anyType
	isText, isList := isAny || typ.Kind() == reflect.String, typ.Kind() == reflect.Slice
	switch {
	case n.Op == "match" && !isText:
		n.fail("$.op", errors.New("match is for strings"))
	case n.Op == "contains" && !isAny && !isList:
		n.fail("$.op", errors.New("contains is for lists"))
	case len(operands) == 0:
		n.fail("$.value", errors.New("want at least one value, got none"))
	case n.Op == "match":
		typ = reflect.TypeFor[string]()
	case n.Op == "contains" && isList:
		typ = typ.Elem()
	}
	plan, err := value.For(typ)
	if err != nil {
		n.fail("$.op", err)
	}
	for i := 0; i < len(operands) && n.err == nil; i++ {
		v, text, err := convert(plan, operands[i])
		if orders[n.Op] != nil && err == nil && !isOrdered(v) {
			err = &fault.Error{Path: "$", Want: "number or string", Got: jsontext.Kind(text)}
		}
		switch {
		case err != nil && n.Op == "in":
			n.fail(jsontext.Index("$.value", i), err)
		case err != nil:
			n.fail("$.value", err)
		}
		values, texts = append(values, v), append(texts, text)
	}
	return values, texts
}

// convert returns an operand as a value of the plan's type, and as JSON.
func convert(plan *value.Plan, operand any) (v reflect.Value, text []byte, err error) {
	if data, ok := operand.(json.RawMessage); ok {
		v, _, err = plan.Decode(data, operandLimits)
	} else {
		v, _, err = plan.Convert(operand, operandLimits)
	}
	if err == nil {
		text, err = plan.AppendJSON(nil, v)
	}
	return indirect(v), text, err
}

// fail notes what is wrong with what the field is compared with.
func (n *node) fail(path string, err error) {
	problem := err.Error()
	if e := fault.As(err); e != nil {
		path, problem = path+strings.TrimPrefix(e.Path, "$"), e.Problem()
	}
	n.err = &fault.Error{Path: path, Got: "field " + fault.Quote(n.Field) + ": " + problem, Cause: err}
}

// match compiles a pattern, if it is not too long.
func (n *node) match(pattern string) func(reflect.Value) bool {
	if len(pattern) > maxPattern {
		n.fail("$.value", fmt.Errorf("a pattern has at most %d bytes, got %d", maxPattern, len(pattern)))
		return nil
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		n.fail("$.value", fmt.Errorf("bad pattern: %w", err))
		return nil
	}
	parsed, _ := syntax.Parse(pattern, syntax.Perl) // as regexp does
	program, _ := syntax.Compile(parsed.Simplify())
	n.program = len(program.Inst)
	return func(got reflect.Value) bool {
		return got.Kind() == reflect.String && compiled.MatchString(fault.Prefix(got.String(), maxText))
	}
}

// indirect returns the value behind pointers and interfaces, invalid if there is
// none.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// equal reports whether two values are the same: numbers of any types, such as
// the integer 5 and the float 5.0, and other values of one type.
func equal(a, b reflect.Value) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid() && !a.IsValid()
	}
	plan, err := value.For(a.Type())
	return err == nil && plan.Equal(a, b)
}

func isOrdered(v reflect.Value) bool {
	return v.IsValid() && (v.Kind() == reflect.String || v.CanInt() || v.CanUint() || v.CanFloat())
}

// compare compares two strings, or two numbers of any types without loss. Other
// pairs have no order.
func compare(a, b reflect.Value) (order int, ok bool) {
	switch {
	case !isOrdered(a) || !isOrdered(b) || (a.Kind() == reflect.String) != (b.Kind() == reflect.String):
		return 0, false
	case a.Kind() == reflect.String:
		return cmp.Compare(a.String(), b.String()), true
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int()), true
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), true
	case a.CanFloat() && b.CanFloat():
		return cmp.Compare(a.Float(), b.Float()), true
	}
	return bigFloat(a).Cmp(bigFloat(b)), true
}

// bigFloat returns a number without loss. NaN cannot occur: a state holds none.
func bigFloat(v reflect.Value) *big.Float {
	switch {
	case v.CanInt():
		return new(big.Float).SetInt64(v.Int())
	case v.CanUint():
		return new(big.Float).SetUint64(v.Uint())
	}
	return new(big.Float).SetFloat64(v.Float())
}
