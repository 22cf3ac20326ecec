package state

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/agentstate/state/internal/value"
)

// Field declares a field of type T and is the typed door to it: pass it to
// [NewSchema] by address, and use the same value to read and write the field in
// any [State] whose schema has a field of that name and type.
//
// The exported members are settings. They are read once, by NewSchema; what
// counts afterwards is what the state's schema declares under the name. All
// methods are safe for concurrent use. A Field must not be copied.
type Field[T any] struct {
	// Name identifies the field: one line of visible text.
	Name string
	// Description says what the field holds, for people and models.
	Description string
	// UpdateRules says when and how a model should fill the field in.
	UpdateRules string
	// Owner is the agent the field belongs to; empty means the host.
	Owner string
	// Read and Write say who may use the field. Writing needs reading.
	Read, Write Scope
	// Handler says how Set combines a value with what is there. By default a
	// list appends and all else replaces.
	Handler Handler[T]
	// Secret masks the value in everything that is rendered.
	Secret bool
	// Ephemeral fields are never exported, and EndRun deletes them.
	Ephemeral bool
	// NoCopy stores and returns values without copying them. The caller
	// promises that nobody changes them.
	NoCopy bool
	// MaxBytes bounds the size of the value, about its length as JSON. Zero
	// means [Limits].ValueBytes.
	MaxBytes int
	// Validate is asked before a value is stored. It gets a copy of the result
	// of the merge. It must not call the State.
	Validate func(T) error
	// OneOf lists the types that a Field[any] accepts; empty means all.
	OneOf []reflect.Type

	_     noCopy
	bound atomic.Pointer[binding]
}

// binding remembers where the last schema keeps the field.
type binding struct {
	schema *Schema
	spec   *spec
}

// noCopy makes go vet report copies of what contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

func (f *Field[T]) declare(d *schemaDraft) {
	fail := func(format string, args ...any) {
		d.fail(fmt.Errorf("state: field %q: "+format, append([]any{f.Name}, args...)...))
	}
	if f.Name == "" {
		d.fail(errors.New("state: a field has no Name"))
		return
	}
	typ := reflect.TypeFor[T]()
	if f.Name == messagesName && typ != reflect.TypeFor[[]Message]() {
		fail("must be a Field[[]state.Message], not %v", typ)
		return
	}
	if f.Name == messagesName && f.Secret {
		fail("cannot be Secret: the history shows what was said; use Read")
		return
	}
	sp, err := newSpec(f.Name, typ)
	if err != nil {
		d.fail(err)
		return
	}
	sp.description, sp.updateRules, sp.owner = f.Description, f.UpdateRules, f.Owner
	sp.read, sp.write = f.Read, f.Write
	sp.secret, sp.ephemeral, sp.noCopy, sp.maxBytes = f.Secret, f.Ephemeral, f.NoCopy, f.MaxBytes
	sp.direct = sp.direct && !f.Secret || f.NoCopy && sp.list == nil && !sp.any && !f.Secret
	if f.MaxBytes < 0 {
		fail("MaxBytes is negative")
	}
	if h := f.Handler.h; h != nil {
		if f.Name == messagesName && !h.keepsPairs() {
			fail("handler %s can part tool calls from their results", h.name)
		}
		sp.handler = h
	}
	if validate := f.Validate; validate != nil {
		sp.validate = func(v any) error { return validate(as[T](v)) }
	}
	for i, one := range f.OneOf {
		if !sp.any {
			fail("OneOf is for a Field[any]")
			break
		}
		if one == nil {
			fail("OneOf[%d] is nil", i)
		} else if _, err := value.For(one); err != nil {
			fail("OneOf[%d]: %w", i, typeError(f.Name, err))
		}
		sp.oneOf = append(sp.oneOf, one)
	}
	d.add(sp)
}

// as converts a stored or merged value to T. A nil is the zero T.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}

// in returns the field's spec in the schema of a handle.
func (f *Field[T]) in(h *handle) (*spec, error) {
	if b := f.bound.Load(); b != nil && b.schema == h.schema {
		return b.spec, nil
	}
	sp, ok := h.schema.byName[f.Name]
	if !ok {
		return nil, fieldError(f.Name, ErrUnknownField)
	}
	if typ := reflect.TypeFor[T](); sp.typ != typ {
		return nil, &TypeError{Field: f.Name, Path: "type", Want: sp.typ.String(), Got: typ.String()}
	}
	f.bound.Store(&binding{schema: h.schema, spec: sp})
	return sp, nil
}

