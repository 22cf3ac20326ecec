package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// node is a predicate in the tree of a rule, and its JSON: a question about a
// field, a function, or a combination of other nodes.
type node struct {
	And   []*node         `json:"and,omitempty"`
	Or    []*node         `json:"or,omitempty"`
	Not   *node           `json:"not,omitempty"`
	Func  string          `json:"func,omitempty"`
	Field string          `json:"field,omitempty"`
	Op    string          `json:"op,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`

	// ask answers for a field or a function. state.ErrNotFound means that the
	// field is unset; any other error means that there is no answer.
	ask       func(st *state.State) (bool, error)
	fieldType reflect.Type
	program   int          // instructions of the pattern
	err       *fault.Error // what is wrong, with a path that begins at the node
}

// evaluate answers for a snapshot. An error means that something that the node
// mentions has no answer. The node then has no answer either, whatever its
// other parts say. That is why evaluate visits all parts: if one decisive part
// were enough, the result would depend on what the handle may not read.
//
// If skip is set, the answer is known to make no difference, and functions are
// not called.
func (n *node) evaluate(st *state.State, skip bool) (yes bool, err error) {
	switch {
	case n.Not != nil:
		yes, err = n.Not.evaluate(st, skip)
		return !yes && err == nil, err
	case n.Func != "" && skip:
		return false, nil
	case n.ask != nil:
		if yes, err = n.ask(st); errors.Is(err, state.ErrNotFound) {
			err = nil
		}
		return yes, err
	}
	parts, decisive := n.And, false
	if n.Or != nil {
		parts, decisive = n.Or, true
	}
	yes = !decisive
	for _, part := range parts {
		partYes, partErr := part.evaluate(st, skip || err != nil || yes == decisive)
		if err == nil {
			err = partErr
		}
		if partYes == decisive {
			yes = decisive
		}
	}
	return yes && err == nil, err
}

// visit calls fn for the node and all nodes below it, with their paths.
func (n *node) visit(path string, depth int, fn func(path string, depth int, n *node)) {
	fn(path, depth, n)
	for i, part := range n.And {
		part.visit(fmt.Sprintf("%s.and[%d]", path, i), depth+1, fn)
	}
	for i, part := range n.Or {
		part.visit(fmt.Sprintf("%s.or[%d]", path, i), depth+1, fn)
	}
	if n.Not != nil {
		n.Not.visit(path+".not", depth+1, fn)
	}
}

// title returns what Explain calls the node.
func (n *node) title() string {
	switch {
	case n.And != nil:
		return "and"
	case n.Or != nil:
		return "or"
	case n.Not != nil:
		return "not"
	case n.Func != "":
		return fmt.Sprintf("func %q", n.Func)
	}
	return fmt.Sprintf("%s %q", n.Op, n.Field)
}

// answer returns what Explain says of the node.
func (n *node) answer(st *state.State) string {
	yes, err := n.evaluate(st, false)
	if n.Field != "" {
		_, err = n.ask(st) // which tells what is unset
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		return "no, unset"
	case err != nil && n.ask == nil:
		return "no answer"
	case errors.Is(err, state.ErrDenied):
		return "hidden"
	case errors.Is(err, state.ErrUnknownField):
		return "no such field"
	case errors.Is(err, errPanic):
		return "panicked"
	case err != nil:
		return "a field of another type"
	case yes:
		return "yes"
	}
	return "no"
}
