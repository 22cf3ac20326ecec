package route

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// ops are the predicates about one field, in the order of error texts.
var ops = []string{"has", "eq", "ne", "in", "gt", "gte", "lt", "lte", "match", "contains"}

// UnmarshalJSON always fails. Use [Parse], which is given the fields.
func (r *Router) UnmarshalJSON([]byte) error {
	return invalidRules("a Router is read with Parse, which needs the schema")
}

// Parse returns the router that data describes, for states with this schema:
//
//	{"rules": [
//	  {"when": {"field": "order_id", "op": "has"}, "agent": "billing"},
//	  {"when": {"and": [
//	    {"field": "intent", "op": "eq", "value": "refund"},
//	    {"not": {"field": "amount", "op": "lt", "value": 100}}
//	  ]}, "agent": "manager"},
//	  {"when": {"func": "weekend"}, "agent": "answering_machine"},
//	  {"otherwise": "general"}
//	]}
//
// The ops are has, eq, ne, in, gt, gte, lt, lte, match and contains; "and",
// "or" and "not" combine predicates. A value is converted to the type of the
// field if the conversion is lossless. The value of in is a list. If schema has
// [state.AllowUndeclared] or is nil, any name is a field of any type. funcs are
// the functions that data may name; [Func] makes them.
//
// The rules may come from others: the limits of [New] hold. They bound what the
// rules cost, in Parse and whenever a router is asked. What Parse cannot know is
// whether an agent may be chosen by them.
//
// The error is [ErrInvalidRules]. It says what is not the JSON of rules, or lists
// the mistakes in the rules, each with its path.
func Parse(schema *state.Schema, data []byte, funcs ...Predicate) (*Router, error) {
	p := &parser{empty: state.New(schema), funcs: map[string]*node{}}
	p.types = fieldTypes(p.empty)
	for i, f := range funcs {
		if f.node == nil || f.node.Func == "" {
			return nil, invalidRules("function %d is not made with Func", i)
		}
		if p.funcs[f.node.Func] != nil {
			return nil, invalidRules("function %s is given twice", fault.Quote(f.node.Func))
		}
		p.funcs[f.node.Func] = f.node
	}
	// Rules of maxJSON may be escaped or indented, and their operands nested.
	if err := jsontext.Check(data, jsontext.Limits{Depth: 256, Bytes: 8 * maxJSON}); err != nil {
		return nil, invalidRules("%w", err)
	}
	var in routerForm
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&in)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return nil, invalidRules("$.%s: no rules have %s there", mismatch.Field, mismatch.Value)
	case err != nil:
		return nil, invalidRules("%s", strings.TrimPrefix(err.Error(), "json: "))
	case in.Rules == nil:
		return nil, invalidRules("$.rules: want a list, got nothing")
	}
	rules := make([]Rule, len(in.Rules))
	for i, rule := range in.Rules {
		rule.visit("", func(_ string, _ int, n *node) { p.complete(n) })
		rules[i] = Rule{rule}
	}
	return New(rules...)
}

// parser completes nodes that were read from JSON.
type parser struct {
	empty   *state.State
	types   map[string]reflect.Type
	funcs   map[string]*node
	program int // instructions of the patterns so far
}

// complete lets a node answer, or notes what is wrong with it.
func (p *parser) complete(n *node) {
	forms := 0
	for _, has := range []bool{n.And != nil, n.Or != nil, n.Not != nil, n.Func != "", n.Field != ""} {
		if has {
			forms++
		}
	}
	for _, parts := range [][]*node{n.And, n.Or} {
		for i := range parts {
			if parts[i] == nil { // null
				parts[i] = &node{}
			}
		}
	}
	switch {
	case forms != 1 || n.Field == "" && (n.Op != "" || n.Value != nil):
		n.err = mistakef("$", "want one of and, or, not, func, or field with op and value")
	case n.Field != "":
		p.completeQuestion(n)
	case n.Func == "":
		checkParts(n)
	case p.funcs[n.Func] == nil:
		n.err = mistakef("$.func", "no function %s was given: there are %q", fault.Quote(n.Func),
			slices.Sorted(maps.Keys(p.funcs)))
	default:
		*n = *p.funcs[n.Func]
	}
}

// completeQuestion lets a node ask about its field, which it finds by name.
func (p *parser) completeQuestion(n *node) {
	operands := []any{n.Value}
	var list []json.RawMessage
	switch err := p.setFieldType(n); {
	case err != nil:
		n.err = &fault.Error{Path: "$.field", Got: stateText(err), Cause: err}
	case !slices.Contains(ops, n.Op):
		n.err = mistakef("$.op", "unknown op %s: want one of %s", fault.Quote(n.Op), strings.Join(ops, ", "))
	case n.Op == "has" && n.Value != nil:
		n.err = mistakef("$.value", "has takes no value")
	case n.Op != "has" && n.Value == nil:
		n.err = mistakef("$.value", "want a value, got nothing")
	case n.Op == "in" && json.Unmarshal(n.Value, &list) != nil:
		n.err = mistakef("$.value", "want array, got %s", jsontext.Kind(n.Value))
	case n.Op == "in":
		operands = nil
		for _, element := range list {
			operands = append(operands, element)
		}
	}
	if n.err == nil && p.program <= maxProgram { // else New refuses the patterns
		n.compile(operands, func(st *state.State) bool { return st.KV().Has(n.Field) }, n.getByName)
		p.program += n.program
	}
}

// setFieldType sets the type of the field. An undeclared one has any type.
func (p *parser) setFieldType(n *node) (err error) {
	var ok bool
	if n.fieldType, ok = p.types[n.Field]; !ok {
		// The state decides which undeclared names there are: those it can store.
		n.fieldType, err = anyType, p.empty.KV().Set(n.Field, nil)
	}
	return err
}

// getByName returns the value of the field, found by name. It returns a
// TypeError if the field has another type than in the schema given to Parse.
func (n *node) getByName(st *state.State) (any, error) {
	v, err := state.GetAs[any](st, n.Field)
	want := n.fieldType
	for want.Kind() == reflect.Pointer { // by name, a field has what it points to
		want = want.Elem()
	}
	isNil := v == nil && want != n.fieldType
	if err == nil && n.fieldType != anyType && !isNil && reflect.TypeOf(v) != want {
		return nil, &state.TypeError{Field: n.Field, Path: "type", Want: fmt.Sprintf("%T", v), Got: n.fieldType.String()}
	}
	return v, err
}

// fieldTypes returns the types of the fields that a state's schema declares.
func fieldTypes(st *state.State) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range st.Fields() {
		types[f.Name] = f.GoType
	}
	return types
}
