package state

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/exp/maps"
)

// Team lists the agents that share a state, as a hierarchy: each name with the
// agents below it. A name that is below nobody is at the top. Being above
// somebody gives no rights by itself. A schema with a Team has access control.
type Team map[string][]string

// Scope says who may read or write a field. The zero value is Private.
type Scope struct {
	public bool
	only   string // the names, each between NULs; a string keeps Scope comparable
}

var (
	// Private is the scope of a field that only its owner may use, or only the
	// host if the field has no owner.
	Private Scope
	// Public is the scope of a field that the whole team may use.
	Public = Scope{public: true}
)

// Only returns the scope of a field that the named agents and its owner may use.
func Only(agents ...string) Scope {
	names := slices.Clone(agents)
	for i, name := range names {
		// No agent has such a name, and it must not read as two.
		names[i] = strings.ReplaceAll(name, "\x00", "\ufffd")
	}
	slices.Sort(names)
	var s Scope
	for _, name := range slices.Compact(names) {
		s.only += "\x00" + name
	}
	return s
}

// agents returns the names given to Only.
func (s Scope) agents() []string {
	if s.only == "" {
		return nil
	}
	var names []string
	start := 1
	for i := 1; i <= len(s.only); i++ {
		if i == len(s.only) || s.only[i] == 0 {
			names = append(names, s.only[start:i])
			start = i + 1
		}
	}
	return names
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

// admits reports whether agent is in the scope of a field of owner.
func (s Scope) admits(agent, owner string) bool {
	return s.public || agent == owner && owner != "" || slices.Contains(s.agents(), agent)
}

// members returns the names of the team, sorted.
func (t Team) members() []string {
	all := maps.Keys(t)
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
	parents := maps.Keys(t)
	slices.Sort(parents)
	for _, parent := range parents {
		for _, agent := range t[parent] {
			if other, ok := above[agent]; ok {
				errs = append(errs, fmt.Errorf("state: team: agent %q is below %q and %q", agent, other, parent))
				continue
			}
			above[agent] = parent
		}
	}
	for _, agent := range t.members() {
		if err := checkName(agent, 0); err != nil {
			errs = append(errs, fmt.Errorf("state: team: %w", err))
		}
		seen := map[string]bool{}
		for at, ok := agent, true; ok; at, ok = above[at] {
			if seen[at] {
				errs = append(errs, fmt.Errorf("state: team: agent %q is below itself", agent))
				break
			}
			seen[at] = true
		}
	}
	return errs
}

// bits is a set of small numbers: slots of fields, or read classes.
type bits []uint64

func (b bits) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

func (b bits) with(i int) bits {
	for len(b) <= i>>6 {
		b = append(b, 0)
	}
	b[i>>6] |= 1 << (i & 63)
	return b
}

func (b bits) and(c bits) bits {
	out := make(bits, len(b))
	for i := range out {
		out[i] = b[i] & c[i]
	}
	return out
}

func (b bits) within(c bits) bool {
	for i := range b {
		if b[i]&^c[i] != 0 {
			return false
		}
	}
	return true
}

// rights is what the holder of a handle may do, compiled from the schema. The
// host has none of these: its handles hold a nil *rights.
type rights struct {
	member  bool // in the team, or there is no team
	read    bits // by slot
	write   bits // by slot
	classes bits // read classes whose changes it may see
}

// and returns the rights that both grant.
func (r *rights) and(o *rights) *rights {
	if r == nil {
		return o
	}
	return &rights{
		member:  r.member && o.member,
		read:    r.read.and(o.read),
		write:   r.write.and(o.write),
		classes: r.classes.and(o.classes),
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
	return (!r.member || o.member) && r.read.within(o.read) && r.write.within(o.write) && r.classes.within(o.classes)
}

// As returns a handle on the same data with the rights of agent, which signs
// its writes. On a handle that is already bound to an agent it narrows to what
// both may do, and the first goes on signing. An agent outside the team, and
// "", have no rights at all. It costs little; call it wherever a handle is
// passed on.
func (s *State) As(agent string) *State {
	h := *s.on()
	if h.rights == nil {
		h.signature = &signature{agent, h.cause}
	}
	h.rights = h.rights.and(h.schema.rightsOf(agent))
	return &State{handle: h}
}

// denied returns the error for an operation that the handle has no right to.
func (h *handle) denied(op, field string) error {
	return &AccessError{Op: op, Field: field, Agent: h.agent, stranger: h.rights != nil && h.schema.team != nil && !h.schema.rightsOf(h.agent).member}
}

// mayRead reports whether the handle may read the field of a slot.
func (h *handle) mayRead(slot int) bool { return h.rights == nil || h.rights.read.has(slot) }

// mayWrite reports whether the handle may write the field of a slot.
func (h *handle) mayWrite(slot int) bool { return h.rights == nil || h.rights.write.has(slot) }

// sees reports whether changes of a read class show to the handle.
func (h *handle) sees(class int) bool { return h.rights == nil || h.rights.classes.has(class) }

// member reports whether the handle may use undeclared keys, which are public.
func (h *handle) member() bool { return h.rights == nil || h.rights.member }
