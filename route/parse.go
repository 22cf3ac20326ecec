package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/exp/maps"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// fieldOps are the predicates about one field, as errors list them.
var fieldOps = []string{opHas, opEq, opNe, opIn, opGt, opGte, opLt, opLte, opMatch, opContains}

// MarshalJSON returns the router as JSON that [Parse] reads. Of functions it
// holds the names.
func (r *Router) MarshalJSON() ([]byte, error) {
	dst := []byte(`{"rules":[`)
	if r == nil {
		r = &Router{}
	}
	for i, rule := range r.rules {
		if i > 0 {
			dst = append(dst, ',')
		}
		if rule.when == nil {
			dst = append(dst, `{"otherwise":`...)
		} else {
			dst = append(dst, `{"when":`...)
			dst = rule.when.appendJSON(dst)
			dst = append(dst, `,"agent":`...)
		}
		dst = jsontext.AppendQuote(dst, rule.agent)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...), nil
}

func (n *node) appendJSON(dst []byte) []byte {
	switch n.op {
	case opFunc:
		dst = append(dst, `{"func":`...)
		dst = jsontext.AppendQuote(dst, n.name)
	case opNot:
		dst = append(dst, `{"not":`...)
		dst = n.of[0].appendJSON(dst)
	case opAnd, opOr:
		dst = append(dst, `{"`+n.op+`":[`...)
		for i, part := range n.of {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = part.appendJSON(dst)
		}
		dst = append(dst, ']')
	default:
		dst = append(dst, `{"field":`...)
		dst = jsontext.AppendQuote(dst, n.name)
		dst = append(dst, `,"op":"`+n.op+`"`...)
		if n.op != opHas {
			dst = append(dst, `,"value":`...)
			dst = append(dst, n.value...)
		}
	}
	return append(dst, '}')
}

// UnmarshalJSON always fails: a Router is read with [Parse], which knows the
// fields.
func (r *Router) UnmarshalJSON([]byte) error {
	return errors.New("route: a Router is read with Parse, which needs the schema")
}

// Parse returns the router that is given as JSON, for states with this schema:
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
// The ops are has, eq, ne, in, gt, gte, lt, lte, match and contains; and, or and
// not combine. Values are converted to the type of the field if nothing is lost;
// in has a list of them. In a schema with [state.AllowUndeclared], and for a nil
// schema, any name is a field of any type. Functions are named after those
// given, which are made with [Func].
//
// All mistakes are reported at once, each with its path.
func Parse(schema *state.Schema, data []byte, funcs ...Predicate) (*Router, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: 256, Bytes: 16 << 20}); err != nil {
		return nil, fmt.Errorf("route: %w", err)
	}
	p := &parser{st: state.New(schema), funcs: map[string]*node{}}
	p.types = fieldTypes(p.st)
	for i, f := range funcs {
		if f.node == nil || f.node.op != opFunc {
			return nil, fmt.Errorf("route: function %d is not made with Func", i)
		}
		if p.funcs[f.node.name] != nil {
			return nil, fmt.Errorf("route: function %s is given twice", quote(f.node.name))
		}
		p.funcs[f.node.name] = f.node
	}
	var errs []error
	top, wrong := object(data, "rules")
	for _, m := range wrong {
		errs = append(errs, &pathError{"$" + m.at, m.err})
	}
	var rules []Rule
	if top != nil {
		elements, err := list(top["rules"])
		if err != nil {
			errs = append(errs, &pathError{"$.rules", err})
		}
		for _, e := range elements {
			rules = append(rules, p.rule(e))
		}
	}
	r, err := New(rules...)
	if err != nil || len(errs) > 0 {
		return nil, errors.Join(append(errs, err)...)
	}
	return r, nil
}

// parser reads rules about the fields of a schema. What is wrong is noted in
// the rules and predicates, for New to report.
type parser struct {
	st    *state.State // empty
	types map[string]reflect.Type
	funcs map[string]*node
}

func (p *parser) rule(data []byte) Rule {
	shape := []string{"when", "agent"}
	if has(data, "otherwise") {
		shape = []string{"otherwise"}
	}
	ms, wrong := object(data, shape...)
	if ms == nil {
		return Rule{made: true, wrong: wrong}
	}
	r := Rule{made: true, wrong: wrong}
	last := shape[len(shape)-1]
	agent, err := text(ms[last])
	if err == nil {
		err = checkName(agent)
	}
	if err != nil {
		r.wrong = append(r.wrong, mistake{"." + last, err})
	}
	r.agent = agent
	if last == "agent" {
		r.when = p.predicate(ms["when"])
	}
	return r
}

