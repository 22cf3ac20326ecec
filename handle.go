package state

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/redact"
)

// handle is what a State consists of: rights to a branch, and a signature.
type handle struct {
	branch *engine.Branch
	schema *Schema
	rights *rights // nil: the host's
	opened *rights // of the handle that forked the branch, which no handle on it exceeds
	author *engine.Author
	family *family
	// overlay has the values that were given to With, nil for unset. It is
	// never changed.
	overlay map[engine.Address]*engine.Cell
	// covered has the secrets that were given to With and given anew. They are
	// not read any more, but texts may have them.
	covered *coveredSecret
	// lacks is told of each field that is used and that the schema does not have, or
	// has in another form, or it is nil. A function that answers yes or no cannot
	// return the error.
	lacks func(error)
}

// coveredSecret is a secret, and those that were covered before it.
type coveredSecret struct {
	secretCell
	before *coveredSecret
}

// family is what a state shares with its forks, snapshots and transactions.
type family struct {
	redactors redactorCache
	calls     knownCalls
	// strange are secrets that are stored with the state and for which its schema has
	// no secret field. It does not change once the state is used.
	strange []redact.Secret
	// tell is told of a field that is read and that the schema does not have. If it is
	// nil, the default Logger is. It does not change once the state is used.
	tell func(field string, err error)
	// forked is told of each fork, or is nil. It does not change once the state is used.
	forked func(*State)
	// encoded is what package wire has made of the conversation for the last request.
	encoded atomic.Value
}

// hostAuthor signs the writes of the host.
var hostAuthor = &engine.Author{}

// isNil reports whether the handle stands for that of a nil State.
func (h *handle) isNil() bool { return h.family == nothing.family }

// agent returns the name that signs the writes.
func (h *handle) agent() string { return h.author.Agent }

// view returns what the handle sees.
func (h *handle) view() engine.View {
	if h.rights == nil {
		return engine.View{}
	}
	return engine.View{Classes: h.rights.classes}
}

// denied returns the error for an operation that the handle has no right to.
func (h *handle) denied(op, field string) error {
	stranger := h.rights != nil && h.schema.team != nil && !h.schema.access.of(h.agent()).member
	return &AccessError{Op: op, Field: field, Agent: h.agent(), stranger: stranger}
}

// mayRead reports whether the handle may read a field.
func (h *handle) mayRead(sp *fieldSpec) bool {
	return h.rights == nil || h.rights.classes.Has(sp.slot.Class)
}

// mayWrite reports whether the handle may write a field.
func (h *handle) mayWrite(sp *fieldSpec) bool {
	return h.rights == nil || h.rights.write.Has(sp.slot.Number)
}

// locate returns the spec and the address of a name.
func (h *handle) locate(name string) (*fieldSpec, engine.Address, error) {
	if h.schema.names.mayContain(name) {
		if sp, ok := h.schema.byName[name]; ok {
			return sp, sp.address(), nil
		}
		if sp, ok := h.schema.former[name]; ok {
			return nil, engine.Address{}, sp.errFormerName(name)
		}
	}
	if !h.schema.open {
		return nil, engine.Address{}, h.unknownField(name)
	}
	sp := h.schema.keys
	return sp, engine.Address{Slot: &sp.slot, Key: name}, nil
}

// unknownField returns the error for a name that the schema does not have.
func (h *handle) unknownField(name string) error {
	return h.unfit(&unknownFieldError{name: name, schema: h.schema, rights: h.rights})
}

// unfit returns the error for a field that does not fit the schema.
func (h *handle) unfit(err error) error {
	if h.lacks != nil {
		h.lacks(err)
	}
	return err
}

// toRead is locate for a name that the handle may read.
func (h *handle) toRead(name string) (*fieldSpec, engine.Address, error) {
	sp, at, err := h.locate(name)
	if err == nil && !h.mayRead(sp) {
		err = h.denied("read", sp.nameAt(at))
	}
	return sp, at, err
}

// toWrite is locate for a name that the handle may write.
func (h *handle) toWrite(op, name string) (*fieldSpec, engine.Address, error) {
	sp, at, err := h.locate(name)
	if err == nil && !h.mayWrite(sp) {
		err = h.denied(op, sp.nameAt(at))
	}
	if err == nil && h.overlay != nil {
		err = h.given(sp, at)
	}
	return sp, at, err
}

