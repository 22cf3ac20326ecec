package loop

import (
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/tool"
)

// check returns what is wrong with a Loop for a State, before anybody is asked.
func (l *Loop) check(st *state.State) error {
	for _, name := range slices.Sorted(maps.Keys(l.Agents)) {
		if l.Agents[name].Ask == nil {
			return invalid("the agent %s of a Loop has no Ask", fault.Quote(name))
		}
		if err := checkMember(st, name); err != nil {
			return err
		}
	}
	if l.Budget != (Budget{}) {
		if err := l.Budget.check(st); err != nil {
			return err
		}
	}
	isSaid := func(m state.Message) bool { return m.Role() != "system" && m.Role() != "developer" }
	if !slices.ContainsFunc(state.Messages.GetOr(st, nil), isSaid) {
		return invalid("nobody has said anything: State.UserSays adds what the user says")
	}
	return nil
}

// checkMember returns an error if the Team of a State has no agent with a name: it
// would have no rights at all.
func checkMember(st *state.State, name string) error {
	team := st.Schema().Team()
	if name == "" || team == nil {
		return nil
	}
	members := inside.Members(team)
	if slices.Contains(members, name) {
		return nil
	}
	return invalid("the Team of the schema has no agent %s, which the Loop has; it has %q", fault.Quote(name), members)
}

// checkTools returns an error if two tools of an agent have one name.
func checkTools(agent string, tools []*tool.Tool) error {
	names := map[string]bool{}
	for _, t := range tools {
		switch {
		case t == nil:
		case names[t.Name()]:
			return invalid("two tools of the agent %s have the name %s", fault.Quote(agent), fault.Quote(t.Name()))
		default:
			names[t.Name()] = true
		}
	}
	return nil
}
