package route

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state"
)

// maxDepth bounds how deep combinations are nested, so that Parse reads whatever
// MarshalJSON writes.
const maxDepth = 64

// Rule names an agent and when it is next. It is made by [When] or [Otherwise];
// the zero Rule is a mistake.
type Rule struct {
	agent string
	when  *node // nil for otherwise
	made  bool
	wrong []mistake
}

// When returns the rule that agent is next if p holds.
func When(p Predicate, agent string) Rule {
	if p.node == nil {
		p = nothing()
	}
	r := Rule{agent: agent, when: p.node, made: true}
	if err := checkName(agent); err != nil {
		r.wrong = append(r.wrong, mistake{".agent", err})
	}
	return r
}

// Otherwise returns the rule that agent is next in any case. It comes last.
func Otherwise(agent string) Rule {
	r := Rule{agent: agent, made: true}
	if err := checkName(agent); err != nil {
		r.wrong = append(r.wrong, mistake{".otherwise", err})
	}
	return r
}

// Router names the next agent by the first of its rules that matches. It is
// immutable, safe for concurrent use, and serves any number of states.
type Router struct{ rules []Rule }

// New returns a router. What is wrong with its rules is reported at once, each
// mistake with its path in the JSON form of the router. Predicates nest up to 64
// deep. A router without rules never names an agent.
func New(rules ...Rule) (*Router, error) {
	r := &Router{}
	var errs []error
	for i, rule := range rules {
		path := rulePath(i)
		for _, err := range rule.mistakes() {
			errs = append(errs, &pathError{path + err.at, err.err})
		}
		if rule.made && rule.when == nil && i < len(rules)-1 {
			errs = append(errs, &pathError{path, errors.New("otherwise must come last: no rule after it can match")})
		}
		r.rules = append(r.rules, rule)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// Must returns r, for package variables: it panics if err is not nil.
func Must(r *Router, err error) *Router {
	if err != nil {
		panic(err)
	}
	return r
}

// mistakes returns all that is wrong with a rule.
func (r *Rule) mistakes() []mistake {
	if !r.made {
		return []mistake{{"", errors.New("the rule is missing: use When or Otherwise")}}
	}
	wrong := slices.Clip(r.wrong)
	if r.when == nil {
		return wrong
	}
	if r.when.depth() > maxDepth {
		return append(wrong, mistake{".when", fmt.Errorf("predicates are nested more than %d deep", maxDepth)})
	}
	r.when.each(".when", func(path string, n *node) {
		for _, m := range n.wrong {
			wrong = append(wrong, mistake{path + m.at, m.err})
		}
	})
	return wrong
}

// Next returns the agent of the first rule that matches, and false if none does.
// It reads one version of the state, with the rights of the handle: a rule that
// mentions a field that is hidden from it does not match, however the field is
// mentioned, nor does one with a field that the state does not have.
func (r *Router) Next(st *state.State) (agent string, ok bool) {
	if r == nil {
		return "", false
	}
	st = st.Snapshot()
	for _, rule := range r.rules {
		if yes, _ := rule.eval(st, nil); yes {
			return rule.agent, true
		}
	}
	return "", false
}

// eval reports whether the rule matches a snapshot. With an error it does not.
func (r *Rule) eval(st *state.State, t *trace) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	return r.when.eval(st, false, t)
}

// Check returns an error for each field that keeps a rule from ever matching
// when the router is asked with the handle of agent in a state with this schema:
// the agent may not read it, or there is no field of that name and type. The
// errors are those of [state.Field.Get], such as [state.ErrDenied]. The agent ""
// is the host. What functions read is not known.
func (r *Router) Check(schema *state.Schema, agent string) error {
	if r == nil {
		return nil
	}
	st := state.New(schema)
	types := fieldTypes(st)
	if agent != "" {
		st = st.As(agent)
	}
	var errs []error
	for i, rule := range r.rules {
		if rule.when == nil {
			continue
		}
		rule.when.each(rulePath(i)+".when", func(path string, n *node) {
			if n.typ == nil {
				return
			}
			_, err := n.ask(st)
			if typ, ok := types[n.name]; ok && typ != n.typ {
				err = &state.TypeError{Field: n.name, Path: "type", Want: typ.String(), Got: n.typ.String()}
			}
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				errs = append(errs, &pathError{path + ": the rule for " + quote(rule.agent) + " never matches", err})
			}
		})
	}
	return errors.Join(errs...)
}

// fieldTypes returns the types of the fields that a state's schema declares.
func fieldTypes(st *state.State) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range st.Fields() {
		types[f.Name] = f.GoType
	}
	return types
}

func rulePath(i int) string { return "$.rules[" + strconv.Itoa(i) + "]" }

// pathError says where in a router something is wrong.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string {
	return "route: " + e.path + ": " + strings.TrimPrefix(e.err.Error(), "state: ")
}

func (e *pathError) Unwrap() error { return e.err }

// quote returns a name for an error: quoted, and not too long.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		n := most
		for !utf8.RuneStart(name[n]) {
			n--
		}
		name = name[:n] + "…"
	}
	return strconv.Quote(name)
}
