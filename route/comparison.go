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
	"strings"
	"sync"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

var anyType = reflect.TypeFor[any]()

// operandLimits bound what a field is compared with.
var operandLimits = value.Limits{Bytes: 1 << 20, Depth: 64}

// comparison compares values of a field with operands. It does not depend on
// how the field is read.
type comparison struct {
	op       string
	plan     *value.Plan // of the operands
	operands []reflect.Value
	text     []byte                // the operands as JSON: one value, or the list of In
	pattern  func() *regexp.Regexp // of Match
	cost     cost
}

// newComparison compiles a comparison of a field of a type. The operands are
// converted to the type that they must have; a json.RawMessage is decoded. The
// paths of the faults begin at the predicate.
func newComparison(op, field string, typ reflect.Type, operands []any) (*comparison, []*fault.Error) {
	var faults []*fault.Error
	addFault := func(path, problem string, cause error) {
		faults = append(faults, &fault.Error{
			Path: path, Got: "field " + fault.Quote(field) + ": " + problem, Cause: cause,
		})
	}
	c := &comparison{op: op}
	operandType, err := operandTypeOf(op, typ)
	if err == nil {
		c.plan, err = value.For(operandType)
	}
	if err != nil {
		addFault("$.op", err.Error(), err)
		return c, faults
	}
	if len(operands) == 0 {
		addFault("$.value", "want at least one value, got none", nil)
	}
	var texts [][]byte
	for i, operand := range operands {
		v, text, err := c.convert(operand)
		if err == nil {
			c.operands, texts = append(c.operands, v), append(texts, text)
			continue
		}
		path := "$.value"
		if op == opIn {
			path = jsontext.Index(path, i)
		}
		problem := err.Error()
		if e := fault.As(err); e != nil {
			path, problem = path+strings.TrimPrefix(e.Path, "$"), e.Problem()
		}
		addFault(path, problem, err)
	}
	if len(faults) > 0 {
		return c, faults
	}
	if c.text = texts[0]; op == opIn {
		c.text = jsontext.Array(texts)
	}
	switch op {
	case opIn:
		c.cost.values = len(c.operands)
	case opMatch:
		if err = c.readPattern(c.operands[0].String()); err != nil {
			addFault("$.value", "bad pattern: "+err.Error(), err)
		}
	}
	return c, faults
}

// readPattern checks a pattern and what it costs. It is compiled when it is
// first asked, because only then the limits of its router are kept.
func (c *comparison) readPattern(pattern string) error {
	if c.cost.patterns = len(pattern); len(pattern) > maxPatterns {
		return nil // New refuses it
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	c.cost.program = programSize(parsed)
	c.pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return nil
}

// operandTypeOf returns the type of the operands for a field of a type.
func operandTypeOf(op string, typ reflect.Type) (reflect.Type, error) {
	switch op {
	case opMatch:
		if typ != anyType && typ.Kind() != reflect.String {
			return nil, errors.New("match is for strings")
		}
		return reflect.TypeFor[string](), nil
	case opContains:
		if typ == anyType {
			return typ, nil
		}
		if typ.Kind() != reflect.Slice || !typ.Elem().Comparable() {
			return nil, errors.New("contains is for lists of comparable elements")
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

// convert returns an operand as a value of the plan's type, and as JSON.
func (c *comparison) convert(operand any) (v reflect.Value, text []byte, err error) {
	if data, ok := operand.(json.RawMessage); ok {
		v, _, err = c.plan.Decode(data, operandLimits)
	} else {
		v, _, err = c.plan.Convert(operand, operandLimits)
	}
	if err != nil {
		return v, nil, err
	}
	if text, err = c.plan.AppendJSON(nil, v); err != nil {
		return v, nil, err
	}
	switch c.op {
	case opGt, opGte, opLt, opLte:
		if !isOrdered(elem(v)) {
			err = &fault.Error{Path: "$", Want: "number or string", Got: jsontext.Kind(text)}
		}
	}
	return v, text, err
}

// holds reports whether the comparison holds for a value of the field.
func (c *comparison) holds(v any) bool {
	switch c.op {
	case opEq, opIn:
		return c.equalsAny(v)
	case opNe:
		return !c.equalsAny(v)
	case opMatch:
		rv := reflect.ValueOf(v)
		return rv.Kind() == reflect.String && c.pattern().MatchString(clipText(rv.String()))
	case opContains:
		list := reflect.ValueOf(v)
		if list.Kind() != reflect.Slice {
			return false
		}
		for i := range list.Len() {
			if c.equalsAny(list.Index(i).Interface()) {
				return true
			}
		}
		return false
	}
	order, ok := compareOrdered(reflect.ValueOf(v), elem(c.operands[0]))
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

// equalsAny reports whether v equals one of the operands.
func (c *comparison) equalsAny(v any) bool {
	rv := reflect.ValueOf(v)
	open := c.plan.Type() == anyType
	if open {
		rv = reflect.ValueOf(&v).Elem()
	}
	for _, operand := range c.operands {
		if c.plan.Equal(rv, operand) || open && sameNumber(rv.Elem(), operand.Elem()) {
			return true
		}
	}
	return false
}

// sameNumber reports whether a and b are the same number in two kinds: the
// integer 5 and the float 5.0.
func sameNumber(a, b reflect.Value) bool {
	order, ok := compareOrdered(a, b)
	return ok && order == 0
}

// elem returns the value in an interface, and any other value as it is.
func elem(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		return v.Elem()
	}
	return v
}

func isOrdered(v reflect.Value) bool {
	return v.IsValid() && (v.Kind() == reflect.String || v.CanInt() || v.CanUint() || v.CanFloat())
}

// compareOrdered compares two strings, or two numbers of any types without
// loss. Other pairs have no order.
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
