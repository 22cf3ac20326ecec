package state

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/value"
)

// Schema declares the fields of a state: their types, how their values combine,
// and who may use them. It is immutable and safe for concurrent use; any number
// of states can share one.
type Schema struct {
	specs   []*spec // by slot; messages and the history come first
	byName  map[string]*spec
	team    Team
	open    bool // accepts names it does not declare
	limits  Limits
	members map[string]*rights // of the team; without a team empty
	all     *rights            // of any named agent when there is no team
	none    *rights            // of "" and of strangers
	classes []string           // the readers of each class, as a comparable key
	results map[string]int     // the read class of each agent's results
	given   Limits             // as they were declared
}

// The first slots of every schema.
const (
	messagesSlot = iota
	historySlot
	firstSlot
)

// undeclaredClass is the read class of undeclared keys: the whole team.
const undeclaredClass = 0

// Part is what a schema is made of: a *[Field], a [Team], [Limits] or
// [AllowUndeclared].
type Part interface {
	// declare adds the part to a schema that is being made.
	declare(*schemaDraft)
}

// AllowUndeclared opens a schema: names that it does not declare are accepted.
// They hold any value, are replaced when set, and are public.
const AllowUndeclared = undeclared(true)

type undeclared bool

func (u undeclared) declare(d *schemaDraft) { d.schema.open = bool(u) }

// Limits bounds what a state holds. Zero is the default, a negative number is
// no limit. What exceeds a limit is refused with a [LimitError], but for
// Journal, which forgets its oldest changes.
type Limits struct {
	NameBytes  int // bytes of a field's name; 256
	ValueBytes int // bytes of one field's value, about its length as JSON; 16 MiB
	Depth      int // how deep lists and objects nest in a value; 64
	Keys       int // fields that are set, as far as the writer can see; 131 072
	Results    int // inference results; 131 072
	Journal    int // changes kept, for each set of fields with the same readers; 4 096
}

func (l Limits) declare(d *schemaDraft) {
	if d.limited {
		d.fail(errors.New("state: Limits given twice"))
	}
	d.limited = true
	d.schema.limits = l
}

// effective returns the limits with defaults filled in; 0 is none.
func (l Limits) effective() Limits {
	def := func(n *int, d int) {
		switch {
		case *n == 0:
			*n = d
		case *n < 0:
			*n = 0
		}
	}
	def(&l.NameBytes, 256)
	def(&l.ValueBytes, 16<<20)
	def(&l.Depth, 64)
	def(&l.Keys, 1<<17)
	def(&l.Results, 1<<17)
	def(&l.Journal, 4096)
	return l
}

func (l Limits) value() value.Limits { return value.Limits{Bytes: l.ValueBytes, Depth: l.Depth} }

func (t Team) declare(d *schemaDraft) {
	if d.schema.team != nil {
		d.fail(errors.New("state: Team given twice"))
		return
	}
	d.schema.team, d.team = Team{}, d.part
	for agent, below := range t {
		d.schema.team[agent] = slices.Clone(below)
	}
}

// NewSchema returns the schema made of parts. All mistakes are reported at
// once, joined in the order of the parts. The settings of fields are copied.
func NewSchema(parts ...Part) (*Schema, error) {
	d := &schemaDraft{schema: &Schema{byName: map[string]*spec{}}, of: map[int]int{}}
	d.schema.specs = make([]*spec, firstSlot)
	for i, part := range parts {
		d.part = i
		if isNil(part) {
			d.fail(fmt.Errorf("state: schema: part %d is nil", i))
			continue
		}
		part.declare(d)
	}
	if d.schema.specs[messagesSlot] == nil {
		Messages.declare(d)
	}
	d.schema.specs[historySlot] = historySpec
	d.schema.given = d.schema.limits
	d.schema.limits = d.schema.limits.effective()
	d.finish()
	if len(d.errs) > 0 {
		return nil, d.mistakes()
	}
	return d.schema, nil
}

