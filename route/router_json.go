package route

import (
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

// MarshalJSON returns the router as JSON that [Parse] reads. A function is
// represented by its name.
func (r *Router) MarshalJSON() ([]byte, error) {
	if r == nil {
		r = &Router{}
	}
	return rulesJSON(r.rules), nil
}

func rulesJSON(rules []Rule) []byte {
	elements := make([][]byte, len(rules))
	for i, rule := range rules {
		object := jsontext.Object{}
		if rule.otherwise {
			object = object.WithString("otherwise", rule.agent)
		} else {
			object = object.With("when", rule.when.json()).WithString("agent", rule.agent)
		}
		elements[i] = object.JSON()
	}
	return jsontext.Object{}.With("rules", jsontext.Array(elements)).JSON()
}

func (n *node) json() []byte {
	object := jsontext.Object{}
	switch n.op {
	case opFunc:
		object = object.WithString(opFunc, n.name)
	case opNot:
		object = object.With(opNot, n.parts[0].json())
	case opAnd, opOr:
		parts := make([][]byte, len(n.parts))
		for i, part := range n.parts {
			parts[i] = part.json()
		}
		object = object.With(n.op, jsontext.Array(parts))
	default: // has has no operand
		object = object.WithString("field", n.name).WithString("op", n.op).With("value", n.operand)
	}
	return object.JSON()
}

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
// The rules may come from others: Parse reads at most 16 MiB, and the limits of
// [New] hold. They bound what the rules cost, in Parse and whenever a router is
// asked. What Parse cannot know is whether an agent may be chosen by them.
//
// The error is [ErrInvalidRules] and lists all mistakes, each with its path.
func Parse(schema *state.Schema, data []byte, funcs ...Predicate) (*Router, error) {
	if err := jsontext.Check(data, parseLimits); err != nil {
		return nil, invalidRules("%w", err)
	}
	p := &parser{empty: state.New(schema), funcs: map[string]*node{}}
	p.types = fieldTypes(p.empty)
	for i, f := range funcs {
		if f.node == nil || f.node.op != opFunc {
			return nil, invalidRules("function %d is not made with Func", i)
		}
		if p.funcs[f.node.name] != nil {
			return nil, invalidRules("function %s is given twice", fault.Quote(f.node.name))
		}
		p.funcs[f.node.name] = f.node
	}
	reader := jsontext.ReadObject("$", data)
	reader.Require("rules")
	var rules []Rule
	for _, element := range reader.Elements("rules") {
		rules = append(rules, p.parseRule(element))
	}
	reader.Unknown()
	router, err := New(rules...)
	if err = errors.Join(joinFaults(reader.Faults()), err); err != nil {
		return nil, err
	}
	return router, nil
}

// parser reads rules about the fields of a schema. It leaves faults in the
// rules and nodes, and New reports them.
type parser struct {
	empty *state.State
	types map[string]reflect.Type
	funcs map[string]*node
	cost  cost // of the predicates so far
}

func (p *parser) parseRule(data []byte) Rule {
	reader := jsontext.ReadObject("$", data)
	rule := Rule{}
	if reader.Err() == nil {
		if rule.otherwise = reader.Has("otherwise"); rule.otherwise {
			rule.agent, _ = readName(reader, "otherwise")
		} else {
			rule.agent, _ = readName(reader, "agent")
			rule.when = p.parsePredicate(reader.Value("when"))
		}
		reader.Unknown()
	}
	rule.faults = reader.Faults()
	return rule
}

func (p *parser) parsePredicate(data []byte) *node {
	reader := jsontext.ReadObject("$", data)
	n := &node{}
	if reader.Err() == nil {
		switch {
		case reader.Has(opAnd):
			n = p.parseCombination(opAnd, reader)
		case reader.Has(opOr):
			n = p.parseCombination(opOr, reader)
		case reader.Has(opNot):
			n = newCombination(opNot, []*node{p.parsePredicate(reader.Value(opNot))})
		case reader.Has(opFunc):
			n = p.findFunc(reader)
		default:
			n = p.parseQuestion(reader)
		}
		reader.Unknown()
	}
	n.faults = append(n.faults, reader.Faults()...)
	return n
}

func (p *parser) parseCombination(op string, reader *jsontext.Reader) *node {
	reader.Require(op)
	elements := reader.Elements(op)
	if elements == nil { // the reader has the fault
		return &node{op: op}
	}
	parts := make([]*node, len(elements))
	for i, element := range elements {
		parts[i] = p.parsePredicate(element)
	}
	return newCombination(op, parts)
}

// findFunc returns a copy of the node of the function that is named.
func (p *parser) findFunc(reader *jsontext.Reader) *node {
	n := node{op: opFunc}
	name, ok := readName(reader, opFunc)
	if fn := p.funcs[name]; ok && fn != nil {
		n = *fn
		n.faults = slices.Clip(n.faults)
	} else if ok {
		reader.Fault(opFunc, "", fmt.Sprintf("no function %s was given: there are %q",
			fault.Quote(name), slices.Sorted(maps.Keys(p.funcs))))
	}
	return &n
}

// parseQuestion reads a predicate about one field.
func (p *parser) parseQuestion(reader *jsontext.Reader) *node {
	n := &node{}
	var known bool
	if n.name, known = readName(reader, "field"); known {
		var err error
		if n.fieldType, err = p.fieldType(n.name); err != nil {
			n.faults = append(n.faults, &fault.Error{Path: "$.field", Got: stateText(err), Cause: err})
		}
	}
	operand := reader.Value("value")
	op, ok := readName(reader, "op")
	if ok && !slices.Contains(fieldOps, op) {
		reader.Fault("op", "", "unknown op "+fault.Quote(op)+": want one of "+strings.Join(fieldOps, ", "))
		ok = false
	}
	if !ok {
		return n
	}
	n.op = op
	switch {
	case op == opHas && operand != nil:
		reader.Fault("value", "", "has takes no value")
	case op == opHas:
		n.ask = n.isSet
	case operand == nil:
		reader.Fault("value", "a value", "nothing")
	default:
		p.parseOperands(n, reader)
	}
	return n
}

// parseOperands makes n a node that compares its field with the operands.
func (p *parser) parseOperands(n *node, reader *jsontext.Reader) {
	var operands []any
	if n.op == opIn {
		for _, element := range reader.Elements("value") {
			operands = append(operands, json.RawMessage(element))
		}
	} else {
		operands = []any{json.RawMessage(reader.Value("value"))}
	}
	if reader.Err() != nil || n.fieldType == nil {
		return // the comparison would only repeat the fault
	}
	if n.op == opIn {
		n.cost.values = len(operands)
	} else if n.op == opMatch && jsontext.Kind(reader.Value("value")) == "string" {
		n.cost.patterns = len(reader.String("value"))
	}
	if p.cost.add(n) != nil {
		return // New has the fault: what exceeds a limit is not even read
	}
	c := n.compile(operands)
	n.ask = func(st *state.State) (bool, error) {
		v, err := n.fieldValue(st)
		return err == nil && c.holds(v), err
	}
}

// readName returns a member that has to be a name. If it is not, ok is false
// and the reader has the fault.
func readName(reader *jsontext.Reader, member string) (name string, ok bool) {
	before := len(reader.Faults())
	name = reader.String(member)
	if len(reader.Faults()) > before {
		return "", false
	}
	if e := fault.CheckName("$", name); e != nil {
		reader.Fault(member, e.Want, e.Got)
		return "", false
	}
	return name, true
}

// fieldType returns the type of a field. An undeclared field has any type.
func (p *parser) fieldType(name string) (reflect.Type, error) {
	if typ, ok := p.types[name]; ok {
		return typ, nil
	}
	// The state decides which undeclared names there are: those it can store.
	if err := p.empty.KV().Set(name, nil); err != nil {
		return nil, err
	}
	return anyType, nil
}

// isSet asks whether the node's field, found by name, is set.
func (n *node) isSet(st *state.State) (bool, error) {
	if st.KV().Has(n.name) {
		return true, nil
	}
	_, err := state.GetAs[any](st, n.name)
	return false, err
}

// fieldValue returns the value of the node's field, found by name. It returns a
// TypeError if the field has another type than in the schema given to Parse.
func (n *node) fieldValue(st *state.State) (any, error) {
	v, err := state.GetAs[any](st, n.name)
	if err == nil && n.fieldType.Kind() == reflect.Pointer {
		v = pointTo(v, n.fieldType)
	}
	if err == nil && n.fieldType != anyType && reflect.TypeOf(v) != n.fieldType {
		return nil, &state.TypeError{
			Field: n.name, Path: "type", Want: fmt.Sprintf("%T", v), Got: n.fieldType.String(),
		}
	}
	return v, err
}

// pointTo returns the value of a field with a pointer type, which by name is
// nil or what the pointer points to, as that pointer. It returns a value that
// cannot be one as it is.
func pointTo(v any, typ reflect.Type) any {
	if v == nil {
		return reflect.Zero(typ).Interface()
	}
	if typ.Elem().Kind() == reflect.Pointer {
		v = pointTo(v, typ.Elem())
	}
	if reflect.TypeOf(v) != typ.Elem() {
		return v
	}
	p := reflect.New(typ.Elem())
	p.Elem().Set(reflect.ValueOf(v))
	return p.Convert(typ).Interface()
}
