package route

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// maxDepth bounds how deep combinations are nested. Parse has to read whatever
// MarshalJSON writes, and its own limit on nesting is larger.
const maxDepth = 64

// Rule names an agent and the condition under which it is next. [When] and
// [Otherwise] make rules; the zero Rule is invalid.
type Rule struct {
	agent     string
	when      *node // nil if the rule is an otherwise
	otherwise bool
	faults    []*fault.Error // with paths that begin at the rule
}

// When returns the rule that agent is next if p holds.
func When(p Predicate, agent string) Rule {
	r := Rule{agent: agent, when: p.nodeOrFault()}
	r.checkAgent("$.agent")
	return r
}

// Otherwise returns the rule that agent is next unconditionally. It must be the
// last rule.
func Otherwise(agent string) Rule {
	r := Rule{agent: agent, otherwise: true}
	r.checkAgent("$.otherwise")
	return r
}

func (r *Rule) checkAgent(path string) {
	if e := fault.CheckName(path, r.agent); e != nil {
		r.faults = append(r.faults, e)
	}
}

// Router names the next agent by the first of its rules that matches. It is
// immutable, safe for concurrent use, and serves any number of states.
type Router struct{ rules []Rule }

// New returns a router. The error is [ErrInvalidRules] and lists everything that is wrong with the
// rules, each mistake with its path in the JSON form of the router. Names of
// agents and functions must be one line of visible text. A router without rules
// never names an agent.
//
// Predicates may be nested up to 64 deep. A router has at most 1 000 rules,
// 10 000 values of [In] in all, and 2 MiB of JSON. All patterns of [Match]
// together have at most 64 KiB, and about 2 000 instructions when they are
// compiled: a letter is one, and a{1000} is a thousand. The limits are those of
// [Parse], which therefore reads what [Router.MarshalJSON] writes.
func New(rules ...Rule) (*Router, error) {
	var faults []*fault.Error
	for i, rule := range rules {
		for _, e := range rule.allFaults() {
			faults = append(faults, moveFault(rulePath(i), e))
		}
		if rule.otherwise && i < len(rules)-1 {
			faults = append(faults, &fault.Error{
				Path: rulePath(i), Got: "otherwise must come last: no rule after it can match",
			})
		}
	}
	if len(faults) == 0 {
		faults = checkLimits(rules)
	}
	if err := joinFaults(faults); err != nil {
		return nil, err
	}
	return &Router{rules: slices.Clone(rules)}, nil
}

// Must returns r and panics if err is not nil. It is for package variables.
func Must(r *Router, err error) *Router {
	if err != nil {
		panic(err)
	}
	return r
}

// allFaults returns the faults of the rule and of its predicates.
func (r *Rule) allFaults() []*fault.Error {
	if r.when == nil {
		if !r.otherwise && len(r.faults) == 0 {
			return []*fault.Error{{Path: "$", Got: "the rule is missing: use When or Otherwise"}}
		}
		return r.faults
	}
	faults := slices.Clip(r.faults)
	if r.when.depth() > maxDepth {
		return append(faults, &fault.Error{
			Path: "$.when", Got: fmt.Sprintf("predicates are nested more than %d deep", maxDepth),
		})
	}
	r.when.visit("$.when", func(path string, n *node) {
		for _, e := range n.faults {
			faults = append(faults, moveFault(path, e))
		}
	})
	return faults
}

// Next returns the agent of the first rule that matches, or false if no rule
// matches. It reads one version of the state, with the rights of the handle. A
// rule that mentions a field that is hidden from the handle does not match,
// wherever in the rule the field occurs. The same applies to a field that the
// state does not have.
func (r *Router) Next(st *state.State) (agent string, ok bool) {
	if r == nil {
		return "", false
	}
	st = st.Snapshot()
	for _, rule := range r.rules {
		if yes, _ := rule.evaluate(st, nil); yes {
			return rule.agent, true
		}
	}
	return "", false
}

// evaluate reports whether the rule matches a snapshot. A rule with an error
// does not match.
func (r *Rule) evaluate(st *state.State, t *trace) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	return r.when.evaluate(st, false, t)
}

// Check returns an error for each field that keeps a rule from ever matching if
// agent is routed in a state with this schema: either agent may not read the
// field, or the schema has no field of that name and type. The errors are those
// of [state.Field.Get], such as [state.ErrDenied]. The agent "" is the host.
// Check does not know what functions read.
func (r *Router) Check(schema *state.Schema, agent string) error {
	if r == nil {
		return nil
	}
	st := state.New(schema)
	types := fieldTypes(st)
	if agent != "" {
		st = st.As(agent)
	}
	var faults []*fault.Error
	for i, rule := range r.rules {
		if rule.when == nil {
			continue
		}
		rule.when.visit(rulePath(i)+".when", func(path string, n *node) {
			if n.fieldType == nil {
				return
			}
			_, err := n.ask(st)
			if typ, ok := types[n.name]; ok && typ != n.fieldType {
				err = &state.TypeError{Field: n.name, Path: "type", Want: typ.String(), Got: n.fieldType.String()}
			}
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				problem := "the rule for " + fault.Quote(rule.agent) + " never matches: " + stateText(err)
				faults = append(faults, &fault.Error{Path: path, Got: problem, Cause: err})
			}
		})
	}
	return joinFaults(faults)
}

// fieldTypes returns the types of the fields that a state's schema declares.
func fieldTypes(st *state.State) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range st.Fields() {
		types[f.Name] = f.GoType
	}
	return types
}

func rulePath(i int) string { return jsontext.Index("$.rules", i) }

// moveFault returns e with its path below path.
func moveFault(path string, e *fault.Error) *fault.Error {
	return fault.As(fault.Under(path, e))
}

// ErrInvalidRules is returned for rules that make no router, or that cannot
// match in a state.
var ErrInvalidRules = errors.New("route: invalid rules")

// rulesError joins what is wrong with rules. It is [ErrInvalidRules].
type rulesError []error

func (e rulesError) Error() string        { return errors.Join(e...).Error() }
func (e rulesError) Unwrap() []error      { return e }
func (e rulesError) Is(target error) bool { return target == ErrInvalidRules }

// invalidRules returns an error that is not about a place in the rules.
func invalidRules(format string, args ...any) error {
	return rulesError{fmt.Errorf("route: "+format, args...)}
}

// joinFaults returns the faults as one error of this package, one on each line.
func joinFaults(faults []*fault.Error) error {
	if len(faults) == 0 {
		return nil
	}
	errs := make(rulesError, len(faults))
	for i, e := range faults {
		errs[i] = fmt.Errorf("route: %w", e)
	}
	return errs
}

// stateText returns the text of an error of package state inside a longer text.
func stateText(err error) string { return strings.TrimPrefix(err.Error(), "state: ") }
