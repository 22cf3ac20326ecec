package state

import (
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/form"
)

// A schema changes while states made with an older one are stored. [Field.Was]
// and [Field.Convert] declare former names and forms of fields. [Import] and
// package workspace use them, and [Schema.Check] finds before a deployment what
// could not be loaded.

// addFormer notes the former names of a field.
func (d *schemaDraft) addFormer(sp *fieldSpec) {
	for _, name := range sp.was {
		if err := checkName(name, d.schema.limits.NameBytes); err != nil {
			d.failField(sp.name, "Was: %w", err)
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

// errFormerName is the error for a value under a former name of the field.
func (sp *fieldSpec) errFormerName(name string) error {
	return fieldError(fault.Clip(name), fmt.Errorf("%w, it is named %s now", ErrUnknownField, fault.Quote(sp.name)))
}

// locateStored is locate for the name of a stored value, which may be a former
// one.
func (h *handle) locateStored(name string) (*fieldSpec, engine.Address, error) {
	if sp, ok := h.schema.former[name]; ok {
		return sp, sp.address(), nil
	}
	return h.locate(name)
}

// decodeStored returns the value of a JSON text from a stored state, and whether
// the field's Convert has made it.
func (sp *fieldSpec) decodeStored(at engine.Address, text []byte, former bool) (m engine.Merged, converted bool, err error) {
	var v any
	var size int
	if !former || sp.convert == nil {
		v, size, err = sp.form.Decode(text)
	}
	if sp.convert != nil && (former || err != nil) {
		converted = true
		if v, err = sp.convertStored(JSON(text)); err == nil {
			v, size, err = sp.form.Store(v, false)
		}
		if err == nil {
			v, err = sp.form.Settle(v, size, false)
		}
	}
	m, err = sp.stored(at, v, size, err)
	return m, converted, err
}

// convertStored calls the field's Convert.
func (sp *fieldSpec) convertStored(text JSON) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, &userError{panicError("", "Convert", p, sp.form.Secret)}
		}
	}()
	switch v, err = sp.convert(text); {
	case err != nil && sp.form.Secret:
		return nil, &userError{errors.New("refused by Convert")}
	case err != nil:
		return nil, &userError{fmt.Errorf("from Convert: %w", err)}
	}
	return v, nil
}

// Check returns an error for each part of an exported state that [Import] would
// refuse, and nil if Import would take it. Call it with what is stored before a
// program with another schema is deployed. Like Import, it calls Convert and no
// Validate.
func (s *Schema) Check(exported []byte) []error {
	in, err := form.Decode(exported)
	if err != nil {
		return []error{jsonError("import", err)}
	}
	var errs []error
	h := New(s).on()
	i := importer{handle: h, loader: engine.NewLoader(h.branch, in.Version)}
	_ = i.load(in, func(err error) error { // it ends with what this returns
		errs = append(errs, jsonError("import", err))
		return nil
	})
	return errs
}
