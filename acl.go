package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentstate/state/internal/engine"
)

// Team lists the agents that share a state, as a hierarchy: each name with the
// agents below it. A name that is below no other is at the top. Being above
// another agent gives no rights by itself. A schema with a Team has access
// control; without one, every agent may do everything.
type Team map[string][]string

// Scope says which agents may read or write a field. The zero value is Private.
type Scope struct {
	public bool
	only   string // the names, each after a NUL; a string keeps Scope comparable
}

var (
	// Private is the scope of a field that only its owner may use, or only the
	// host if the field has no owner.
	Private Scope
	// Public is the scope of a field that the whole team may use.
	Public = Scope{public: true}
)

// Only returns the scope of a field that the named agents and its owner may
// use.
func Only(agents ...string) Scope {
	names := slices.Clone(agents)
	for i, name := range names {
		// No agent has such a name, and it must not read as two.
		names[i] = strings.ReplaceAll(name, "\x00", "\ufffd")
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return Private
	}
	return Scope{only: "\x00" + strings.Join(names, "\x00")}
}

// agents returns the names given to Only.
func (s Scope) agents() []string {
	if s.only == "" {
		return nil
	}
	return strings.Split(s.only[1:], "\x00")
}

// String returns "private", "public" or the names given to Only.
func (s Scope) String() string {
	switch {
	case s.public:
		return "public"
	case s.only == "":
		return "private"
	}
	return fmt.Sprintf("only %q", s.agents())
}

// admitted returns the agents of a team that are in the scope of a field of
// owner, sorted. The result may be the team itself.
func (s Scope) admitted(team []string, owner string) []string {
	if s.public {
		return team
	}
	agents := s.agents()
	if owner != "" {
		agents = append(agents, owner)
	}
	agents = slices.DeleteFunc(agents, func(agent string) bool { return !inSorted(team, agent) })
	slices.Sort(agents)
	return slices.Compact(agents)
}

// inSorted reports whether sorted names contain a name.
func inSorted(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// members returns the names of the team, sorted.
func (t Team) members() []string {
	all := slices.Collect(maps.Keys(t))
	for _, below := range t {
		all = append(all, below...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// check returns what is wrong with the hierarchy.
func (t Team) check() []error {
	var errs []error
	above := map[string]string{}
	for _, parent := range slices.Sorted(maps.Keys(t)) {
		for _, agent := range t[parent] {
			if other, ok := above[agent]; ok {
				errs = append(errs, fmt.Errorf("state: team: agent %q is below %q and %q", agent, other, parent))
				continue
			}
			above[agent] = parent
		}
	}
	walks := map[string]int{} // the walk up the hierarchy that met an agent first
	for i, agent := range t.members() {
		if err := checkName(agent, 0); err != nil {
			errs = append(errs, within("team", err))
		}
		for at, ok := agent, true; ok; at, ok = above[at] {
			if walk := walks[at]; walk > 0 {
				if walk == i+1 {
					errs = append(errs, fmt.Errorf("state: team: agent %q is below itself", at))
				}
				break
			}
			walks[at] = i + 1
		}
	}
	return errs
}

// rights is what a bound handle may do. The host's handles have nil rights,
// which allow everything.
type rights struct {
	member bool        // in the team, or there is no team
	write  engine.Bits // the slots that it may write
	// classes are the visibility classes that it sees. It may read the fields
	// of these classes.
	classes engine.Bits
}

// and returns the rights that both grant.
func (r *rights) and(o *rights) *rights {
	if r == nil {
		return o
	}
	return &rights{
		member:  r.member && o.member,
		write:   r.write.And(o.write),
		classes: r.classes.And(o.classes),
	}
}

// within reports whether r grants nothing that o does not.
func (r *rights) within(o *rights) bool {
	switch {
	case o == nil:
		return true
	case r == nil:
		return false
	}
	return (!r.member || o.member) && r.write.Within(o.write) && r.classes.Within(o.classes)
}

// access is the access control of a schema, compiled from its team and the
// scopes of its fields.
//
// The fields that the same agents may read make up a visibility class. Whatever
// is counted or logged is kept by class, so that an agent observes nothing of
// the classes that it does not see. An agent may read a field if it sees its
// class.
type access struct {
	noTeam  bool
	team    []string // sorted
	members map[string]*rights
	all     *rights // of every named agent, if there is no team
	none    *rights // of "" and of agents outside the team

	readers    [][]string     // the readers of each class, sorted
	classIndex map[string]int // the class of readers, by classKey
}

// newAccess returns the access control for a number of slots.
func newAccess(team Team, slots int) *access {
	a := &access{
		noTeam:     team == nil,
		team:       team.members(),
		members:    map[string]*rights{},
		all:        &rights{member: true, write: engine.NewBits(slots)},
		none:       &rights{write: engine.NewBits(slots)},
		classIndex: map[string]int{},
	}
	for _, agent := range a.team {
		a.members[agent] = &rights{member: true, write: engine.NewBits(slots)}
	}
	return a
}

// add takes account of the scopes of a field and returns its class.
func (a *access) add(slot int, owner string, read, write Scope) int {
	a.all.write.Add(slot)
	for _, agent := range write.admitted(a.team, owner) {
		a.members[agent].write.Add(slot)
	}
	return a.class(read.admitted(a.team, owner))
}

// resultClasses returns the classes of the results of those agents that may not
// read the messages: they and the readers of the messages see these results.
func (a *access) resultClasses(messagesClass int) map[string]int {
	classes := map[string]int{}
	readers := a.readers[messagesClass]
	for _, agent := range a.team {
		if !inSorted(readers, agent) {
			own := append(slices.Clone(readers), agent)
			slices.Sort(own)
			classes[agent] = a.class(own)
		}
	}
	return classes
}

// class returns the class of sorted readers.
func (a *access) class(readers []string) int {
	key := classKey(readers)
	class, ok := a.classIndex[key]
	if !ok {
		class = len(a.readers)
		a.readers = append(a.readers, readers)
		a.classIndex[key] = class
	}
	return class
}

// classKey returns a string that no other readers have: names contain no NUL.
func classKey(readers []string) string { return strings.Join(readers, "\x00") }

// finish gives all agents the classes that they see.
func (a *access) finish() {
	n := len(a.readers)
	a.all.classes, a.none.classes = engine.NewBits(n), engine.NewBits(n)
	for _, r := range a.members {
		r.classes = engine.NewBits(n)
	}
	for class, readers := range a.readers {
		a.all.classes.Add(class)
		for _, agent := range readers {
			a.members[agent].classes.Add(class)
		}
	}
}

// of returns what an agent may do.
func (a *access) of(agent string) *rights {
	switch r, ok := a.members[agent]; {
	case agent == "":
		return a.none
	case ok:
		return r
	case a.noTeam:
		return a.all
	}
	return a.none
}