// MustSchema is NewSchema for package variables: it panics on a mistake.
func MustSchema(parts ...Part) *Schema {
	s, err := NewSchema(parts...)
	if err != nil {
		panic(err)
	}
	return s
}

func isNil(part Part) bool {
	if part == nil {
		return true
	}
	v := reflect.ValueOf(part)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// schemaDraft is a schema that is being made, with the mistakes found so far.
type schemaDraft struct {
	schema  *Schema
	limited bool
	part    int         // that is being declared or checked
	team    int         // the part that is the Team
	of      map[int]int // the part of each slot
	errs    []partError
}

type partError struct {
	part int
	err  error
}

func (d *schemaDraft) fail(errs ...error) {
	for _, err := range errs {
		d.errs = append(d.errs, partError{d.part, err})
	}
}

// mistakes returns what was found, in the order of the parts.
func (d *schemaDraft) mistakes() error {
	slices.SortStableFunc(d.errs, func(a, b partError) int { return a.part - b.part })
	errs := make([]error, len(d.errs))
	for i, e := range d.errs {
		errs[i] = e.err
	}
	return errors.Join(errs...)
}

// add gives a spec its slot.
func (d *schemaDraft) add(sp *spec) {
	if _, double := d.schema.byName[sp.name]; double {
		d.fail(fmt.Errorf("state: field %q: declared twice", sp.name))
		return
	}
	d.schema.byName[sp.name] = sp
	if sp.name == messagesName {
		sp.slot = messagesSlot
		d.schema.specs[messagesSlot] = sp
		d.of[messagesSlot] = d.part
		return
	}
	sp.slot = len(d.schema.specs)
	d.schema.specs = append(d.schema.specs, sp)
	d.of[sp.slot] = d.part
}

// finish checks what needs the whole schema and compiles the rights.
func (d *schemaDraft) finish() {
	s := d.schema
	d.part = d.team
	d.fail(s.team.check()...)
	members := s.team.members()
	for slot, sp := range s.specs {
		if slot == historySlot {
			continue
		}
		d.part = d.of[slot]
		if err := checkName(sp.name, s.limits.NameBytes); err != nil {
			d.fail(fmt.Errorf("state: field %q: %w", fault.Clip(sp.name), err))
		}
		d.checkAccess(sp, members)
	}
	if len(d.errs) == 0 {
		s.compileRights(members)
	}
}

func (d *schemaDraft) checkAccess(sp *spec, members []string) {
	fail := func(format string, args ...any) {
		d.fail(fmt.Errorf("state: field %q: "+format, append([]any{sp.name}, args...)...))
	}
	if d.schema.team == nil {
		if sp.name != messagesName && (sp.owner != "" || sp.read != Private || sp.write != Private) {
			fail("Owner, Read and Write need a Team in the schema")
		}
		return
	}
	for _, agent := range append(sp.read.agents(), sp.write.agents()...) {
		if !slices.Contains(members, agent) {
			fail("agent %q is not in the team", agent)
		}
	}
	if sp.owner != "" && !slices.Contains(members, sp.owner) {
		fail("owner %q is not in the team", sp.owner)
	}
	for _, agent := range members {
		if sp.write.admits(agent, sp.owner) && !sp.read.admits(agent, sp.owner) {
			fail("agent %q may write but not read it: Write must not be wider than Read", agent)
			return
		}
	}
}

// compileRights works out the rights of every member and the read classes: the
// fields with one set of readers make up a class.
func (s *Schema) compileRights(members []string) {
	grant := func() *rights {
		n := len(s.specs)>>6 + 1
		return &rights{read: make(bits, n), write: make(bits, n)}
	}
	s.none, s.all = grant(), grant()
	s.all.member = true
	s.members = map[string]*rights{}
	for _, agent := range members {
		s.members[agent] = grant()
		s.members[agent].member = true
	}
	s.class(members) // undeclaredClass
	for slot, sp := range s.specs {
		if slot == historySlot {
			continue
		}
		s.all.read.with(slot)
		s.all.write.with(slot)
		var readers []string
		for _, agent := range members {
			if sp.read.admits(agent, sp.owner) {
				readers = append(readers, agent)
				s.members[agent].read.with(slot)
			}
			if sp.write.admits(agent, sp.owner) {
				s.members[agent].write.with(slot)
			}
		}
		sp.class = s.class(readers)
	}
	// Who may not read the messages still sees its own results.
	s.results = map[string]int{}
	var readers []string
	for _, agent := range members {
		if s.members[agent].read.has(messagesSlot) {
			readers = append(readers, agent)
		}
	}
	for _, agent := range members {
		if !s.members[agent].read.has(messagesSlot) {
			own := append(slices.Clone(readers), agent)
			slices.Sort(own)
			s.results[agent] = s.class(own)
		}
	}
	for _, r := range []*rights{s.none, s.all} {
		r.classes = make(bits, len(s.classes)>>6+1)
	}
	for class, readers := range s.classes {
		s.all.classes.with(class)
		for _, agent := range members {
			r := s.members[agent]
			if r.classes == nil {
				r.classes = make(bits, len(s.classes)>>6+1)
			}
			if strings.Contains(readers, "\x00"+agent+"\x00") {
				r.classes.with(class)
			}
		}
	}
}

// class returns the read class of a set of readers, which must be sorted.
func (s *Schema) class(readers []string) int {
	key := classKey(readers)
	if i := slices.Index(s.classes, key); i >= 0 {
		return i
	}
	s.classes = append(s.classes, key)
	return len(s.classes) - 1
}

func classKey(readers []string) string { return "\x00" + strings.Join(readers, "\x00") + "\x00" }

// readers returns the readers of a class.
func (s *Schema) readers(class int) []string {
	return strings.FieldsFunc(s.classes[class], func(r rune) bool { return r == 0 })
}

// resultClass returns the read class of the results of an agent.
func (s *Schema) resultClass(agent string) int {
	if class, ok := s.results[agent]; ok {
		return class
	}
	return s.specs[messagesSlot].class
}

// messagesClass returns the read class of the messages as an op has it.
func messagesClass(s *Schema) int16 { return int16(s.specs[messagesSlot].class + 1) }

// resultClasses returns the read classes of the results that are on one stack
// and not on another.
func (s *Schema) resultClasses(from *stack, to *result) []int {
	now := emptyStack
	if to != nil {
		now = to.value.(*stack)
	}
	common := 0
	for common < min(from.results.Len(), now.results.Len()) && from.at(common) == now.at(common) {
		common++
	}
	seen := map[int]bool{}
	for _, st := range []*stack{from, now} {
		for i := common; i < st.results.Len(); i++ {
			seen[s.resultClass(st.at(i).agent)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// rightsOf returns what an agent may do.
func (s *Schema) rightsOf(agent string) *rights {
	switch {
	case agent == "":
		return s.none
	case s.team == nil:
		return s.all
	}
	if r, ok := s.members[agent]; ok {
		return r
	}
	return s.none
}

// checkName returns what is wrong with the name of a field or agent: it is one
// line of visible text, so that it can stand in prompts, logs and keys.
func checkName(name string, limit int) error {
	switch {
	case name == "":
		return &TypeError{Field: name, Path: "name", Want: "a name", Got: "nothing"}
	case limit > 0 && len(name) > limit:
		return &LimitError{Name: "NameBytes", Field: fault.Clip(name), Limit: limit, Got: len(name)}
	case !utf8.ValidString(name):
		return &TypeError{Field: fault.Clip(name), Path: "name", Want: "valid UTF-8", Got: "other bytes"}
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return &TypeError{Field: fault.Clip(name), Path: "name", Want: "one line of visible text", Got: fmt.Sprintf("%U", r)}
		}
	}
	return nil
}
