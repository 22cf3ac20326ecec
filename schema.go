package state

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/told"
	"github.com/agentstate/state/internal/value"
)

// Schema declares the fields of a state: their types, how their values combine,
// and which agents may use them. It is immutable and safe for concurrent use.
// Any number of states can share one.
type Schema struct {
	fields  []*fieldSpec // in the order of their slots; messages come first
	secrets []*fieldSpec // the Secret ones
	byName  map[string]*fieldSpec
	former  map[string]*fieldSpec // by the names that they had before
	names   nameFilter            // of byName and former
	keys    *fieldSpec            // of undeclared keys
	history *historyForm
	windows *fieldSpec      // of the conversation, which is no field of the program's
	stored  []*fieldSpec    // fields, and windows
	shared  map[string]bool // the present and former names of the Shared fields, nil without any
	layout  *engine.Layout

	team   Team
	access *access
	open   bool // accepts names that it does not declare
	limits Limits
	given  Limits      // the limits as they were declared
	told   *told.Names // of fields that it does not have
}

// The first slots of every schema. The other fields follow in their order, and
// after them the undeclared keys.
const (
	messagesSlot = iota
	historySlot
	windowsSlot
	firstSlot
)

const messagesDescription = "The conversation."

// messages returns the spec of the conversation.
func (s *Schema) messages() *fieldSpec { return s.fields[0] }

// Part is a part of a schema: a *[Field], a [Team], [Limits] or
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

// Limits bounds the content of a state. Zero is the default, and a negative
// number is no limit. A write that exceeds a limit fails with a [LimitError],
// except that the journal drops its oldest changes, and ResultBytes.
//
// One limit is the same for all: a message has at most 256 calls of tools, and
// so has the Output of a result. More are the [LimitError] Calls, also where a
// message is decoded.
type Limits struct {
	NameBytes int // bytes of a field's name (default 256)
	// ValueBytes bounds one value, about its length as JSON (default 16 MiB).
	// The whole conversation is one value: to keep its last messages, declare
	// Messages with the handler of a transcript.Trim. A result is three values:
	// its prompt, its history and the rest.
	ValueBytes int
	Depth      int // levels of lists and objects in a value (default 64)
	Keys       int // set fields that the writer sees (default 131 072)
	Results    int // inference results (default 131 072)
	Journal    int // changes that are kept (default 4 096)
	// ResultBytes is how much of the text of a tool's result a model is shown
	// (default 16 KiB, about 4 000 tokens): of a longer one, the beginning and the
	// end, with a note between them. The whole is stored. It holds for results that
	// are recorded from now on, see transcript.Shown.
	ResultBytes int
}

func (l Limits) declare(d *schemaDraft) {
	if d.limited {
		d.fail(errors.New("state: Limits given twice"))
	}
	d.limited = true
	d.schema.limits = l
}

