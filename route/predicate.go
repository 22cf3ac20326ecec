package route

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/agentstate/state"
)

// Predicate is a question about a state that is answered with yes or no. It is
// made by the functions of this package, is immutable and safe for concurrent
// use, and may be a part of several rules. What is wrong with it, such as a bad
// pattern, is reported by [New]. The zero Predicate is a mistake.
type Predicate struct{ node *node }

// The kinds of predicates, named as in JSON.
const (
	opAnd      = "and"
	opOr       = "or"
	opNot      = "not"
	opFunc     = "func"
	opHas      = "has"
	opEq       = "eq"
	opNe       = "ne"
	opIn       = "in"
	opGt       = "gt"
	opGte      = "gte"
	opLt       = "lt"
	opLte      = "lte"
	opMatch    = "match"
	opContains = "contains"
)

// node is a predicate: a question about a field, a function, or a combination.
type node struct {
	op    string
	name  string       // of the field or function
	typ   reflect.Type // of the field
	value []byte       // what it is compared with, as JSON
	of    []*node      // what is combined
	// ask answers for a field or a function. An error means that there is no
	// answer; state.ErrNotFound that the field is unset.
	ask   func(*state.State) (bool, error)
	wrong []mistake
}

// mistake is what is wrong with a part of a router, with its path from there.
type mistake struct {
	at  string
	err error
}

func (n *node) fail(at string, err error) { n.wrong = append(n.wrong, mistake{at, err}) }

// Has asks whether a field is set.
func Has[T any](f *state.Field[T]) Predicate {
	n := about(opHas, f)
	n.ask = func(st *state.State) (bool, error) {
		if f.Has(st) {
			return true, nil
		}
		_, err := f.Get(st)
		return false, err
	}
	return Predicate{n}
}

// Eq asks whether the value of a field is v. Dates and times are the same if
// they are the same instant.
func Eq[T comparable](f *state.Field[T], v T) Predicate { return compare(opEq, f, v) }

// Ne asks whether the value of a field is another than v. Of an unset field it
// is not, as it is of no comparison; Not(Eq(f, v)) is true of one.
func Ne[T comparable](f *state.Field[T], v T) Predicate { return compare(opNe, f, v) }

// In asks whether the value of a field is one of vs.
func In[T comparable](f *state.Field[T], vs ...T) Predicate {
	values := make([]any, len(vs))
	for i, v := range vs {
		values[i] = v
	}
	return compare(opIn, f, values...)
}

// Gt asks whether the value of a field is greater than v.
func Gt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compare(opGt, f, v) }

// Gte asks whether the value of a field is v or greater.
func Gte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compare(opGte, f, v) }

// Lt asks whether the value of a field is less than v.
func Lt[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compare(opLt, f, v) }

// Lte asks whether the value of a field is v or less.
func Lte[T cmp.Ordered](f *state.Field[T], v T) Predicate { return compare(opLte, f, v) }

// Match asks whether a regular expression, in the syntax of package regexp,
// matches a part of the value of a field. It is compiled once.
func Match[T ~string](f *state.Field[T], pattern string) Predicate {
	return compare(opMatch, f, pattern)
}

// Contains asks whether one of the elements of a list is v. The list is not
// copied for it.
func Contains[S ~[]E, E comparable](f *state.Field[S], v E) Predicate {
	n := about(opContains, f)
	c := n.comparison([]any{v})
	n.ask = func(st *state.State) (bool, error) {
		if !f.Has(st) {
			_, err := f.Get(st)
			return false, err
		}
		for _, e := range state.Items(st, f, 0) {
			if c.equal(e) {
				return true, nil
			}
		}
		return false, nil
	}
	return Predicate{n}
}

// And asks whether all predicates hold.
func And(ps ...Predicate) Predicate { return combine(opAnd, ps) }

// Or asks whether one of the predicates holds.
func Or(ps ...Predicate) Predicate { return combine(opOr, ps) }

// Not asks whether a predicate does not hold. Of a field that is hidden, neither
// does: no rule that mentions it matches.
func Not(p Predicate) Predicate { return combine(opNot, []Predicate{p}) }

