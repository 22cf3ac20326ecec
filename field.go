package state

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal/cell"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
)

// Field declares a field of type T and is its accessor: pass it to [NewSchema]
// by address, and use the same value to read and write the field in any [State]
// whose schema has a field of that name and type.
//
// The exported members are settings. NewSchema reads them once; after that,
// only what the state's schema declares under the name counts. Set returns a
// TypeError if the Field has another Handler than that. All methods are
// safe for concurrent use. A Field must not be copied.
type Field[T any] struct {
	// Name identifies the field: one line of visible text.
	Name string
	// Description explains the content of the field to people and models.
	Description string
	// UpdateRules tells a model when and how to fill in the field.
	UpdateRules string
	// Owner is the agent that the field belongs to; empty means the host.
	Owner string
	// Read and Write are the agents that may use the field. An agent that may
	// write it must be able to read it.
	Read, Write Scope
	// Handler combines a value that is Set with the current one. By default
	// lists append, and everything else is replaced.
	Handler Handler[T]
	// Secret masks the value in everything that is rendered, and State.Redact
	// masks it in texts. A value that its JSON does not give back, such as one
	// whose MarshalJSON masks it, cannot be secret.
	Secret bool
	// Shared fields belong to a user of package workspace: all threads of the user
	// have one value. A write is merged into it, through the Handler, when the
	// run that has made it is finished. In a State without a workspace, Shared
	// has no effect. The conversation, and Ephemeral fields, cannot be shared.
	Shared bool
	// Ephemeral fields are never exported, and EndRun deletes them.
	Ephemeral bool
	// NoCopy stores and returns values without copying them. The caller must
	// not change them.
	//
	// A field that is both Ephemeral and NoCopy is a reference. It holds values
	// of any Go type: streams, clients, functions, messages of a framework.
	// Branches, snapshots, past versions, changes and all readers get the same
	// value, which may change. The library does not look into the values and
	// calls none of their methods: rendered, a value is the name of its type,
	// two values are equal if they are identical, and their size is 0. Such a
	// field cannot be Secret or have Validate, OneOf, MaxBytes, or a handler
	// that looks into values: Union, MergeMap, Sum, Max and Min. Writes by name
	// do not convert.
	NoCopy bool
	// MaxBytes is the largest size of the value, about its length as JSON
	// (default [Limits].ValueBytes).
	MaxBytes int
	// Validate accepts or refuses a value before it is stored. It gets a copy
	// of the result of the merge. Calls for the same field take turns, as those
	// of a handler do: see [NewHandler].
	Validate func(T) error
	// OneOf lists the types that a Field[any] accepts; empty accepts all.
	OneOf []reflect.Type
	// Was lists the former names of the field. What is stored under one of them
	// is loaded as this field.
	Was []string
	// Convert returns the value of a former form of the field, as [State.Export]
	// wrote it. It gets every stored value under a former name, and those under
	// the present name that are not a T. It must be pure.
	Convert func(JSON) (T, error)

	_     noCopy
	bound atomic.Pointer[binding]
}

// binding remembers where the last schema keeps the field.
type binding struct {
	schema *Schema
	spec   *fieldSpec
}

// of returns the spec if the binding is to the schema of a handle that may read
// the field, and nil otherwise. It is inlined: most reads take this way.
func (b *binding) of(h *handle) *fieldSpec {
	if b == nil || b.schema != h.schema || !h.mayRead(b.spec) {
		return nil
	}
	return b.spec
}

