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
func Has[T any](f *state.Field[T]) Predicate { return ask("has", f) }

// Eq asks whether the value of a field is v. Times are equal if they are the
// same instant.
func Eq[T comparable](f *state.Field[T], v T) Predicate { return ask("eq", f, v) }

// Ne asks whether a field has a value other than v. Like every comparison it
// does not match an unset field; Not(Eq(f, v)) does.
func Ne[T comparable](f *state.Field[T], v T) Predicate { return ask("ne", f, v) }

// In asks whether the value of a field is one of vs.
func In[T comparable](f *state.Field[T], vs ...T) Predicate {
	operands := make([]any, len(vs))
	for i, v := range vs {
		operands[i] = v
	}
	return ask("in", f, operands...)
}

// Gt asks whether the value of a field is greater than v.
func Gt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return ask("gt", f, v) }

// Gte asks whether the value of a field is v or greater.
func Gte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return ask("gte", f, v) }

// Lt asks whether the value of a field is less than v.
func Lt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return ask("lt", f, v) }

// Lte asks whether the value of a field is v or less.
func Lte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return ask("lte", f, v) }

// Match asks whether a regular expression, in the syntax of package regexp,
// matches a part of the value of a field. Of a longer text, it looks at the
// first 64 KiB, as if the text ended there.
func Match[T ~string](f *state.Field[T], pattern string) Predicate {
	return ask("match", f, pattern)
}

// Contains asks whether a list has an element that equals v.
func Contains[S ~[]E, E comparable](f *state.Field[S], v E) Predicate {
	return ask("contains", f, v)
}

// And asks whether all predicates hold.
func And(ps ...Predicate) Predicate { return combined(&node{And: nodesOf(ps)}) }

// Or asks whether at least one of the predicates holds.
func Or(ps ...Predicate) Predicate { return combined(&node{Or: nodesOf(ps)}) }

// Not asks whether a predicate does not hold. A predicate that mentions a
// hidden field holds neither as it is nor under Not: no rule that mentions the
// field matches.
func Not(p Predicate) Predicate { return Predicate{&node{Not: p.nodeOrFault()}} }

// Func asks a Go function, which is given a snapshot with the rights of the
// routed handle. name stands for the function in JSON.
//
// fn may be called from any goroutine. It must depend on nothing but the
// snapshot, otherwise [Router.Explain] may differ from [Router.Next]. Hidden
// fields look unset to fn, and do not keep its rule from matching, because the
// rule does not know what fn reads. If fn panics, the rule does not match. fn
// is not called if its answer makes no difference.
func Func(name string, fn func(*state.State) bool) Predicate {
	n := &node{Func: name, err: fault.CheckName("$.func", name)}
	if fn == nil && n.err == nil {
		n.err = mistakef("$.func", "the function is nil")
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

// ask returns the predicate that compares a field with operands.
func ask[T any](op string, f *state.Field[T], operands ...any) Predicate {
	n := &node{Op: op, fieldType: reflect.TypeFor[T]()}
	if f == nil {
		n.err = mistakef("$.field", "the field is nil")
		return Predicate{n}
	}
	n.Field = f.Name
	if n.err = fault.CheckName("$.field", f.Name); n.err == nil {
		n.compile(operands, f.Has, func(st *state.State) (any, error) { return f.Get(st) })
	}
	return Predicate{n}
}

func nodesOf(ps []Predicate) []*node {
	nodes := make([]*node, len(ps))
	for i, p := range ps {
		nodes[i] = p.nodeOrFault()
	}
	return nodes
}

// nodeOrFault returns the node of the predicate. For the zero Predicate that is
// a node with a fault.
func (p Predicate) nodeOrFault() *node {
	if p.node == nil {
		return &node{err: mistakef("$", "the predicate is missing")}
	}
	return p.node
}

// combined returns a predicate of other predicates.
func combined(n *node) Predicate {
	checkParts(n)
	return Predicate{n}
}

// checkParts notes that a combination has no parts.
func checkParts(n *node) {
	if n.Not == nil && len(n.And)+len(n.Or) == 0 {
		n.err = mistakef("$."+n.title(), "want at least one predicate, got none")
	}
}