// effective returns the limits with defaults filled in, where 0 is no limit.
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
	def(&l.ResultBytes, 16<<10)
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
// once, joined in the order of the parts, as [ErrInvalidSchema]. The settings
// of fields are copied.
func NewSchema(parts ...Part) (*Schema, error) {
	d := &schemaDraft{schema: &Schema{byName: map[string]*fieldSpec{}}, partOf: map[*fieldSpec]int{}}
	for i, part := range parts {
		d.part = i
		if isNil(part) {
			d.fail(fmt.Errorf("state: schema: part %d is nil", i))
			continue
		}
		part.declare(d)
	}
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

// Team returns a copy of the Team of the schema, nil if it has none.
func (s *Schema) Team() Team {
	if s == nil || s.team == nil {
		return nil
	}
	team := make(Team, len(s.team))
	for agent, below := range s.team {
		team[agent] = slices.Clone(below)
	}
	return team
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
	schema   *Schema
	messages *fieldSpec   // nil until it is declared
	declared []*fieldSpec // the other fields
	limited  bool
	part     int // that is being declared or checked
	team     int // the part that is the Team
	partOf   map[*fieldSpec]int
	errs     []partError
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

// failField is fail for a field.
func (d *schemaDraft) failField(name, format string, args ...any) {
	d.fail(fmt.Errorf("state: field %q: "+format, append([]any{name}, args...)...))
}

// failSetting is failField for an error of a setting.
func (d *schemaDraft) failSetting(name, setting string, err error) {
	d.fail(within(fmt.Sprintf("field %q: %s", name, setting), err))
}

// mistakes returns what was found, in the order of the parts.
func (d *schemaDraft) mistakes() error {
	slices.SortStableFunc(d.errs, func(a, b partError) int { return a.part - b.part })
	errs := make(schemaError, len(d.errs))
	for i, e := range d.errs {
		errs[i] = e.err
	}
	return errs
}

// add declares a field.
func (d *schemaDraft) add(sp *fieldSpec) {
	if _, double := d.schema.byName[sp.name]; double {
		d.failField(sp.name, "declared twice")
		return
	}
	d.schema.byName[sp.name] = sp
	d.partOf[sp] = d.part
	if sp.name == messagesName {
		d.messages = sp
	} else {
		d.declared = append(d.declared, sp)
	}
}

// addFormer notes the former names of a field.
func (d *schemaDraft) addFormer(sp *fieldSpec) {
	for _, name := range sp.was {
		if err := checkName(name, d.schema.limits.NameBytes); err != nil {
			d.failSetting(sp.name, "Was", err)
			continue
		}
		other := d.schema.byName[name]
		if other == nil {
			other = d.schema.former[name]
		}
		switch {
		case name == sp.name:
			d.failField(sp.name, "Was: %q is its present name", name)
		case other == sp:
			d.failField(sp.name, "Was: %q is given twice", name)
		case other != nil:
			d.failField(sp.name, "Was: %q is a name of %q", name, other.name)
		case d.schema.former == nil:
			d.schema.former = map[string]*fieldSpec{name: sp}
		default:
			d.schema.former[name] = sp
		}
	}
}

// finish checks what needs the whole schema and compiles it.
func (d *schemaDraft) finish() {
	s := d.schema
	s.given, s.limits = s.limits, s.limits.effective()
	if d.messages == nil {
		d.addMessages()
	}
	s.fields = append([]*fieldSpec{d.messages}, d.declared...)
	d.part = d.team
	d.fail(s.team.check()...)
	members := s.team.members()
	for _, sp := range s.fields {
		d.part = d.partOf[sp]
		if err := checkName(sp.name, s.limits.NameBytes); err != nil {
			d.fail(err)
		}
		d.checkAccess(sp, members)
		d.addFormer(sp)
	}
	d.checkRights(len(members))
	if len(d.errs) == 0 {
		s.compile()
	}
}

// maxRights bounds the agents of a team multiplied by the fields: each agent
// has a bit for each field.
const maxRights = 1 << 28

// checkRights refuses a team that is too large for its fields.
func (d *schemaDraft) checkRights(agents int) {
	fields := len(d.schema.fields)
	if !d.messages.read.public {
		fields += agents // each has results that are its own
	}
	if n := agents * fields; n > maxRights {
		d.part = d.team
		d.fail(&LimitError{Name: "Team", Limit: maxRights, Got: n})
	}
}

// addMessages declares the conversation as it is by default.
func (d *schemaDraft) addMessages() {
	sp, err := newFieldSpec(messagesName, reflect.TypeFor[[]Message](), cell.New)
	if err != nil {
		panic(err) // a bug of this package
	}
	sp.description, sp.read, sp.write = messagesDescription, Public, Public
	d.add(sp)
}

func (d *schemaDraft) checkAccess(sp *fieldSpec, members []string) {
	if d.schema.team == nil {
		conversation := sp.name == messagesName && sp.owner == "" && sp.read.only == "" && sp.write.only == ""
		if !conversation && (sp.owner != "" || sp.read != Private || sp.write != Private) {
			d.failField(sp.name, "Owner, Read and Write need a Team in the schema")
		}
		return
	}
	for _, agent := range append(sp.read.agents(), sp.write.agents()...) {
		if !inSorted(members, agent) {
			d.failField(sp.name, "agent %q is not in the team", agent)
		}
	}
	if sp.owner != "" && !inSorted(members, sp.owner) {
		d.failField(sp.name, "owner %q is not in the team", sp.owner)
	}
	if sp.read.public {
		return
	}
	readers := sp.read.admitted(members, sp.owner)
	for _, agent := range sp.write.admitted(members, sp.owner) {
		if !inSorted(readers, agent) {
			d.failField(sp.name, "agent %q may write but not read it: Write must not be wider than Read", agent)
			return
		}
	}
}

// compile gives the fields their slots and compiles the access control.
func (s *Schema) compile() {
	for name := range s.byName {
		s.names.add(name)
	}
	for name := range s.former {
		s.names.add(name)
	}
	s.told = &told.Names{}
	slots := firstSlot + len(s.fields) - 1
	s.access = newAccess(s.team, slots+1)
	s.keys = newKeysSpec(slots, s.access.add(slots, "", Public, Public), s.limits)
	s.layout = &engine.Layout{
		Slots: make([]*engine.Slot, slots), Keys: &s.keys.slot,
		MaxKeys: s.limits.Keys, Journal: s.limits.Journal,
	}
	for i, sp := range s.fields {
		slot := messagesSlot
		if i > 0 {
			slot = firstSlot + i - 1
		}
		sp.finish(slot, s.access.add(slot, sp.owner, sp.read, sp.write), s.limits.value())
		s.layout.Slots[slot] = &sp.slot
		if sp.form.Secret {
			s.secrets = append(s.secrets, sp)
		}
		if sp.slot.Kept {
			s.addShared(sp)
		}
	}
	messagesClass := s.messages().slot.Class
	s.history = newHistoryForm(historySlot, messagesClass, s.access.resultClasses(messagesClass),
		len(s.access.readers), s.limits.Results)
	s.layout.Slots[historySlot] = &s.history.slot
	w := newWindowsSpec(s.messages())
	w.finish(windowsSlot, s.access.add(windowsSlot, w.owner, w.read, w.write), s.limits.value())
	w.slot.Counted = false
	s.stored = append(slices.Clone(s.fields), w)
	s.windows, s.layout.Slots[windowsSlot] = w, &w.slot
	s.access.finish()
}

// addShared notes the names of a Shared field.
func (s *Schema) addShared(sp *fieldSpec) {
	if s.shared == nil {
		s.shared = map[string]bool{}
	}
	for _, name := range append([]string{sp.name}, sp.was...) {
		s.shared[name] = true
	}
}

// nameFilter is a set of names that may contain more than was added. It tells
// most undeclared keys from fields in less time than a map takes.
type nameFilter uint64

func (f *nameFilter) add(name string) { *f |= filterBit(name) }

func (f nameFilter) mayContain(name string) bool { return f&filterBit(name) != 0 }

// filterBit returns the bit of a name, which names of the same length, first
// and last byte share.
func filterBit(name string) nameFilter {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((n + 7*int(name[0]) + 31*int(name[n-1])) & 63)
}

// newKeysSpec returns the spec of the keys that a schema does not declare,
// which are public.
func newKeysSpec(slot, class int, limits Limits) *fieldSpec {
	sp, err := newFieldSpec("", reflect.TypeFor[any](), cell.New)
	if err != nil {
		panic(err) // a bug of this package
	}
	sp.slot.Keyed = true
	sp.read, sp.write = Public, Public
	sp.finish(slot, class, limits.value())
	return sp
}