// put commits an op that writes a value to a declared field.
func (h *handle) put(sp *fieldSpec, o engine.Op, v any) (err error) {
	if o.Update, err = h.store(sp, o.Address, v, o.Borrowed); err != nil {
		return err
	}
	return h.write(&o)
}

// store returns a value that a program writes as an update of a field.
func (h *handle) store(sp *fieldSpec, at engine.Address, v any, borrow bool) (engine.Update, error) {
	if sp.name == messagesName {
		v = h.sizedMessages(v)
	}
	return sp.store(at, v, borrow)
}

// rewrite commits a value of a declared field that compute derives from the
// current one, or nil.
func (h *handle) rewrite(sp *fieldSpec, compute func(current any) (any, error)) error {
	return h.explain(h.branch.Rewrite(h.view(), h.computed(sp), func(c *engine.Cell) (engine.Update, error) {
		return h.compute(sp, c, compute)
	}))
}

// rewriteShared is rewrite for a shared field. It may retain compute.
func (h *handle) rewriteShared(sp *fieldSpec, compute func(current any) (any, error)) error {
	return h.explain(h.branch.RewriteKept(h.view(), h.computed(sp), func(c *engine.Cell) (engine.Update, error) {
		return h.compute(sp, c, compute)
	}))
}

// computed returns the op that stores a computed value.
func (h *handle) computed(sp *fieldSpec) engine.Op {
	o := sp.newOp(OpUpdate, replaceHandler)
	o.Author, o.Computed = h.author, true
	return o
}

// compute returns the update of a cell that a function computes.
func (h *handle) compute(sp *fieldSpec, c *engine.Cell, compute func(current any) (any, error)) (engine.Update, error) {
	var current any
	if c != nil {
		current = sp.form.Load(c.Value)
	}
	v, err := compute(current)
	if err != nil {
		return engine.Update{}, err
	}
	return h.store(sp, sp.address(), v, false)
}

// write signs and commits one op.
func (h *handle) write(o *engine.Op) error {
	o.Author = h.author
	if err := h.branch.Write(h.view(), o); err != nil {
		return h.explainWrite(o.Address, err)
	}
	return nil
}

// explainWrite is explain for an error of writing to an address. It names the
// field where the engine does not.
func (h *handle) explainWrite(at engine.Address, err error) error {
	if err == engine.ErrFrozen || err == engine.ErrJoined {
		return fieldError(fault.Clip(addressName(at)), err)
	}
	return h.explain(err)
}

// delete commits the deletion of an address and reports whether it was set.
func (h *handle) delete(sp *fieldSpec, at engine.Address) (bool, error) {
	o := sp.newOp(OpDelete, nil)
	o.Address, o.Author = at, h.author
	done, err := h.branch.Delete(h.view(), &o)
	return done, h.explainWrite(at, err)
}

// explain returns an error of the engine in the terms of the schema.
func (h *handle) explain(err error) error {
	switch e := err.(type) {
	case *engine.FullError:
		return &LimitError{Name: "Keys", Limit: e.Limit, Got: e.Got}
	case *engine.TurnError:
		sp := e.Slot.Form.(*fieldSpec) // appending to the history runs no code of users
		by := sp.handler
		if holder, ok := e.Holder.(*handler); ok {
			by = holder
		}
		return &ConflictError{Fields: []string{addressName(e.Address)}, why: noTurn(by.name)}
	case *engine.OvertakenError:
		return &ConflictError{Fields: addressNames(e.Addresses), why: overtaken}
	case *engine.OverlapError:
		return &ConflictError{Fields: addressNames(e.Addresses)}
	}
	return err
}

// addressName returns the name of a field, of an undeclared key or of the
// history.
func addressName(at engine.Address) string {
	if sp, ok := at.Slot.Form.(*fieldSpec); ok {
		if sp.slot.Keyed {
			return at.Key
		}
		return sp.name
	}
	return historyName
}

func addressNames(addresses []engine.Address) []string {
	names := make([]string, len(addresses))
	for i, at := range addresses {
		names[i] = addressName(at)
	}
	return names
}

// fieldName is addressName, but empty for the history.
func fieldName(at engine.Address) string {
	if _, ok := at.Slot.Form.(*fieldSpec); !ok {
		return ""
	}
	return addressName(at)
}

