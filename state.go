package state

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"golang.org/x/exp/maps"

	"github.com/agentstate/state/internal/fault"
)

// State is a handle on what the agents, tools and routers of a network share.
// [New] makes one; As, Fork, Snapshot, At, WithCause and Update derive others,
// which can be used wherever a *State can. All methods are safe for concurrent
// use. Values are copied on the way in and on the way out.
//
// A nil *State, and the zero State, is an empty snapshot: reading finds nothing
// and writing is [ErrReadOnly].
type State struct {
	_ noCopy
	handle
}

// handle is what a State is: rights to a branch, and a signature.
type handle struct {
	branch *branch
	schema *Schema
	rights *rights // nil: the host's
	*signature
}

// signature is what a handle's writes bear in the journal.
type signature struct{ agent, cause string }

var unsigned = &signature{}

var (
	openSchema *Schema // of New(nil)
	nothing    *State  // what a nil *State stands for
)

func init() {
	openSchema = MustSchema(AllowUndeclared)
	nothing = New(openSchema).Snapshot()
}

// New returns an empty state, and on it the host's handle, which has all rights.
// A nil schema stands for one that accepts any name.
func New(schema *Schema) *State {
	if schema == nil {
		schema = openSchema
	}
	return &State{handle: handle{branch: newBranch(schema), schema: schema, signature: unsigned}}
}

// on returns the state's handle.
func (s *State) on() *handle {
	if s == nil || s.branch == nil {
		return &nothing.handle
	}
	return &s.handle
}

// Agent returns the name that signs this handle's writes; empty for the host.
func (s *State) Agent() string { return s.on().agent }

// WithCause returns a handle whose writes bear cause in the journal, such as the
// id of the tool call that they come from.
func (s *State) WithCause(cause string) *State {
	h := *s.on()
	h.signature = &signature{h.agent, cause}
	return &State{handle: h}
}

// Snapshot returns a frozen view of the present content: it never changes, and
// writing to it is [ErrReadOnly]. It costs the same however much there is, and
// keeps alive only what has been replaced since.
func (s *State) Snapshot() *State {
	h := *s.on()
	h.branch = h.branch.freeze()
	return &State{handle: h}
}

// KV returns the door by name. It is cheap.
func (s *State) KV() *KV { return &KV{s} }

// History returns the stack of inference results. It is cheap.
func (s *State) History() *History { return &History{s} }

// spec returns the spec of a slot.
func (s *Schema) spec(slot int) *spec {
	if slot < 0 {
		return undeclaredSpec
	}
	return s.specs[slot]
}

// named returns the spec that a name stands for, and the key if the schema does
// not declare it.
func (h *handle) named(name string) (*spec, string, error) {
	if sp, ok := h.schema.byName[name]; ok {
		return sp, "", nil
	}
	if !h.schema.open {
		return nil, "", fieldError(fault.Clip(name), ErrUnknownField)
	}
	return undeclaredSpec, name, nil
}

// may returns an error if the handle has no right to read, or else write, what a
// name stands for.
func (h *handle) may(op string, write bool, sp *spec, key string) error {
	switch {
	case sp.slot < 0 && !h.member():
		return h.denied(op, fault.Clip(key))
	case sp.slot >= 0 && !write && !h.mayRead(sp.slot), sp.slot >= 0 && write && !h.mayWrite(sp.slot):
		return h.denied(op, sp.name)
	}
	return nil
}

