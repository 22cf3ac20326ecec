package state

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// KV gives access by name to the fields of a [State]. It follows the same rules
// as a [Field]: rights, types, handlers and limits. All methods are safe for
// concurrent use.
type KV struct{ state *State }

// KV returns the access by name. It is cheap.
func (s *State) KV() *KV { return &KV{s} }

// Get returns a copy of the value under a name. It reports false if there is no
// value, the schema does not have the name, or the handle may not read it; the
// function [GetAs] tells these apart. A secret is returned unmasked.
//
// The value of an undeclared name, and of a Field[any], is nil or a bool,
// string, int64, uint64, float64, []any or map[string]any. Numbers keep their
// kind, also when the state is exported and imported: a float64 is read as a
// float64, even if it is whole, and an integer as an int64, or as a uint64 if
// only that holds it. JSON numbers with a fraction or an exponent are float64.
//
// The value of a declared field has the field's type. Only pointers differ: a
// null pointer is nil, and any other pointer is what it points to, so that an
// optional value compares with nil. To read a value as another type, or as a
// pointer, use [GetAs].
func (kv *KV) Get(name string) (any, bool) {
	sp, c := kv.find(name)
	if c == nil {
		return nil, false
	}
	if sp.direct && sp.form.Type.Kind() != reflect.Pointer {
		return c.Value, true
	}
	return sp.form.LoadByName(c.Value), true
}

// find returns the cell under a name if there is one that the handle may read.
func (kv *KV) find(name string) (*fieldSpec, *engine.Cell) {
	h := kv.state.on()
	sp, at, err := h.toRead(name)
	if err != nil {
		return nil, nil
	}
	return sp, h.get(at)
}

// JSON returns the value under a name as [State.MarshalJSON] shows it: a secret
// field is "[SECRET]", and what another value repeats of the secrets that the
// handle may read is masked. It makes no copy of the Go value. It reports false
// if Get would find no value, and if the value cannot be encoded.
func (kv *KV) JSON(name string) (JSON, bool) {
	moment := kv.state.with(kv.state.on().branch.Freeze())
	sp, c := moment.KV().find(name)
	if c == nil {
		return "", false
	}
	at := sp.address()
	if sp.slot.Keyed {
		at.Key = name
	}
	var secrets *Redactor
	if !sp.form.Secret {
		secrets = moment.Redactor()
	}
	data, err := sp.maskedJSON(at, c, secrets)
	if err != nil {
		return "", false
	}
	return JSON(jsontext.AppendCompact(data[:0], data)), true
}

// Has reports whether Get would find a value.
func (kv *KV) Has(name string) bool {
	_, c := kv.find(name)
	return c != nil
}

// Set combines v with the value under a name, by the schema's handler: by
// default lists append, and everything else is replaced, undeclared names
// included. v is copied. A value of another type is converted to the field's if
// nothing is lost. Otherwise Set returns a [TypeError].
func (kv *KV) Set(name string, v any) error { return kv.put(OpSet, name, v, nil) }

// SetWith is Set with another handler, for this call only.
func (kv *KV) SetWith(name string, v any, by AnyHandler) error {
	if by == nil {
		return kv.put(OpSet, name, v, nil)
	}
	return kv.put(OpSet, name, v, by.erased())
}

// Replace stores v under a name, whatever the handler is.
func (kv *KV) Replace(name string, v any) error {
	return kv.put(OpReplace, name, v, replaceHandler)
}

// put writes v under a name through a handler, nil for the schema's.
func (kv *KV) put(op Op, name string, v any, by *handler) error {
	h := kv.state.on()
	sp, at, err := h.toWrite(string(op), name)
	if err == nil && sp.slot.Keyed {
		err = checkName(name, h.schema.limits.NameBytes)
	}
	if err == nil && by != nil {
		err = sp.accepts(by)
	}
	if err != nil {
		return err
	}
	o := sp.onSet
	if by != nil {
		o = sp.newOp(op, by)
	}
	o.Address = at
	if o.Update, err = h.store(sp, at, v, false); err != nil {
		return err
	}
	return h.write(&o)
}

// Delete removes the value under a name and reports whether there was one.
func (kv *KV) Delete(name string) (bool, error) {
	h := kv.state.on()
	sp, at, err := h.toWrite(string(OpDelete), name)
	if err != nil {
		return false, err
	}
	return h.delete(sp, at)
}

// All returns copies of all values that the handle may read, by name, as they
// are at one moment. Secrets are replaced by [Masked].
func (kv *KV) All() map[string]any {
	h := kv.state.on()
	f := h.scan()
	all := make(map[string]any, f.CountSet(h.view()))
	for _, sp := range h.schema.fields {
		if !h.mayRead(sp) {
			continue
		}
		c := f.Slot(&sp.slot)
		switch {
		case c == nil:
		case sp.form.Secret:
			all[sp.name] = Masked{}
		default:
			all[sp.name] = sp.form.LoadByName(c.Value)
		}
	}
	if keys := h.schema.keys; h.mayRead(keys) {
		for key, c := range f.All() { // undeclared keys are never secret
			all[key] = keys.form.Load(c.Value)
		}
	}
	return all
}

// Keys returns the names that have a value the handle may read, sorted.
func (kv *KV) Keys() []string {
	h := kv.state.on()
	f := h.scan()
	keys := []string{}
	for _, at := range h.readable(f) {
		if f.Peek(at) != nil {
			keys = append(keys, addressName(at))
		}
	}
	slices.Sort(keys)
	return keys
}

// Len returns the number of names that have a value the handle may read.
func (kv *KV) Len() int {
	h := kv.state.on()
	if h.overlay != nil {
		return h.scan().CountSet(h.view())
	}
	return h.branch.CountSet(h.view())
}

// GetAs returns the value under a name, converted to T if nothing is lost. It
// returns the errors of [Field.Get], and a [TypeError] for a value that cannot
// be converted.
func GetAs[T any](s *State, name string) (T, error) {
	var zero T
	h := s.on()
	sp, at, err := h.toRead(name)
	if err != nil {
		return zero, err
	}
	c := h.get(at)
	if c == nil {
		return zero, fieldError(fault.Clip(name), ErrNotFound)
	}
	if sp.form.Type == reflect.TypeFor[T]() {
		return as[T](sp.form.Load(c.Value)), nil
	}
	v := sp.form.LoadByName(c.Value)
	if t, ok := v.(T); ok {
		return t, nil
	}
	if sp.form.Reference { // a conversion would look into it
		if v == nil && reflect.TypeFor[T]().Kind() == reflect.Interface {
			return zero, nil
		}
		wrong := &fault.Error{Path: "$", Want: reflect.TypeFor[T]().String(), Got: fmt.Sprintf("%T", v)}
		return zero, sp.valueError(at, wrong)
	}
	to, err := cell.New(reflect.TypeFor[T]())
	if err != nil {
		return zero, valueError(fault.Clip(name), err)
	}
	to.Limits = h.schema.limits.value()
	converted, _, err := to.Store(v, false)
	if err != nil {
		return zero, sp.valueError(at, err)
	}
	return as[T](converted), nil
}