// Func asks a function, which gets a snapshot with the rights of the handle that
// is routed. It is called from any goroutine, must depend on nothing but the
// snapshot for [Router.Explain] to be right, and does not see fields that are
// hidden: the rule cannot know of them. If it panics, the rule does not match.
// It is not called where its answer makes no difference. The name stands for it
// in JSON.
func Func(name string, fn func(*state.State) bool) Predicate {
	n := &node{op: opFunc, name: name}
	if err := checkName(name); err != nil {
		n.fail(".func", err)
	}
	if fn == nil {
		n.fail(".func", errors.New("the function is nil"))
	}
	n.ask = func(st *state.State) (yes bool, err error) {
		defer func() {
			if recover() != nil {
				yes, err = false, errPanic // what was thrown may hold values
			}
		}()
		return fn(st), nil
	}
	return Predicate{n}
}

var errPanic = errors.New("the function panicked")

// about returns a node with a question about a field.
func about[T any](op string, f *state.Field[T]) *node {
	n := &node{op: op, typ: reflect.TypeFor[T]()}
	if f == nil {
		n.fail(".field", errors.New("the field is nil"))
		return n
	}
	n.name = f.Name
	if err := checkName(f.Name); err != nil {
		n.fail(".field", err)
	}
	return n
}

// compare returns a predicate that compares a field with values.
func compare[T any](op string, f *state.Field[T], values ...any) Predicate {
	n := about(op, f)
	c := n.comparison(values)
	n.ask = func(st *state.State) (bool, error) {
		v, err := f.Get(st)
		return err == nil && c.holds(v), err
	}
	return Predicate{n}
}

func combine(op string, ps []Predicate) Predicate {
	n := &node{op: op}
	for _, p := range ps {
		if p.node == nil {
			p = nothing()
		}
		n.of = append(n.of, p.node)
	}
	if len(ps) == 0 {
		n.fail("."+op, errors.New("want at least one predicate, got none"))
	}
	return Predicate{n}
}

// nothing returns a predicate that stands for one that is missing.
func nothing() Predicate {
	n := &node{}
	n.fail("", errors.New("the predicate is missing"))
	return Predicate{n}
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("want a name, got nothing")
	case !utf8.ValidString(name):
		return errors.New("want a name in UTF-8, got other bytes")
	}
	return nil
}

// eval answers for a snapshot. An error means that something that the predicate
// mentions gives no answer, so that it has none either, whatever the rest says.
// With skip the answer is known to make no difference, so functions are not
// called. The steps are noted in t, which may be nil.
func (n *node) eval(st *state.State, skip bool, t *trace) (yes bool, err error) {
	line := t.begin(n)
	unset, skipped := false, false
	switch n.op {
	case opNot:
		yes, err = n.of[0].eval(st, skip, t)
		yes = !yes && err == nil
	case opAnd, opOr:
		decisive := n.op == opOr
		yes = !decisive
		for _, part := range n.of {
			answer, fault := part.eval(st, skip || err != nil || yes == decisive, t)
			if fault != nil && err == nil {
				err = fault
			}
			if answer == decisive {
				yes = decisive
			}
		}
		yes = yes && err == nil
	case opFunc:
		if skipped = skip; !skip {
			yes, err = n.ask(st)
		}
	default:
		if yes, err = n.ask(st); errors.Is(err, state.ErrNotFound) {
			unset, err = true, nil
		}
	}
	t.end(line, yes, unset, skipped, err)
	return yes, err
}

// each calls fn for a node and all below it, with their paths.
func (n *node) each(path string, fn func(path string, n *node)) {
	fn(path, n)
	for i, part := range n.of {
		at := path + "." + n.op
		if n.op != opNot {
			at = fmt.Sprintf("%s[%d]", at, i)
		}
		part.each(at, fn)
	}
}

// depth returns how deep combinations are nested.
func (n *node) depth() int {
	deepest := 0
	for _, part := range n.of {
		deepest = max(deepest, 1+part.depth())
	}
	return deepest
}
