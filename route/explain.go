package route

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

// Explain returns, as text for people, which rules match and how each predicate
// was answered, and so why [Router.Next] names the agent that it does. The text
// holds names but no values, is the same for the same content, and reads one
// version of the state. Rules after the one that decides are explained too, so
// their functions are called.
func (r *Router) Explain(st *state.State) string {
	var b strings.Builder
	next, found := "", false
	if r == nil {
		r = &Router{}
	}
	st = st.Snapshot()
	for i, rule := range r.rules {
		var t trace
		outcome := "does not match"
		switch yes, err := rule.eval(st, &t); {
		case err != nil:
			outcome = "cannot match"
		case yes && found:
			outcome = "matches too late"
		case yes:
			outcome = "matches"
			next, found = rule.agent, true
		}
		how := "when"
		if rule.when == nil {
			how = "otherwise"
		}
		fmt.Fprintf(&b, "%d. %q %s: %s\n", i+1, rule.agent, how, outcome)
		t.write(&b)
	}
	if !found {
		return b.String() + "next: nobody\n"
	}
	return b.String() + fmt.Sprintf("next: %q\n", next)
}

// trace notes the answers of a rule's predicates, parents first.
type trace struct {
	lines []traceLine
	depth int
}

type traceLine struct {
	node   *node
	depth  int
	answer string
}

// begin makes a line for a node and returns its number.
func (t *trace) begin(n *node) int {
	if t == nil {
		return 0
	}
	t.lines = append(t.lines, traceLine{node: n, depth: t.depth})
	t.depth++
	return len(t.lines) - 1
}

// end writes down the answer of the node on a line.
func (t *trace) end(line int, yes, unset, skipped bool, err error) {
	if t == nil {
		return
	}
	t.depth--
	answer := "no"
	switch {
	case t.lines[line].node.of != nil && err != nil:
		answer = "no answer"
	case errors.Is(err, state.ErrDenied):
		answer = "hidden"
	case errors.Is(err, state.ErrUnknownField):
		answer = "no such field"
	case errors.Is(err, errPanic):
		answer = "panicked"
	case err != nil:
		answer = "a field of another type"
	case skipped:
		answer = "not asked"
	case unset:
		answer = "no, unset"
	case yes:
		answer = "yes"
	}
	t.lines[line].answer = answer
}

func (t *trace) write(b *strings.Builder) {
	for _, l := range t.lines {
		b.WriteString(strings.Repeat("  ", l.depth+2))
		b.WriteString(l.node.op)
		if l.node.of == nil {
			fmt.Fprintf(b, " %q", l.node.name)
		}
		fmt.Fprintf(b, ": %s\n", l.answer)
	}
}
