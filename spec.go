package state

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
)

// fieldSpec is a field as a schema has compiled it. It is the [engine.Form] of
// its slot. Undeclared keys have one spec in common.
type fieldSpec struct {
	slot engine.Slot
	form cell.Form

	name        string // empty for undeclared keys
	description string
	updateRules string
	owner       string
	read, write Scope
	ephemeral   bool
	maxBytes    int
	was         []string
	convert     func(JSON) (any, error)

	direct   bool // form.Direct
	handler  *handler
	validate func(any) error

	onSet, onReplace engine.Op // as newOp makes them
}

// newFieldSpec returns the spec of a field of a type with default settings.
// newForm is [cell.New] or [cell.NewReference].
func newFieldSpec(name string, typ reflect.Type, newForm func(reflect.Type) (cell.Form, error)) (*fieldSpec, error) {
	form, err := newForm(typ)
	if err != nil {
		return nil, typeRefused(name, typ, err)
	}
	sp := &fieldSpec{name: name, form: form, handler: replaceHandler}
	if form.Elem != nil {
		sp.handler = appendHandler
	}
	return sp, nil
}

// typeRefused returns the error for a type whose values cannot be stored. Most
// such types can be those of a reference.
func typeRefused(name string, typ reflect.Type, err error) error {
	err = valueError(name, err)
	if wrong, ok := err.(*TypeError); ok {
		if _, err := cell.NewReference(typ); err == nil {
			wrong.Want += ", or a field that is Ephemeral and NoCopy"
		}
	}
	return err
}

// finish completes the spec when its settings and limits are known.
func (sp *fieldSpec) finish(number, class int, limits value.Limits) {
	sp.form.Limits = limits
	sp.direct = sp.form.Direct()
	sp.slot.Number, sp.slot.Class = number, class
	sp.slot.Counted, sp.slot.Secret = true, sp.form.Secret
	sp.slot.Policy, sp.slot.Form = sp.handler.policy, sp
	sp.onSet = sp.newOp(OpSet, sp.handler)
	sp.onReplace = sp.newOp(OpReplace, replaceHandler)
}

// newOp returns an op on the field through a handler, nil for a deletion. Its
// Borrowed says whether the value may be borrowed.
func (sp *fieldSpec) newOp(op Op, h *handler) engine.Op {
	o := engine.Op{Address: sp.address(), Kind: op.kind(), Overwrites: true}
	if h == nil {
		return o
	}
	o.Merger = h
	o.Overwrites, o.Shares = h.kind == replaces, h.shares()
	o.Callback = sp.validate != nil || h.callsCode(&sp.form)
	o.Borrowed = sp.form.CanBorrow() && !o.Callback && (h.kind == replaces || h.kind == appends)
	return o
}

// address returns the address of a declared field.
func (sp *fieldSpec) address() engine.Address { return engine.Address{Slot: &sp.slot} }

// nameAt returns the name of the field, or of an undeclared key, for errors.
func (sp *fieldSpec) nameAt(at engine.Address) string {
	if sp.slot.Keyed {
		return fault.Clip(at.Key)
	}
	return sp.name
}

// accepts returns an error if a handler is not for this field.
func (sp *fieldSpec) accepts(h *handler) error {
	if err := h.mistake(); err != nil {
		return invalidArgument("SetWith", err.Error())
	}
	if h.typ != nil && h.typ != sp.form.Type && !sp.slot.Keyed {
		return &TypeError{Field: sp.name, Path: "handler", Want: sp.form.Type.String(), Got: h.typ.String()}
	}
	if sp.form.Reference && h.looksInside() {
		return &TypeError{Field: sp.name, Path: "handler", Want: "one that does not look into values", Got: h.name}
	}
	if sp.name == messagesName && !h.keepsPairs() {
		return &TypeError{Field: sp.name, Path: "handler", Want: "one that keeps tool calls with their results", Got: h.name}
	}
	return nil
}

// store returns a value as an update of the field.
func (sp *fieldSpec) store(at engine.Address, v any, borrow bool) (engine.Update, error) {
	stored, size, err := sp.form.Store(v, borrow)
	if err != nil {
		return engine.Update{}, sp.valueError(at, err)
	}
	return engine.Update{Value: sp.form.Hide(stored), Size: size, Borrowed: borrow}, nil
}

// stored returns a checked value as the content of a cell.
func (sp *fieldSpec) stored(at engine.Address, v any, size int, err error) (engine.Merged, error) {
	if err == nil {
		err = sp.checkSize(size)
	}
	if err != nil {
		return engine.Merged{}, sp.valueError(at, err)
	}
	return engine.Merged{Value: sp.form.Hide(v), Size: size}, nil
}

// checkSize returns an error if a value is larger than a limit.
func (sp *fieldSpec) checkSize(size int) error {
	if sp.maxBytes > 0 && size > sp.maxBytes {
		return &fault.LimitError{Path: "$", Name: "MaxBytes", Limit: sp.maxBytes, Got: size}
	}
	if limit := sp.form.Limits.Bytes; limit > 0 && size > limit {
		return &fault.LimitError{Path: "$", Name: "ValueBytes", Limit: limit, Got: size}
	}
	return nil
}

// appendJSON appends a stored value as JSON.
func (sp *fieldSpec) appendJSON(dst []byte, at engine.Address, stored any) ([]byte, error) {
	dst, err := sp.form.AppendJSON(dst, stored)
	if err != nil {
		err = sp.valueError(at, err)
	}
	return dst, err
}