// Patch assigns values by name, all as one version or none: names that are
// absent are left alone, nil deletes, and the handlers have no part in it.
// Values are converted if nothing is lost. The errors of all bad fields are
// joined, in the order of the schema and then of the names.
func (s *State) Patch(values map[string]any) error {
	h := s.on()
	if reentered() {
		return errReentered
	}
	if err := h.branch.alive(); err != nil {
		return err
	}
	var errs []error
	var ops []op
	for _, name := range h.sortedNames(maps.Keys(values)) {
		o, err := h.assignment(name, values[name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ops = append(ops, o)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return h.writeAll(ops)
}

// assignment returns the op that assigns a value to a name, validated.
func (h *handle) assignment(name string, v any) (op, error) {
	sp, key, err := h.named(name)
	if err == nil {
		err = h.may("patch", true, sp, key)
	}
	if err == nil && sp.slot < 0 {
		err = checkName(name, h.schema.limits.NameBytes)
	}
	if err != nil {
		return op{}, err
	}
	o := op{kind: OpReplace, spec: sp, key: key, by: h.signature}
	if v == nil {
		o.kind = OpDelete
		return o, nil
	}
	lim := h.schema.limits.value()
	v, o.size, err = sp.convert(v, lim)
	if err != nil {
		return o, o.about(err)
	}
	o.value = sp.hide(v)
	r, err := o.step(nil, lim)
	if err != nil {
		return o, err
	}
	o.value = sp.hide(r.value)
	return o, sp.check(r)
}

// about puts the name of an undeclared key into an error of its values.
func (o *op) about(err error) error {
	if err == nil || o.spec.slot >= 0 {
		return err
	}
	switch e := err.(type) {
	case *TypeError:
		e.Field = fault.Clip(o.key)
	case *LimitError:
		if e.Name != "Keys" {
			e.Field = fault.Clip(o.key)
		}
	case *aboutError:
		if e.where == "" {
			e.field = fault.Clip(o.key)
		}
	}
	return err
}

// sortedNames sorts names in the order of the schema, and undeclared ones after
// that.
func (h *handle) sortedNames(names []string) []string {
	slot := func(name string) int {
		if sp, ok := h.schema.byName[name]; ok {
			return sp.slot
		}
		return order(-1)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := slot(a) - slot(b); c != 0 {
			return c
		}
		if a < b {
			return -1
		}
		return 1
	})
	return names
}

// writeAll commits ops that take no account of what is there, as one version.
// Deletions of what is not there are left out.
func (h *handle) writeAll(ops []op) error {
	return h.transact(false, func(t *tree) ([]edit, error) {
		edits := make([]edit, 0, len(ops))
		for _, o := range ops {
			e := edit{spec: o.spec, key: o.key, from: t.get(o.spec, o.key), ops: []op{o}, effect: effect{over: true}}
			if o.kind != OpDelete {
				e.to = &result{bare(o.value), o.size}
			} else if h.branch.get(o.spec, o.key) == nil {
				continue // and that is a read
			}
			edits = append(edits, e)
		}
		return edits, nil
	})
}

// EndRun ends a run: it deletes all Ephemeral fields, as one version.
func (s *State) EndRun() error {
	h := s.on()
	if reentered() {
		return errReentered
	}
	if err := h.branch.alive(); err != nil {
		return err
	}
	var ops []op
	for slot, sp := range h.schema.specs {
		if !sp.ephemeral {
			continue
		}
		if !h.mayWrite(slot) {
			return h.denied("end run", sp.name)
		}
		ops = append(ops, op{kind: OpDelete, spec: sp, by: h.signature})
	}
	return h.writeAll(ops)
}

// Revert makes the content of a snapshot, or of any other frozen state with the
// same schema, the next version. Nothing of the history is rewritten. Secret
// fields are left as they are. It is the host's.
func (s *State) Revert(to *State) error {
	h, past := s.on(), to.on()
	switch {
	case h.rights != nil || past.rights != nil:
		bound := h
		if h.rights == nil {
			bound = past
		}
		return bound.denied("revert", "")
	case past.schema != h.schema:
		return errors.New("state: revert: to a state with another schema")
	case past.branch.alive() == nil:
		return errors.New("state: revert: not to a snapshot")
	}
	if reentered() {
		return errReentered
	}
	target := past.branch.tree.Load()
	// Comparing may call methods of the fields' types.
	return h.transact(true, func(*tree) ([]edit, error) {
		f := h.freeze()
		t := f.tree.Load()
		var edits []edit
		revert := func(sp *spec, key string) {
			from, old := f.get(sp, key), target.get(sp, key)
			if sp.secret || sameEntry(sp, from, old) {
				return
			}
			o := op{kind: OpRevert, spec: sp, key: key, by: h.signature}
			if sp.slot == historySlot {
				o.class = messagesClass(h.schema)
			}
			if old != nil {
				o.value, o.size = old.value, old.size
			}
			edits = append(edits, edit{spec: sp, key: key, from: from, to: resultOf(old), ops: []op{o}, effect: effect{over: true}})
		}
		for _, sp := range h.schema.specs {
			revert(sp, "")
		}
		keys := map[string]bool{}
		for _, side := range []*tree{t, target} {
			for key := range side.keys.All() {
				keys[key] = true
			}
		}
		for _, key := range h.sortedNames(maps.Keys(keys)) {
			revert(undeclaredSpec, key)
		}
		return edits, nil
	})
}

type contextKey struct{}

// NewContext returns a context that carries the handle s.
func NewContext(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// FromContext returns the handle that the context carries, if it does.
func FromContext(ctx context.Context) (*State, bool) {
	s, ok := ctx.Value(contextKey{}).(*State)
	return s, ok && s != nil
}

// Get returns the value under a name, converted to T if nothing is lost. Its
// errors are those of [Field.Get]; a value that does not convert is a
// [TypeError].
func Get[T any](s *State, name string) (T, error) {
	var zero T
	h := s.on()
	sp, key, err := h.named(name)
	if err == nil {
		err = h.may("read", false, sp, key)
	}
	if err != nil {
		return zero, err
	}
	e := h.branch.get(sp, key)
	if e == nil {
		return zero, fieldError(fault.Clip(name), ErrNotFound)
	}
	v := sp.out(e.value)
	if t, ok := v.(T); ok {
		return t, nil
	}
	to, err := newSpec(fault.Clip(name), reflect.TypeFor[T]())
	if err != nil {
		return zero, err
	}
	to.secret = sp.secret
	c, _, err := to.convert(v, h.schema.limits.value())
	if err != nil {
		return zero, err
	}
	return as[T](c), nil
}