func (p *parser) predicate(data []byte) *node {
	for _, op := range []string{opAnd, opOr, opNot, opFunc} {
		if has(data, op) {
			return p.combination(op, data)
		}
	}
	n := &node{}
	ms, wrong := object(data, "field", "op", "value")
	n.wrong = wrong
	if ms == nil {
		return n
	}
	name, err := text(ms["field"])
	if err == nil {
		n.typ, err = p.field(name)
	}
	if err != nil {
		n.fail(".field", err)
	}
	n.name = name
	op, err := text(ms["op"])
	if err == nil && !slices.Contains(fieldOps, op) {
		err = fmt.Errorf("unknown op %s: want one of %s", quote(op), strings.Join(fieldOps, ", "))
	}
	if err != nil {
		n.fail(".op", err)
		return n
	}
	n.op = op
	operand, given := ms["value"]
	if op == opHas {
		if given {
			n.fail(".value", errors.New("has takes no value"))
		}
		n.ask = n.isSet
		return n
	}
	if !given {
		n.fail(".value", errors.New("want a value, got nothing"))
		return n
	}
	operands := [][]byte{operand}
	if op == opIn {
		if operands, err = list(operand); err != nil {
			n.fail(".value", err)
			return n
		}
	}
	if n.typ != nil {
		p.compare(n, operands)
	}
	return n
}

// combination reads a predicate that is not about one field.
func (p *parser) combination(op string, data []byte) *node {
	n := &node{op: op}
	ms, wrong := object(data, op)
	n.wrong = wrong
	switch op {
	case opFunc:
		name, err := text(ms[op])
		if fn := p.funcs[name]; fn != nil && err == nil && len(wrong) == 0 {
			return fn
		}
		if err == nil && p.funcs[name] == nil {
			known := maps.Keys(p.funcs)
			slices.Sort(known)
			err = fmt.Errorf("no function %s was given: there are %q", quote(name), known)
		}
		if err != nil {
			n.fail("."+op, err)
		}
	case opNot:
		n.of = []*node{p.predicate(ms[op])}
	default:
		elements, err := list(ms[op])
		if err == nil && len(elements) == 0 {
			err = errors.New("want at least one predicate, got none")
		}
		if err != nil {
			n.fail("."+op, err)
		}
		for _, e := range elements {
			n.of = append(n.of, p.predicate(e))
		}
	}
	return n
}

// field returns the type of a field, which is any type if it is undeclared.
func (p *parser) field(name string) (reflect.Type, error) {
	if typ, ok := p.types[name]; ok {
		return typ, nil
	}
	// A name that can be written can be asked for.
	if err := p.st.KV().Set(name, nil); err != nil {
		return nil, err
	}
	return anyType, nil
}

// compare makes a node one that compares its field, by name, with operands.
func (p *parser) compare(n *node, operands [][]byte) {
	values := make([]any, len(operands))
	for i, o := range operands {
		values[i] = json.RawMessage(o)
	}
	c := n.comparison(values)
	n.ask = func(st *state.State) (bool, error) {
		v, err := n.get(st)
		return err == nil && c.holds(v), err
	}
}

// isSet asks whether a field is set, by name.
func (n *node) isSet(st *state.State) (bool, error) {
	if st.KV().Has(n.name) {
		return true, nil
	}
	_, err := state.Get[any](st, n.name)
	return false, err
}

// get returns the value of a field by name. It is a TypeError if the field of
// this state has another type than that of the schema that was parsed for.
func (n *node) get(st *state.State) (any, error) {
	v, err := state.Get[any](st, n.name)
	if err == nil && n.typ != anyType && reflect.TypeOf(v) != n.typ {
		return nil, &state.TypeError{Field: n.name, Path: "type", Want: fmt.Sprintf("%T", v), Got: n.typ.String()}
	}
	return v, err
}

// has reports whether a text is an object with a member of that name.
func has(data []byte, name string) bool {
	if jsontext.Kind(data) != "object" {
		return false
	}
	ms, err := jsontext.Members(data)
	return err == nil && slices.ContainsFunc(ms, func(m jsontext.Member) bool { return m.Name == name })
}

// object returns the members of an object, and what is wrong: it is nil if the
// text is no object, and other members than the known ones are left out.
func object(data []byte, known ...string) (map[string][]byte, []mistake) {
	if kind := jsontext.Kind(data); kind != "object" {
		return nil, []mistake{{"", fmt.Errorf("want object, got %s", kind)}}
	}
	ms, err := jsontext.Members(data)
	if err != nil {
		return nil, []mistake{{"", err}}
	}
	members := map[string][]byte{}
	var wrong []mistake
	for _, m := range ms {
		if !slices.Contains(known, m.Name) {
			wrong = append(wrong, mistake{jsontext.Path("", m.Name), fmt.Errorf("unknown member: want %s", strings.Join(known, ", "))})
			continue
		}
		members[m.Name] = m.Value
	}
	return members, wrong
}

// list returns the elements of an array.
func list(data []byte) ([][]byte, error) {
	if kind := jsontext.Kind(data); kind != "array" {
		return nil, fmt.Errorf("want array, got %s", kind)
	}
	return jsontext.Elements(data)
}

// text returns the content of a string.
func text(data []byte) (string, error) {
	if kind := jsontext.Kind(data); kind != "string" {
		return "", fmt.Errorf("want string, got %s", kind)
	}
	return jsontext.Unquote(data), nil
}
