package route

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

// Explain returns a text for people that says which rules match, how each
// predicate was answered, and therefore why [Router.Next] names the agent that
// it names. The text holds names but no values. It is the same for the same
// content. Explain reads one version of the state. It explains the rules after
// the first match too, and calls their functions.
func (r *Router) Explain(st *state.State) string {
	if r == nil {
		r = &Router{}
	}
	var b strings.Builder
	next, found := "", false
	st = st.Snapshot()
	for i, rule := range r.rules {
		var t trace
		outcome := "does not match"
		switch yes, err := rule.evaluate(st, &t); {
		case err != nil:
			outcome = "cannot match"
		case yes && found:
			outcome = "matches too late"
		case yes:
			outcome = "matches"
			next, found = rule.agent, true
		}
		keyword := "when"
		if rule.otherwise {
			keyword = "otherwise"
		}
		fmt.Fprintf(&b, "%d. %q %s: %s\n", i+1, rule.agent, keyword, outcome)
		for _, line := range t.lines {
			line.write(&b)
		}
	}
	if !found {
		return b.String() + "next: nobody\n"
	}
	return b.String() + fmt.Sprintf("next: %q\n", next)
}

// write writes the line as text, indented below its rule.
func (l *traceLine) write(b *strings.Builder) {
	b.WriteString(strings.Repeat("  ", l.depth+2) + l.node.op)
	if l.node.parts == nil {
		fmt.Fprintf(b, " %q", l.node.name)
	}
	fmt.Fprintf(b, ": %s\n", l.answer())
}

func (l *traceLine) answer() string {
	switch {
	case l.err != nil && l.node.parts != nil:
		return "no answer"
	case errors.Is(l.err, state.ErrDenied):
		return "hidden"
	case errors.Is(l.err, state.ErrUnknownField):
		return "no such field"
	case errors.Is(l.err, errPanic):
		return "panicked"
	case l.err != nil:
		return "a field of another type"
	case l.skipped:
		return "not asked"
	case l.unset:
		return "no, unset"
	case l.yes:
		return "yes"
	}
	return "no"
}