func (f *Field[T]) declare(d *schemaDraft) {
	if f.Name == "" {
		d.fail(errors.New("state: a field has no Name"))
		return
	}
	typ := reflect.TypeFor[T]()
	switch {
	case f.Name == windowsName:
		d.failField(f.Name, "is the name of what package transcript keeps")
		return
	case f.Name == messagesName && typ != reflect.TypeFor[[]Message]():
		d.failField(f.Name, "must be a Field[[]state.Message], not %v", typ)
		return
	case f.Name == messagesName && f.Secret:
		d.failField(f.Name, "cannot be Secret: the history shows the conversation; use Read")
		return
	}
	// The values of the conversation never change: sharing them is no reference.
	reference := f.Ephemeral && f.NoCopy && f.Name != messagesName
	newForm := cell.New
	if reference {
		newForm = cell.NewReference
	}
	sp, err := newFieldSpec(f.Name, typ, newForm)
	if err != nil {
		d.fail(err)
		return
	}
	f.declareSettings(sp)
	f.checkSettings(d, sp, reference)
	if reference {
		f.checkReference(d, sp)
	} else {
		f.declareOneOf(d, sp)
	}
	if f.Name == messagesName && (len(f.Was) > 0 || f.Convert != nil) {
		d.failField(f.Name, "cannot have Was or Convert: messages have one form")
		return
	}
	d.add(sp)
}

// declareSettings sets what the field has besides its name and its type.
func (f *Field[T]) declareSettings(sp *fieldSpec) {
	sp.description, sp.updateRules, sp.owner = f.Description, f.UpdateRules, f.Owner
	sp.read, sp.write = f.Read, f.Write
	sp.ephemeral, sp.maxBytes = f.Ephemeral, f.MaxBytes
	sp.slot.Kept = f.Shared
	sp.form.Secret, sp.form.NoCopy = f.Secret, f.NoCopy
	if h := f.Handler.h; h != nil {
		sp.handler = h
	}
	sp.was = slices.Clone(f.Was)
	if validate := f.Validate; validate != nil {
		sp.validate = func(v any) error { return validate(as[T](v)) }
	}
	if convert := f.Convert; convert != nil {
		sp.convert = func(text JSON) (any, error) { return convert(text) }
	}
}

// checkSettings reports the settings that the field cannot have. reference says that its
// values are stored by reference.
func (f *Field[T]) checkSettings(d *schemaDraft, sp *fieldSpec, reference bool) {
	if f.Shared && (f.Ephemeral || f.Name == messagesName) {
		d.failField(f.Name, "cannot be Shared: it belongs to one State")
	}
	if f.Secret && !reference && !sp.form.Plan.InventsNothing() {
		d.failField(f.Name, "cannot be Secret: the JSON of %v does not give the value back", sp.form.Type)
	}
	if f.MaxBytes < 0 {
		d.failField(f.Name, "MaxBytes is negative")
	}
	h := f.Handler.h
	if h == nil {
		return
	}
	if err := h.mistake(); err != nil {
		d.failField(f.Name, "%w", err)
	}
	if f.Name == messagesName && !h.keepsPairs() {
		d.failField(f.Name, "handler %s can separate tool calls from their results", h.name)
	}
}

// checkReference reports the settings that would look into a value that is only
// referred to.
func (f *Field[T]) checkReference(d *schemaDraft, sp *fieldSpec) {
	refuse := func(setting string) {
		d.failField(f.Name, "is Ephemeral and NoCopy, so no code looks into its values: it cannot have %s", setting)
	}
	if f.Secret {
		refuse("Secret")
	}
	if f.Validate != nil {
		refuse("Validate")
	}
	if len(f.OneOf) > 0 {
		refuse("OneOf")
	}
	if f.MaxBytes > 0 {
		refuse("MaxBytes")
	}
	if sp.handler.looksInside() {
		refuse("the handler " + sp.handler.name)
	}
}

func (f *Field[T]) declareOneOf(d *schemaDraft, sp *fieldSpec) {
	if len(f.OneOf) > 0 && !sp.form.Any {
		d.failField(f.Name, "OneOf is for a Field[any]")
		return
	}
	for i, typ := range f.OneOf {
		if typ == nil {
			d.failField(f.Name, "OneOf[%d] is nil", i)
		} else if _, err := value.For(typ); err != nil {
			d.failSetting(f.Name, fmt.Sprintf("OneOf[%d]", i), err)
		}
		sp.form.OneOf = append(sp.form.OneOf, typ)
	}
}

