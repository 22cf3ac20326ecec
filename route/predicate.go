package route

import (
	"cmp"
	"errors"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// Predicate is a yes-or-no question about a state. The functions of this
// package make predicates. A Predicate is immutable and safe for concurrent
// use, and may be part of several rules. [New] reports what is wrong with it,
// such as a bad pattern. The zero Predicate is invalid.
type Predicate struct{ node *node }

// Has asks whether a field is set.
func Has[T any](f *state.Field[T]) Predicate {
	n := fieldNode(opHas, f)
	n.ask = func(st *state.State) (bool, error) {
		if f.Has(st) {
			return true, nil
		}
		_, err := f.Get(st)
		return false, err
	}
	return Predicate{n}
}

// Eq asks whether the value of a field is v. Times are equal if they are the
// same instant.
func Eq[T comparable](f *state.Field[T], v T) Predicate { return compareField(opEq, f, v) }

// Ne asks whether a field has a value other than v. Like every comparison it
// does not match an unset field; Not(Eq(f, v)) does.
func Ne[T comparable](f *state.Field[T], v T) Predicate { return compareField(opNe, f, v) }

// In asks whether the value of a field is one of vs.
func In[T comparable](f *state.Field[T], vs ...T) Predicate {
	operands := make([]any, len(vs))
	for i, v := range vs {
		operands[i] = v
	}
	return compareField(opIn, f, operands...)
}

// Gt asks whether the value of a field is greater than v.
func Gt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compareField(opGt, f, v) }

// Gte asks whether the value of a field is v or greater.
func Gte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compareField(opGte, f, v) }

// Lt asks whether the value of a field is less than v.
func Lt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compareField(opLt, f, v) }

// Lte asks whether the value of a field is v or less.
func Lte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compareField(opLte, f, v) }

// Match asks whether a regular expression, in the syntax of package regexp,
// matches a part of the value of a field. Of a longer text, it looks at the
// first 64 KiB, as if the text ended there. The expression is compiled once,
// when it is first asked.
func Match[T ~string](f *state.Field[T], pattern string) Predicate {
	return compareField(opMatch, f, pattern)
}

// Contains asks whether a list has an element that equals v. It does not copy
// the list.
func Contains[S ~[]E, E comparable](f *state.Field[S], v E) Predicate {
	n := fieldNode(opContains, f)
	c := n.compile([]any{v})
	n.ask = func(st *state.State) (bool, error) {
		if !f.Has(st) {
			_, err := f.Get(st)
			return false, err
		}
		for _, e := range state.ListItems(st, f, 0) {
			if c.equalsAny(e) {
				return true, nil
			}
		}
		return false, nil
	}
	return Predicate{n}
}

// And asks whether all predicates hold.
func And(ps ...Predicate) Predicate { return combine(opAnd, ps) }

// Or asks whether at least one of the predicates holds.
func Or(ps ...Predicate) Predicate { return combine(opOr, ps) }

// Not asks whether a predicate does not hold. A predicate that mentions a
// hidden field holds neither as it is nor under Not: no rule that mentions the
// field matches.
func Not(p Predicate) Predicate { return combine(opNot, []Predicate{p}) }

// Func asks a Go function, which is given a snapshot with the rights of the
// routed handle. name stands for the function in JSON.
//
// fn may be called from any goroutine. It must depend on nothing but the
// snapshot, otherwise [Router.Explain] may differ from [Router.Next]. Hidden
// fields look unset to fn, and do not keep its rule from matching, because the
// rule does not know what fn reads. If fn panics, the rule does not match. fn
// is not called if its answer makes no difference.
func Func(name string, fn func(*state.State) bool) Predicate {
	n := &node{op: opFunc, name: name}
	n.checkName("$.func")
	if fn == nil {
		n.addFault("$.func", "the function is nil")
	}
	n.ask = func(st *state.State) (yes bool, err error) {
		defer func() {
			if recover() != nil {
				yes, err = false, errPanic // without the value: it may hold content
			}
		}()
		return fn(st), nil
	}
	return Predicate{n}
}

// errPanic is the answer of a function that panicked.
var errPanic = errors.New("the function panicked")

// fieldNode returns a node about a field, still without a question.
func fieldNode[T any](op string, f *state.Field[T]) *node {
	n := &node{op: op, fieldType: reflect.TypeFor[T]()}
	if f == nil {
		n.addFault("$.field", "the field is nil")
		return n
	}
	n.name = f.Name
	n.checkName("$.field")
	return n
}

// compareField returns a predicate that compares a field with operands.
func compareField[T any](op string, f *state.Field[T], operands ...any) Predicate {
	n := fieldNode(op, f)
	c := n.compile(operands)
	n.ask = func(st *state.State) (bool, error) {
		v, err := f.Get(st)
		return err == nil && c.holds(v), err
	}
	return Predicate{n}
}

// compile returns the comparison of the node's field with operands.
func (n *node) compile(operands []any) *comparison {
	c, faults := newComparison(n.op, n.name, n.fieldType, operands)
	n.operand, n.cost = c.text, c.cost
	n.faults = append(n.faults, faults...)
	return c
}

func (n *node) checkName(path string) {
	if e := fault.CheckName(path, n.name); e != nil {
		n.faults = append(n.faults, e)
	}
}

func combine(op string, ps []Predicate) Predicate {
	parts := make([]*node, len(ps))
	for i, p := range ps {
		parts[i] = p.nodeOrFault()
	}
	return Predicate{newCombination(op, parts)}
}

// nodeOrFault returns the node of the predicate. For the zero Predicate that is
// a node with a fault.
func (p Predicate) nodeOrFault() *node {
	if p.node != nil {
		return p.node
	}
	n := &node{}
	n.addFault("$", "the predicate is missing")
	return n
}
