package route

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

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

// fieldOps are the predicates about one field, in the order of error texts.
var fieldOps = []string{opHas, opEq, opNe, opIn, opGt, opGte, opLt, opLte, opMatch, opContains}

// node is a predicate in the tree of a rule: a question about a field, a
// function, or a combination of other nodes.
type node struct {
	op        string
	name      string       // of the field or function
	fieldType reflect.Type // nil if the node is not about a field
	operand   []byte       // what the field is compared with, as JSON
	parts     []*node      // what is combined
	// ask answers for a field or a function. state.ErrNotFound means that the
	// field is unset; any other error means that there is no answer.
	ask    func(*state.State) (bool, error)
	cost   cost
	faults []*fault.Error // with paths that begin at the node
}

// newCombination returns the node that combines parts.
func newCombination(op string, parts []*node) *node {
	n := &node{op: op, parts: parts}
	if len(parts) == 0 {
		n.addFault("$."+op, "want at least one predicate, got none")
	}
	return n
}

func (n *node) addFault(path, problem string) {
	n.faults = append(n.faults, &fault.Error{Path: path, Got: problem})
}

// evaluate answers for a snapshot. An error means that something that the node
// mentions has no answer. The node then has no answer either, whatever its
// other parts say. That is why evaluate visits all parts: if one decisive part
// were enough, the result would depend on what the handle may not read.
//
// If skip is set, the answer is known to make no difference, and functions are
// not called. The trace records each step; it may be nil.
func (n *node) evaluate(st *state.State, skip bool, t *trace) (yes bool, err error) {
	line := t.open(n)
	unset, skipped := false, false
	switch n.op {
	case opNot:
		yes, err = n.parts[0].evaluate(st, skip, t)
		yes = !yes && err == nil
	case opAnd, opOr:
		decisive := n.op == opOr
		yes = !decisive
		for _, part := range n.parts {
			answer, partErr := part.evaluate(st, skip || err != nil || yes == decisive, t)
			if err == nil {
				err = partErr
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
	t.close(line, traceLine{yes: yes, unset: unset, skipped: skipped, err: err})
	return yes, err
}

// visit calls fn for the node and all nodes below it, with their paths.
func (n *node) visit(path string, fn func(path string, n *node)) {
	fn(path, n)
	for i, part := range n.parts {
		at := path + "." + n.op
		if n.op != opNot {
			at = fmt.Sprintf("%s[%d]", at, i)
		}
		part.visit(at, fn)
	}
}

// depth returns how deep combinations are nested.
func (n *node) depth() int {
	deepest := 0
	for _, part := range n.parts {
		deepest = max(deepest, 1+part.depth())
	}
	return deepest
}

// trace records how the nodes of a rule were answered, parents first. A nil
// trace records nothing.
type trace struct {
	lines []traceLine
	depth int
}

type traceLine struct {
	node                *node
	depth               int
	yes, unset, skipped bool
	err                 error
}

// open adds a line for a node and returns its number.
func (t *trace) open(n *node) int {
	if t == nil {
		return 0
	}
	t.lines = append(t.lines, traceLine{node: n, depth: t.depth})
	t.depth++
	return len(t.lines) - 1
}

// close completes a line with the answer of its node.
func (t *trace) close(number int, answer traceLine) {
	if t == nil {
		return
	}
	t.depth--
	line := &t.lines[number]
	answer.node, answer.depth = line.node, line.depth
	*line = answer
}
