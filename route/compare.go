package route

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/value"
)

var anyType = reflect.TypeFor[any]()

// operandLimits bound what a field is compared with.
var operandLimits = value.Limits{Bytes: 1 << 20, Depth: 64}

// comparison is a comparison with operands, ready to be made. It does not
// distinguish how the field is reached.
type comparison struct {
	op       string
	plan     *value.Plan // of the operands
	operands []reflect.Value
	pattern  *regexp.Regexp
}

// comparison compiles the comparison of a node with operands, which are
// converted to the type that they must have; a json.RawMessage is decoded. What
// is wrong is noted in the node.
func (n *node) comparison(operands []any) *comparison {
	c := &comparison{op: n.op}
	typ, err := operandType(n.op, n.typ)
	if err == nil {
		c.plan, err = value.For(typ)
	}
	if err != nil {
		n.fail(".op", fmt.Errorf("field %s: %w", quote(n.name), err))
		return c
	}
	if len(operands) == 0 {
		n.fail(".value", errors.New("want at least one value, got none"))
	}
	var text [][]byte
	for i, operand := range operands {
		at := ".value"
		if n.op == opIn {
			at = fmt.Sprintf(".value[%d]", i)
		}
		v, data, err := c.operand(operand)
		if err != nil {
			n.fail(n.locate(at, err))
			continue
		}
		c.operands = append(c.operands, v)
		text = append(text, data)
	}
	if len(c.operands) < len(operands) {
		return c
	}
	n.value = bytes.Join(text, []byte(","))
	if n.op == opIn {
		n.value = append(append([]byte("["), n.value...), ']')
	}
	if n.op == opMatch {
		c.pattern, err = regexp.Compile(c.operands[0].String())
		if err != nil {
			n.fail(".value", fmt.Errorf("bad pattern: %w", err))
		}
	}
	return c
}

// operandType returns the type of what a field of a type is compared with.
func operandType(op string, typ reflect.Type) (reflect.Type, error) {
	switch op {
	case opMatch:
		if typ != anyType && typ.Kind() != reflect.String {
			return nil, fmt.Errorf("%s is for strings", op)
		}
		return reflect.TypeFor[string](), nil
	case opContains:
		if typ == anyType {
			return typ, nil
		}
		if typ.Kind() != reflect.Slice || !typ.Elem().Comparable() {
			return nil, fmt.Errorf("%s is for lists of what can be compared", op)
		}
		return typ.Elem(), nil
	case opGt, opGte, opLt, opLte:
		if typ != anyType && !isOrdered(reflect.Zero(typ)) {
			return nil, fmt.Errorf("%s is for numbers and strings", op)
		}
	default:
		if !typ.Comparable() {
			return nil, fmt.Errorf("%s is not for lists and objects", op)
		}
	}
	return typ, nil
}

// operand returns an operand as a value of the plan, and as JSON.
func (c *comparison) operand(src any) (v reflect.Value, text []byte, err error) {
	if data, ok := src.(json.RawMessage); ok {
		v, _, err = c.plan.Decode(data, operandLimits)
	} else {
		v, _, err = c.plan.Convert(src, operandLimits)
	}
	if err == nil {
		text, err = c.plan.AppendJSON(nil, v)
	}
	if err == nil && c.ordering() && !isOrdered(inner(v)) {
		err = &fault.Error{Path: "$", Want: "number or string", Got: "something else"}
	}
	return v, text, err
}

func (c *comparison) ordering() bool {
	return c.op == opGt || c.op == opGte || c.op == opLt || c.op == opLte
}

// locate returns the mistake that an operand is, with the path inside it.
func (n *node) locate(at string, err error) (string, error) {
	var wrong *fault.Error
	if errors.As(err, &wrong) && len(wrong.Path) > 0 {
		return at + wrong.Path[1:], fmt.Errorf("field %s: want %s, got %s", quote(n.name), wrong.Want, wrong.Got)
	}
	return at, fmt.Errorf("field %s: %w", quote(n.name), err)
}

// holds reports whether the comparison holds for the value of a field.
func (c *comparison) holds(v any) bool {
	switch c.op {
	case opEq, opIn:
		return c.equal(v)
	case opNe:
		return !c.equal(v)
	case opMatch:
		rv := reflect.ValueOf(v)
		return rv.Kind() == reflect.String && c.pattern.MatchString(rv.String())
	case opContains:
		list := reflect.ValueOf(v)
		if list.Kind() != reflect.Slice {
			return false
		}
		for i := range list.Len() {
			if c.equal(list.Index(i).Interface()) {
				return true
			}
		}
		return false
	}
	order, ok := compareOrdered(reflect.ValueOf(v), inner(c.operands[0]))
	switch c.op {
	case opGt:
		return ok && order > 0
	case opGte:
		return ok && order >= 0
	case opLt:
		return ok && order < 0
	}
	return ok && order <= 0
}

// equal reports whether v is one of the operands.
func (c *comparison) equal(v any) bool {
	rv := reflect.ValueOf(v)
	if c.plan.Type() == anyType {
		rv = reflect.ValueOf(&v).Elem()
	}
	for _, operand := range c.operands {
		if c.plan.Equal(rv, operand) {
			return true
		}
	}
	return false
}

// inner returns what an interface holds.
func inner(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		return v.Elem()
	}
	return v
}

func isOrdered(v reflect.Value) bool {
	return v.IsValid() && (v.Kind() == reflect.String || v.CanInt() || v.CanUint() || v.CanFloat())
}

// compareOrdered compares two strings or two numbers, of whatever types, exactly.
func compareOrdered(a, b reflect.Value) (order int, ok bool) {
	switch {
	case !isOrdered(a) || !isOrdered(b):
		return 0, false
	case a.Kind() == reflect.String || b.Kind() == reflect.String:
		if a.Kind() != b.Kind() {
			return 0, false
		}
		return cmp.Compare(a.String(), b.String()), true
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int()), true
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), true
	case a.CanFloat() && b.CanFloat():
		return cmp.Compare(a.Float(), b.Float()), true
	}
	return number(a).Cmp(number(b)), true
}

// number returns a number without loss. A state holds no NaN.
func number(v reflect.Value) *big.Float {
	switch {
	case v.CanInt():
		return new(big.Float).SetInt64(v.Int())
	case v.CanUint():
		return new(big.Float).SetUint64(v.Uint())
	}
	return new(big.Float).SetFloat64(v.Float())
}