// readable yields the addresses in a frozen branch that the handle may read:
// fields in the order of the schema, then the undeclared keys that are set.
func (h *handle) readable(f *engine.Branch) iter.Seq2[*fieldSpec, engine.Address] {
	return func(yield func(*fieldSpec, engine.Address) bool) {
		for _, sp := range h.schema.fields {
			if h.mayRead(sp) && !yield(sp, sp.address()) {
				return
			}
		}
		keys := h.schema.keys
		if !h.mayRead(keys) {
			return
		}
		for _, key := range f.Keys() {
			if !yield(keys, engine.Address{Slot: &keys.slot, Key: key}) {
				return
			}
		}
	}
}

// storedValue is a value that is set.
type storedValue struct {
	spec *fieldSpec
	at   engine.Address
	name string
	cell *engine.Cell
}

// values yields all values that the handle may read, as they are at one moment:
// fields in the order of the schema, then undeclared keys in no order.
func (h *handle) values() iter.Seq[storedValue] {
	return func(yield func(storedValue) bool) {
		f := h.scan()
		for _, sp := range h.schema.fields {
			if !h.mayRead(sp) {
				continue
			}
			if c := f.Slot(&sp.slot); c != nil && !yield(storedValue{sp, sp.address(), sp.name, c}) {
				return
			}
		}
		keys := h.schema.keys
		if !h.mayRead(keys) {
			return
		}
		for key, c := range f.All() {
			if !yield(storedValue{keys, engine.Address{Slot: &keys.slot, Key: key}, key, c}) {
				return
			}
		}
	}
}

// sortedNames returns the keys of values in the order of the schema, and
// undeclared ones after that.
func (h *handle) sortedNames(values map[string]any) []string {
	names := slices.AppendSeq(make([]string, 0, len(values)), maps.Keys(values))
	slot := func(name string) int {
		if sp, ok := h.schema.byName[name]; ok {
			return sp.slot.Number
		}
		return h.schema.keys.slot.Number
	}
	slices.SortFunc(names, func(a, b string) int {
		switch c := slot(a) - slot(b); {
		case c != 0:
			return c
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return names
}

// unknownFieldError is [ErrUnknownField] for a name. Its text suggests others.
type unknownFieldError struct {
	name   string
	schema *Schema
	rights *rights // of the handle, which is told only what it may read
}

func (e *unknownFieldError) Error() string {
	h := handle{schema: e.schema, rights: e.rights}
	var known []string
	for _, sp := range e.schema.fields {
		if h.mayRead(sp) && sp != e.schema.messages() {
			known = append(known, sp.name)
		}
	}
	hint := fault.Suggest(e.name, known)
	if e.schema == openSchema {
		hint = ": a Field needs a State whose schema declares it, and New(nil) has none"
	}
	return fmt.Sprintf("state: %q: unknown field%s", fault.Clip(e.name), hint)
}

// Is reports whether target is [ErrUnknownField].
func (e *unknownFieldError) Is(target error) bool { return target == ErrUnknownField }

// given returns the error for a write to an address that was given to With.
func (h *handle) given(sp *fieldSpec, at engine.Address) error {
	if _, ok := h.overlay[at]; !ok {
		return nil
	}
	return asKind(ErrReadOnly, fieldError(sp.nameAt(at), errors.New("read-only: the value was given to With")))
}

// errFormerName is the error for a value under a former name of the field.
func (sp *fieldSpec) errFormerName(name string) error {
	return fieldError(fault.Clip(name), fmt.Errorf("%w, it is named %s now", ErrUnknownField, fault.Quote(sp.name)))
}

// slot returns the cell of a declared field as the handle reads it, or nil.
func (h *handle) slot(sp *fieldSpec) *engine.Cell {
	if h.overlay != nil {
		if c, ok := h.overlay[sp.address()]; ok {
			return c
		}
	}
	return h.branch.Slot(&sp.slot)
}

// get returns the cell at an address as the handle reads it, or nil.
func (h *handle) get(at engine.Address) *engine.Cell {
	if h.overlay != nil {
		if c, ok := h.overlay[at]; ok {
			return c
		}
	}
	return h.branch.Get(at)
}

// scan returns the content at one moment as the handle reads it, for a reader
// that lists what is set.
func (h *handle) scan() *engine.Branch { return h.overlaid(h.branch.Scan()) }

// overlaid returns a frozen branch with the values that were given to With.
func (h *handle) overlaid(f *engine.Branch) *engine.Branch {
	if h.overlay == nil {
		return f
	}
	return f.With(h.overlay)
}