// reader returns the spec if the handle may read the field.
func (f *Field[T]) reader(h *handle, op string) (*spec, error) {
	sp, err := f.in(h)
	if err != nil {
		return nil, err
	}
	if !h.mayRead(sp.slot) {
		return nil, h.denied(op, sp.name)
	}
	return sp, nil
}

// writer returns the spec if the handle may write the field.
func (f *Field[T]) writer(h *handle, op Op) (*spec, error) {
	sp, err := f.in(h)
	if err != nil {
		return nil, err
	}
	if !h.mayWrite(sp.slot) {
		return nil, h.denied(string(op), sp.name)
	}
	return sp, nil
}

// Get returns a copy of the value. It is [ErrNotFound] if the field is unset,
// [ErrDenied] if the handle may not read it, [ErrUnknownField] if the schema has
// no such field and a [TypeError] if it has one of another type.
func (f *Field[T]) Get(st *State) (T, error) {
	h := st.on()
	sp, err := f.reader(h, "read")
	if err != nil {
		var zero T
		return zero, err
	}
	e := h.branch.load(sp.slot)
	if e == nil {
		var zero T
		return zero, fieldError(sp.name, ErrNotFound)
	}
	if sp.direct {
		return e.value.(T), nil
	}
	return as[T](sp.out(e.value)), nil
}

// Or returns a copy of the value, or def if Get would return an error.
func (f *Field[T]) Or(st *State, def T) T {
	if v, err := f.Get(st); err == nil {
		return v
	}
	return def
}

// Has reports whether the field is set and the handle may read it.
func (f *Field[T]) Has(st *State) bool {
	h := st.on()
	sp, err := f.reader(h, "read")
	return err == nil && h.branch.load(sp.slot) != nil
}

// Set combines v with the value that is there, by the schema's handler: lists
// append by default, all else is replaced. v is copied.
//
// To change a list that was read before, use Update or Replace: a Get, an append
// and a Set would add the whole list to itself.
func (f *Field[T]) Set(st *State, v T) error {
	h := st.on()
	sp, err := f.writer(h, OpSet)
	if err != nil {
		return err
	}
	return h.put(op{kind: OpSet, spec: sp, handler: sp.handler}, v)
}

// SetWith is Set with another handler, for this call only.
func (f *Field[T]) SetWith(st *State, v T, handler Handler[T]) error {
	h := st.on()
	sp, err := f.writer(h, OpSet)
	if err != nil {
		return err
	}
	if handler.h == nil {
		return h.put(op{kind: OpSet, spec: sp, handler: sp.handler}, v)
	}
	if err := sp.accepts(handler.h); err != nil {
		return err
	}
	return h.put(op{kind: OpSet, spec: sp, handler: handler.h}, v)
}

// Replace stores a copy of v, whatever the handler is.
func (f *Field[T]) Replace(st *State, v T) error {
	h := st.on()
	sp, err := f.writer(h, OpReplace)
	if err != nil {
		return err
	}
	return h.put(op{kind: OpReplace, spec: sp}, v)
}

// Update stores what fn makes of the current value, or of the zero value if the
// field is unset; the handler has no part in it. No write of others in between
// is lost: fn runs again if the field changed meanwhile, so it must have no
// other effects. It runs without a lock. An error of fn is returned as it is and
// nothing is stored.
func (f *Field[T]) Update(st *State, fn func(T) (T, error)) error {
	h := st.on()
	sp, err := f.writer(h, OpUpdate)
	if err != nil {
		return err
	}
	return h.rewrite(op{kind: OpUpdate, spec: sp, computed: true}, func(current any, _ bool) (any, error) {
		return fn(as[T](current))
	})
}

// Delete makes the field unset and reports whether it was set.
func (f *Field[T]) Delete(st *State) (bool, error) {
	h := st.on()
	sp, err := f.writer(h, OpDelete)
	if err != nil {
		return false, err
	}
	return h.delete(sp, "")
}

// FieldInfo describes a field to whoever may read it.
type FieldInfo struct {
	Name        string
	Type        string // for people and models: string, list of integer, …
	GoType      reflect.Type
	OneOf       []reflect.Type // as the field has it
	Description string
	UpdateRules string
	Owner       string
	Handler     string // the name of the handler
	Secret      bool
	Ephemeral   bool
	Writable    bool // this handle may write it
	Set         bool // it has a value
}
