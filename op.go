package state

import (
	"errors"

	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
)

// op is one write to one field.
type op struct {
	kind     Op
	spec     *spec
	key      string   // of an undeclared key
	handler  *handler // nil where the write does not merge
	value    any      // the update in stored form; for lists also a slice
	size     int      // of the update
	by       *signature
	tail     int32 // if > 0, the update is the last tail elements of the list value
	class    int16 // read class + 1, if not that of the field
	computed bool  // the value was computed from what was read
	borrowed bool  // value belongs to the caller: it must not be kept
}

// update returns what the op writes, without hidden.
func (o *op) update() any {
	v := bare(o.value)
	if o.tail > 0 {
		l := v.(*persist.List)
		return span{l, l.Len() - int(o.tail), l.Len()}
	}
	return v
}

func (o *op) name() string {
	if o.spec.slot < 0 {
		return o.key
	}
	return o.spec.name
}

func (o *op) runsUserCode() bool {
	if o.spec.validate != nil || o.handler != nil && o.handler.user {
		return true
	}
	// To merge is to compare and to measure, which may call methods of the type.
	return o.spec.methods && !o.handler.overwrites() && o.handler.kind != appends
}

// result is what an op makes of a field.
type result struct {
	value any
	size  int
}

// step returns what the op makes of the present entry. It does not validate.
func (o *op) step(cur *entry, lim value.Limits) (result, error) {
	sp := o.spec
	var r result
	var err error
	if o.handler.overwrites() {
		r.size = o.size
		r.value, err = sp.settle(o.update(), o.size, o.borrowed)
	} else {
		var current any
		if cur != nil {
			current = bare(cur.value)
		}
		r.value, r.size, err = o.handler.merge(sp, current, cur != nil, o.update(), o.size, o.borrowed, lim)
	}
	if err != nil {
		return r, err
	}
	if sp.maxBytes > 0 && r.size > sp.maxBytes {
		return r, &LimitError{Name: "MaxBytes", Field: o.name(), Limit: sp.maxBytes, Got: r.size}
	}
	if lim.Bytes > 0 && r.size > lim.Bytes {
		return r, &LimitError{Name: "ValueBytes", Field: o.name(), Limit: lim.Bytes, Got: r.size}
	}
	return r, nil
}

// check runs the field's validation on a result.
func (sp *spec) check(r result) (err error) {
	if sp.validate == nil {
		return nil
	}
	leave := enterUserCode()
	defer leave()
	defer func() {
		if p := recover(); p != nil {
			err = fieldError(sp.name, errors.New("state: validation panicked"))
		}
	}()
	if err := sp.validate(sp.out(r.value)); err != nil {
		if sp.secret {
			return fieldError(sp.name, errors.New("state: validation refused the value"))
		}
		return fieldError(sp.name, err)
	}
	return nil
}

func (o *op) readClass() int {
	if o.class > 0 {
		return int(o.class) - 1
	}
	return o.spec.class
}

// settle replaces a value that must not be kept by the part of the list, or the
// result, that it has become.
func (o *op) settle(to *entry) {
	switch {
	case !o.borrowed || to == nil:
		return
	case o.spec.slot == historySlot:
		st := to.value.(*stack)
		o.value = resultRef{st, st.at(st.results.Len() - 1)}
	default:
		added := o.spec.slice(bare(o.value)).Len()
		switch {
		case o.handler.overwrites():
			o.value = to.value
		case added == 0:
			o.value = o.spec.hide(persist.NewList(o.spec.typ))
		default:
			o.value, o.tail = to.value, int32(added)
		}
	}
	o.borrowed = false
}

func (o *op) field() string {
	switch {
	case o.spec.slot == historySlot:
		return ""
	case o.spec.slot < 0:
		return o.key
	}
	return o.spec.name
}

// written returns a copy of what an op wrote, as far as the handle may see it.
func (h *handle) written(o *op) any {
	switch {
	case o.kind == OpDelete:
		return nil
	case o.spec.secret:
		return Masked{}
	case o.value == nil && !o.spec.any:
		return nil
	case o.spec.slot == historySlot:
		return h.writtenResult(o.value)
	}
	return o.spec.out(o.update())
}
