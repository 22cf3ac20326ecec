package state

import (
	"slices"
)

// KV is the door by name to the fields of a [State]. It keeps the same rules as
// the typed handles: rights, types, handlers and limits. All methods are safe
// for concurrent use.
type KV struct{ state *State }

// Get returns a copy of the value under a name. It reports false if there is
// none, the schema does not have the name, or the handle may not read it; the
// function [Get] tells which. A secret is returned as it is, to those who may
// read it. The value of an undeclared name, and of a field of any type, is a nil, bool,
// string, int64, uint64, float64, []any or map[string]any; read it as another
// type with [Get].
func (kv *KV) Get(name string) (any, bool) {
	sp, e := kv.find(name)
	if e == nil {
		return nil, false
	}
	if sp.direct {
		return e.value, true
	}
	return sp.out(e.value), true
}

// find returns the entry under a name if there is one that may be read.
func (kv *KV) find(name string) (*spec, *entry) {
	h := kv.state.on()
	sp, key, err := h.named(name)
	if err != nil || h.may("read", false, sp, key) != nil {
		return nil, nil
	}
	return sp, h.branch.get(sp, key)
}

// Has reports whether Get would find a value.
func (kv *KV) Has(name string) bool {
	_, e := kv.find(name)
	return e != nil
}

// Set combines v with the value under a name, by the schema's handler: lists
// append by default, all else is replaced, and so is an undeclared name. v is
// copied, and converted to the field's type if nothing is lost; else it is a
// [TypeError].
func (kv *KV) Set(name string, v any) error {
	return kv.put(OpSet, name, v, func(sp *spec) (*handler, error) { return sp.handler, nil })
}

// SetWith is Set with another handler, for this call only.
func (kv *KV) SetWith(name string, v any, by AnyHandler) error {
	return kv.put(OpSet, name, v, func(sp *spec) (*handler, error) {
		if by == nil || by.erased() == nil {
			return sp.handler, nil
		}
		return by.erased(), sp.accepts(by.erased())
	})
}

// Replace stores v under a name, whatever the handler is.
func (kv *KV) Replace(name string, v any) error {
	return kv.put(OpReplace, name, v, func(*spec) (*handler, error) { return nil, nil })
}

// put writes v under a name through the handler that pick returns.
func (kv *KV) put(kind Op, name string, v any, pick func(*spec) (*handler, error)) error {
	h := kv.state.on()
	sp, key, err := h.named(name)
	if err == nil {
		err = h.may(string(kind), true, sp, key)
	}
	if err == nil && sp.slot < 0 {
		err = checkName(name, h.schema.limits.NameBytes)
	}
	if err != nil {
		return err
	}
	o := op{kind: kind, spec: sp, key: key}
	if o.handler, err = pick(sp); err != nil {
		return err
	}
	if v, o.size, err = sp.convert(v, h.schema.limits.value()); err != nil {
		return o.about(err)
	}
	o.value = sp.hide(v)
	return o.about(h.write(o))
}

// Delete removes the value under a name and reports whether there was one.
func (kv *KV) Delete(name string) (bool, error) {
	h := kv.state.on()
	sp, key, err := h.named(name)
	if err == nil {
		err = h.may(string(OpDelete), true, sp, key)
	}
	if err != nil {
		return false, err
	}
	return h.delete(sp, key)
}

// All returns copies of all values that the handle may read, by name, as they
// are at one moment. In place of a secret it holds [Masked].
func (kv *KV) All() map[string]any {
	all := map[string]any{}
	kv.state.on().each(func(sp *spec, name string, e *entry) {
		if sp.secret {
			all[name] = Masked{}
			return
		}
		all[name] = sp.out(e.value)
	})
	return all
}

// Keys returns the names that have a value the handle may read, sorted.
func (kv *KV) Keys() []string {
	keys := []string{}
	kv.state.on().list(func(_ *spec, name string, _ *entry) { keys = append(keys, name) })
	slices.Sort(keys)
	return keys
}

// Len returns how many names have a value that the handle may read.
func (kv *KV) Len() int {
	h := kv.state.on()
	b := h.branch
	if b.reads != nil {
		b.reads.list()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tree.Load().set(h)
}