// valueError is [valueError] for a value of the field. For a secret it does not
// say where in the value: the names of its members are part of the secret.
func (sp *fieldSpec) valueError(at engine.Address, err error) error {
	if user, ok := err.(*userError); ok {
		return user.of(sp.nameAt(at))
	}
	err = valueError(sp.nameAt(at), err)
	if wrong, ok := err.(*TypeError); ok && sp.form.Secret {
		wrong.Path = "$"
	}
	return err
}

// update returns what an op writes, without the wrapper of secrets.
func (sp *fieldSpec) update(u engine.Update) any {
	v := cell.Bare(u.Value)
	if u.Tail > 0 {
		l := v.(*persist.List)
		return cell.Span{List: l, From: l.Len() - int(u.Tail), To: l.Len()}
	}
	return v
}

// Same implements [engine.Form].
func (sp *fieldSpec) Same(a, b *engine.Cell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || sp.form.Same(a.Value, b.Value)
}

// Check implements [engine.Form]: it runs the field's validation.
func (sp *fieldSpec) Check(m engine.Merged) (err error) {
	if sp.validate == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panicError(sp.name, "Validate", p, sp.form.Secret)
		}
	}()
	err = sp.validate(sp.form.Load(m.Value))
	if err != nil && sp.form.Secret {
		err = errors.New("validation refused the value")
	}
	if err != nil {
		return asKind(ErrRefused, fieldError(sp.name, err))
	}
	return nil
}

// Merge implements [engine.Merger] for a slot whose form is a *fieldSpec.
func (h *handler) Merge(at engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	sp := at.Slot.Form.(*fieldSpec)
	if h.kind == appends && sp.form.Elem != nil {
		return sp.appended(at, current, u)
	}
	v, size, err := h.merge(&sp.form, current, sp.update(u), u.Size, u.Borrowed)
	return sp.stored(at, v, size, err)
}

// appended returns the list of a cell with an update added.
func (sp *fieldSpec) appended(at engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	before := listIn(current, &sp.form)
	l, err := sp.form.Append(before, sp.update(u), u.Size, u.Borrowed)
	if err != nil {
		return engine.Merged{}, sp.valueError(at, err)
	}
	m, err := sp.stored(at, l, l.Bytes(), nil)
	m.Tail = int32(l.Len() - before.Len())
	return m, err
}

// listIn returns the list in a cell, which may be nil.
func listIn(c *engine.Cell, f *cell.Form) *persist.List {
	if c == nil {
		return persist.NewList(f.Type)
	}
	return cell.Bare(c.Value).(*persist.List)
}

// merge combines an update with the current cell. The update and the result are
// in stored form, without the wrapper of secrets. The elements of a borrowed
// update belong to the caller.
func (h *handler) merge(f *cell.Form, current *engine.Cell, update any, size int, borrowed bool) (any, int, error) {
	switch {
	case h.kind == replaces:
		v, err := f.Settle(update, size, borrowed)
		return v, size, err
	case h.shares() && f.Elem != nil:
		l, err := f.Append(listIn(current, f), update, size, borrowed)
		if err != nil {
			return nil, 0, err
		}
		if h.kind == keepsLast {
			l = f.KeepLast(l, h.keep)
		}
		return l, l.Bytes(), nil
	}
	var now any
	if current != nil {
		now = h.load(f, current.Value)
	}
	result, err := h.call(f, now, current != nil, h.load(f, update))
	if err != nil {
		return nil, 0, err
	}
	if !h.user {
		return f.Accept(result)
	}
	if result, size, err = f.Store(result, false); err == nil {
		result, err = f.Settle(result, size, false)
	}
	return result, size, err
}

// looksInside reports whether the handler is one of this library that compares
// values or takes them apart.
func (h *handler) looksInside() bool {
	return h.kind == merges && !h.user && h.policy == engine.PolicyConflict
}

// callsCode reports whether merging calls code of users: the handler's own, or
// methods of values that it compares, measures or converts. Such code must not
// run under the lock of a branch.
func (h *handler) callsCode(f *cell.Form) bool {
	switch {
	case h.user:
		return true
	case h.kind == replaces, h.kind == appends && f.Elem != nil:
		return false // they look into no value
	case f.CallsCode():
		return true
	case h.typ == nil || h.typ == f.Type:
		return false
	}
	plan, err := value.For(h.typ) // call converts the value of an undeclared key
	return err == nil && plan.Methods()
}

// load returns a stored value for fn: a copy if fn may change it.
func (h *handler) load(f *cell.Form, stored any) any {
	if h.user {
		return f.Load(stored)
	}
	return f.Share(stored)
}

// userError is an error of a handler. It may wrap a fault, which then is not
// one of the field's value.
type userError struct{ err error }

func (e *userError) Error() string { return e.err.Error() }

// of returns the error as one of a field.
func (e *userError) of(field string) error {
	if p, ok := e.err.(*PanicError); ok {
		p.Field = field
		return p
	}
	return asKind(ErrRefused, fieldError(field, e.err))
}

// call runs fn. For an undeclared key it converts the values to the type that
// the handler takes.
func (h *handler) call(f *cell.Form, current any, present bool, update any) (result any, err error) {
	if h.typ != nil && h.typ != f.Type {
		form, err := cell.New(h.typ)
		if err != nil {
			return nil, err
		}
		if present {
			if current, err = form.Convert(current); err != nil {
				return nil, err
			}
		}
		if update, err = form.Convert(update); err != nil {
			return nil, err
		}
	}
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, &userError{panicError("", "handler "+h.name, r, f.Secret)}
		}
	}()
	if result, err = h.fn(current, present, update); err != nil {
		if f.Secret {
			return nil, &userError{fmt.Errorf("handler %s failed on a secret", h.name)}
		}
		return nil, &userError{fmt.Errorf("handler %s: %w", h.name, err)}
	}
	return result, nil
}
