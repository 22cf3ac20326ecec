package route

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// The limits of the rules of a router. They bound what rules from elsewhere
// cost: the time to read and to ask them, and their memory.
const (
	maxJSON    = 256 << 10 // bytes of the rules as JSON, as MarshalJSON writes it
	maxPattern = 1 << 10   // bytes of a pattern
	maxProgram = 2000      // instructions of all patterns: Next runs each at every byte of a text
	maxText    = 64 << 10  // bytes of a text that Match looks at
)

// Rule names an agent and the condition under which it is next. [When] and
// [Otherwise] make rules; the zero Rule is invalid.
type Rule struct{ form ruleForm }

// ruleForm is the JSON of a rule: when and agent, or otherwise.
type ruleForm struct {
	When      *node  `json:"when,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Otherwise string `json:"otherwise,omitempty"`
}

// When returns the rule that agent is next if p holds.
func When(p Predicate, agent string) Rule { return Rule{ruleForm{When: p.nodeOrFault(), Agent: agent}} }

// Otherwise returns the rule that agent is next unconditionally. It must be the
// last rule.
func Otherwise(agent string) Rule { return Rule{ruleForm{Otherwise: agent}} }

// Router names the next agent by the first of its rules that matches. It is
// immutable, safe for concurrent use, and serves any number of states.
type Router struct{ form routerForm }

type routerForm struct {
	Rules []ruleForm `json:"rules"`
}

// New returns a router. The error is [ErrInvalidRules] and lists the mistakes in
// the rules, each with its path in the JSON form of the router. Names of agents
// and functions must be one line of visible text. A router without rules never
// names an agent.
//
// A router has at most 256 KiB of JSON. A pattern of [Match] has at most 1 KiB,
// and all patterns together have 2 000 instructions when they are compiled: a
// letter is one, and a{1000} is a thousand.
func New(rules ...Rule) (*Router, error) {
	r := &Router{routerForm{make([]ruleForm, len(rules))}}
	for i, rule := range rules {
		r.form.Rules[i] = rule.form
	}
	var errs rulesError
	program := 0
	for i, rule := range r.form.Rules {
		errs.add(rulePath(i), rule.mistake(i == len(rules)-1))
		rule.visit(rulePath(i), func(path string, _ int, n *node) {
			errs.add(path, n.err)
			if program += n.program; program > maxProgram && program-n.program <= maxProgram {
				errs.add(path, mistakef("$.value", "the patterns of a router have at most %d instructions", maxProgram))
			}
		})
	}
	if data, err := r.MarshalJSON(); errs == nil && (err != nil || len(data) > maxJSON) {
		errs.add("$.rules", mistakef("$", "a router has at most %d bytes of JSON", maxJSON))
	}
	if errs != nil {
		return nil, errs
	}
	return r, nil
}

// Must returns r and panics if err is not nil. It is for package variables.
func Must(r *Router, err error) *Router {
	if err != nil {
		panic(err)
	}
	return r
}

// mistake returns what is wrong with the rule, apart from its predicate.
func (r ruleForm) mistake(last bool) *fault.Error {
	switch {
	case r.When != nil && r.Otherwise == "":
		return fault.CheckName("$.agent", r.Agent)
	case r.When != nil || r.Agent != "" || r.Otherwise == "":
		return mistakef("$", "want when and agent, or otherwise")
	case !last:
		return mistakef("$", "otherwise must come last: no rule after it can match")
	}
	return fault.CheckName("$.otherwise", r.Otherwise)
}

func (r ruleForm) visit(path string, fn func(path string, depth int, n *node)) {
	if r.When != nil {
		r.When.visit(path+".when", 0, fn)
	}
}

// matches reports whether the rule matches a snapshot. A rule with an error does
// not match.
func (r ruleForm) matches(st *state.State) (bool, error) {
	if r.When == nil {
		return true, nil
	}
	return r.When.evaluate(st, false)
}

// Next returns the agent of the first rule that matches, or false if no rule
// matches. It reads one version of the state, with the rights of the handle. A
// rule that mentions a field that is hidden from the handle does not match,
// wherever in the rule the field occurs. The same applies to a field that the
// state does not have: that is a mistake, which is an error of a [loop.Loop] and is
// otherwise logged as by [state.Field.GetOr]. [Router.Check] returns it as an error.
//
// [loop.Loop]: https://pkg.go.dev/github.com/agentstate/state/loop#Loop
func (r *Router) Next(st *state.State) (agent string, ok bool) {
	st = inside.WarnLacking(st.Snapshot())
	for _, rule := range r.rules() {
		if yes, _ := rule.matches(st); yes {
			return rule.Agent + rule.Otherwise, true
		}
	}
	return "", false
}

func (r *Router) rules() []ruleForm {
	if r == nil {
		return nil
	}
	return r.form.Rules
}

// Explain returns a text for people that says which rules match, how each
// predicate was answered, and therefore why [Router.Next] names the agent that
// it names. The text holds names but no values. It is the same for the same
// content. Explain reads one version of the state. It asks all predicates, also
// those that make no difference.
func (r *Router) Explain(st *state.State) string {
	var b strings.Builder
	next := "nobody"
	st = inside.TellLacking(st.Snapshot(), func(error) {}) // the text says so
	for i, rule := range r.rules() {
		outcome := "does not match"
		switch yes, err := rule.matches(st); {
		case err != nil:
			outcome = "cannot match"
		case yes && next != "nobody":
			outcome = "matches too late"
		case yes:
			outcome, next = "matches", strconv.Quote(rule.Agent+rule.Otherwise)
		}
		kind := "when"
		if rule.When == nil {
			kind = "otherwise"
		}
		fmt.Fprintf(&b, "%d. %q %s: %s\n", i+1, rule.Agent+rule.Otherwise, kind, outcome)
		rule.visit("", func(_ string, depth int, n *node) {
			fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", depth+2), n.title(), n.answer(st))
		})
	}
	return b.String() + "next: " + next + "\n"
}

// Check returns an error for each field that keeps a rule from ever matching if
// agent is routed in a state with this schema: either agent may not read the
// field, or the schema has no field of that name and type. The errors are those
// of [state.Field.Get], such as [state.ErrDenied]. The agent "" is the host.
// Check does not know what functions read.
func (r *Router) Check(schema *state.Schema, agent string) error {
	st := inside.TellLacking(state.New(schema), func(error) {}) // the error says so
	types := fieldTypes(st)
	if agent != "" {
		st = st.As(agent)
	}
	var errs rulesError
	for i, rule := range r.rules() {
		rule.visit(rulePath(i), func(path string, _ int, n *node) {
			if n.Field == "" {
				return
			}
			_, err := n.ask(st)
			if typ, ok := types[n.Field]; ok && typ != n.fieldType {
				err = &state.TypeError{Field: n.Field, Path: "type", Want: typ.String(), Got: n.fieldType.String()}
			}
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				problem := "the rule for " + fault.Quote(rule.Agent) + " never matches: " + stateText(err)
				errs.add(path, &fault.Error{Path: "$", Got: problem, Cause: err})
			}
		})
	}
	if errs != nil {
		return errs
	}
	return nil
}

// MarshalJSON returns the router as JSON that [Parse] reads. A function is
// represented by its name.
func (r *Router) MarshalJSON() ([]byte, error) {
	return jsontext.Marshal(routerForm{append([]ruleForm{}, r.rules()...)})
}

func rulePath(i int) string { return fmt.Sprintf("$.rules[%d]", i) }

// ErrInvalidRules is returned for rules that make no router, or that cannot
// match in a state.
var ErrInvalidRules = errors.New("route: invalid rules")

// rulesError joins what is wrong with rules. It is [ErrInvalidRules].
type rulesError []error

func (e rulesError) Error() string        { return errors.Join(e...).Error() }
func (e rulesError) Unwrap() []error      { return e }
func (e rulesError) Is(target error) bool { return target == ErrInvalidRules }

// add adds a mistake, whose path begins at path, unless it is nil.
func (e *rulesError) add(path string, mistake *fault.Error) {
	if mistake != nil {
		*e = append(*e, fmt.Errorf("route: %w", fault.Under(path, mistake)))
	}
}

// invalidRules returns an error that is not about a place in the rules.
func invalidRules(format string, args ...any) error {
	return rulesError{fmt.Errorf("route: "+format, args...)}
}

func mistakef(path, format string, args ...any) *fault.Error {
	return &fault.Error{Path: path, Got: fmt.Sprintf(format, args...)}
}

// stateText returns the text of an error of package state inside a longer text.
func stateText(err error) string { return strings.TrimPrefix(err.Error(), "state: ") }