// spec returns the field's spec in the schema of a handle.
func (f *Field[T]) spec(h *handle) (*fieldSpec, error) {
	if f == nil {
		return nil, invalidArgument("field", "the *Field is nil")
	}
	if b := f.bound.Load(); b != nil && b.schema == h.schema {
		return b.spec, nil
	}
	sp, ok := h.schema.fieldOf(f.Name, f)
	if !ok {
		return nil, h.unknownField(f.Name)
	}
	if typ := reflect.TypeFor[T](); sp.form.Type != typ {
		return nil, h.unfit(&TypeError{Field: f.Name, Path: "type", Want: sp.form.Type.String(), Got: typ.String()})
	}
	f.bound.Store(&binding{schema: h.schema, spec: sp})
	return sp, nil
}

// declared returns the error of using the field with a handle whose schema does
// not have it, or has it with another type.
func (f *Field[T]) declared(h *handle) error {
	sp, err := f.spec(h)
	return cmp.Or(err, f.merges(sp))
}

// merges returns an error if the Handler of the Field is not that of the schema,
// which would be called.
func (f *Field[T]) merges(sp *fieldSpec) error {
	if sp != nil && f.Handler.h != nil && f.Handler.h.name != sp.handler.name {
		return &TypeError{
			Field: sp.name, Path: "handler", Want: sp.handler.name + ", which the schema of the State has",
			Got: f.Handler.Name(),
		}
	}
	return nil
}

// toRead returns the spec if the handle may read the field.
func (f *Field[T]) toRead(h *handle) (*fieldSpec, error) {
	sp, err := f.spec(h)
	if err != nil && f != nil && h.isNil() {
		err = fieldError(f.Name, ErrNotFound)
	}
	if err == nil && !h.mayRead(sp) {
		err = h.denied("read", sp.name)
	}
	return sp, err
}

// toWrite returns the spec if the handle may write the field.
func (f *Field[T]) toWrite(h *handle, op Op) (*fieldSpec, error) {
	sp, err := f.spec(h)
	if err != nil && f != nil && h.isNil() {
		err = asKind(ErrReadOnly, fieldError(f.Name, errors.New("the State is nil")))
	}
	if err == nil && !h.mayWrite(sp) {
		err = h.denied(string(op), sp.name)
	}
	if err == nil && h.overlay != nil {
		err = h.given(sp, sp.address())
	}
	if err == nil && op == OpSet && f.Handler.h != nil {
		err = f.merges(sp)
	}
	return sp, err
}

// Get returns a copy of the value. The error is [ErrNotFound] if the field is
// unset, [ErrDenied] if the handle may not read it, [ErrUnknownField] if the
// schema has no such field and a [TypeError] if it has one of another type.
func (f *Field[T]) Get(st *State) (T, error) {
	h := st.on()
	var sp *fieldSpec
	if f != nil {
		sp = f.bound.Load().of(h)
	}
	if sp == nil {
		var err error
		if sp, err = f.toRead(h); err != nil {
			var zero T
			return zero, err
		}
	}
	c := h.slot(sp)
	if c == nil {
		var zero T
		return zero, fieldError(sp.name, ErrNotFound)
	}
	if sp.direct {
		return c.Value.(T), nil
	}
	return as[T](sp.form.Load(c.Value)), nil
}

// GetOr returns a copy of the value, or def if Get would return an error. A field
// that the schema of st does not have, or has with another type, is a mistake: it is
// logged at Warn, once for each schema and name, by slog.Default, or in a run of
// package workspace by its Logger.
func (f *Field[T]) GetOr(st *State, def T) T {
	v, err := f.Get(st)
	if err == nil {
		return v
	}
	st.on().tellLacking(err)
	return def
}

// Has reports whether the field is set and the handle may read it. A field that the
// schema does not have is logged as by GetOr.
func (f *Field[T]) Has(st *State) bool {
	h := st.on()
	sp, err := f.toRead(h)
	h.tellLacking(err)
	return err == nil && h.slot(sp) != nil
}

// Set combines v with the current value, by the schema's handler: by default
// lists append, and everything else is replaced. v is copied.
//
// To change a list that was read before, use Update or Replace: Get, append and
// Set would add the whole list to itself.
func (f *Field[T]) Set(st *State, v T) error {
	h := st.on()
	sp, err := f.toWrite(h, OpSet)
	if err != nil {
		return err
	}
	return h.put(sp, sp.onSet, v)
}

// SetWith is Set with another handler, for this call only.
func (f *Field[T]) SetWith(st *State, v T, handler Handler[T]) error {
	h := st.on()
	sp, err := f.toWrite(h, OpSet)
	if err != nil {
		return err
	}
	if handler.h == nil {
		return h.put(sp, sp.onSet, v)
	}
	if err := sp.accepts(handler.h); err != nil {
		return err
	}
	return h.put(sp, sp.newOp(OpSet, handler.h), v)
}

// Replace stores a copy of v, whatever the handler is.
func (f *Field[T]) Replace(st *State, v T) error {
	h := st.on()
	sp, err := f.toWrite(h, OpReplace)
	if err != nil {
		return err
	}
	return h.put(sp, sp.onReplace, v)
}

// Update calls fn with the current value, or with the zero value if the field
// is unset, and stores the result. The handler is not called. No other write in
// between is lost: fn runs again if the field has changed meanwhile, so it must
// have no other effects. fn runs without a lock, in turns with other functions
// of users for the same field: see [NewHandler]. If fn returns an error, Update
// returns it as it is and stores nothing.
func (f *Field[T]) Update(st *State, fn func(T) (T, error)) error {
	h := st.on()
	sp, err := f.toWrite(h, OpUpdate)
	if err == nil && fn == nil {
		err = asKind(ErrInvalid, fieldError(sp.name, errors.New("update: the function is nil")))
	}
	if err != nil {
		return err
	}
	if sp.slot.Kept {
		return h.rewriteShared(sp, func(current any) (any, error) { return fn(as[T](current)) })
	}
	return h.rewrite(sp, func(current any) (any, error) { return fn(as[T](current)) })
}

// Delete makes the field unset and reports whether it was set.
func (f *Field[T]) Delete(st *State) (bool, error) {
	h := st.on()
	sp, err := f.toWrite(h, OpDelete)
	if err != nil {
		return false, err
	}
	return h.delete(sp, sp.address())
}

// ListItems yields the elements of a list field and their indexes, from index from
// on. A negative from counts from the end. It walks one version of the list
// and copies only the elements that it yields. It yields nothing if the field
// is unset or the handle may not read it. A field that the schema does not have is
// logged as by [Field.GetOr].
func ListItems[S ~[]E, E any](s *State, f *Field[S], from int) iter.Seq2[int, E] {
	h := *s.on()
	return func(yield func(int, E) bool) {
		form, l := listOf(&h, f)
		if l == nil {
			return
		}
		i := max(from, 0)
		if from < 0 {
			i = max(0, l.Len()+from)
		}
		if i >= l.Len() {
			return
		}
		share := form.NoCopy || form.Elem.Immutable()
		for run := range l.Runs(i, l.Len()) {
			for _, e := range run.Interface().(S) {
				if !share {
					e = as[E](form.Elem.Clone(reflect.ValueOf(&e).Elem()).Interface())
				}
				if !yield(i, e) {
					return
				}
				i++
			}
		}
	}
}

// ListLen returns the length of a list field, 0 if the field is unset or the handle
// may not read it. It copies nothing. A field that the schema does not have is logged as
// by [Field.GetOr].
func ListLen[S ~[]E, E any](s *State, f *Field[S]) int {
	if _, l := listOf(s.on(), f); l != nil {
		return l.Len()
	}
	return 0
}

// listOf returns the list that a field holds, or nil.
func listOf[S any](h *handle, f *Field[S]) (*cell.Form, *persist.List) {
	sp, err := f.toRead(h)
	h.tellLacking(err)
	if err != nil || sp.form.Elem == nil {
		return nil, nil
	}
	c := h.slot(sp)
	if c == nil {
		return nil, nil
	}
	return &sp.form, cell.Bare(c.Value).(*persist.List)
}
