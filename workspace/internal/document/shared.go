package document

import (
	"encoding/json"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
)

// A run writes to what all threads of a user share only when it is finished. Until
// then the document of its thread has what its commits have written.
const (
	// PartShared has what is written to shared fields: a list for each field.
	PartShared = "shared"
	// PartSharedMemory has entries for the memory of the user, null for those that
	// are deleted.
	PartSharedMemory = "shared_memory"
)

// WithShared returns a document with the shared fields of a user part, in place
// of its own, and with memory also with the entries of both memories. names are
// those of the shared fields.
func (d *Document) WithShared(part *Document, names map[string]bool, memory bool) *Document {
	c := d.Clone()
	for _, p := range []string{PartField, PartKey, PartSecret} {
		for name := range names {
			if v := part.get(p, name); v != nil || c.Has(p, name) {
				c.put(p, name, v)
			}
		}
	}
	if !memory {
		return c
	}
	for name, v := range part.fields(PartMemory) {
		c.put(PartMemory, name, v)
	}
	for name, v := range d.fields(PartSharedMemory) {
		if v.text == "null" {
			v = nil
		}
		c.put(PartMemory, name, v)
	}
	return c
}

// SharedWrites returns what the run has written to shared fields.
func (d *Document) SharedWrites() ([]internal.SharedWrite, error) {
	var all []internal.SharedWrite
	for _, field := range d.Names(PartShared) {
		texts, ok := d.get(PartShared, field).texts()
		if !ok {
			return nil, corrupt(jsontext.Path("$.shared", field), "not a list")
		}
		for _, text := range texts {
			w := internal.SharedWrite{}
			if json.Unmarshal([]byte(text), &w) != nil {
				return nil, corrupt(jsontext.Path("$.shared", field), "not a write")
			}
			w.Field = field
			all = append(all, w)
		}
	}
	return all, nil
}

// AppendShared returns the effects that store writes to shared fields.
func (d *Document) AppendShared(writes []internal.SharedWrite) ([]state.Effect, error) {
	var effects []state.Effect
	began := map[string]bool{}
	for _, w := range writes {
		text, err := jsontext.Marshal(w)
		if err != nil {
			return nil, err
		}
		if !began[w.Field] && !d.Has(PartShared, w.Field) {
			effects = append(effects, setEffect(PartShared, w.Field, "[]"))
		}
		began[w.Field] = true
		effects = append(effects, state.Effect{
			Part: PartShared, Field: w.Field, Kind: state.EffectAppend, Value: state.JSON("[" + string(text) + "]"),
		})
	}
	return effects, nil
}

// SharedMemory returns the effects on the memory of the user that the run has
// stored.
func (d *Document) SharedMemory() []state.Effect {
	var effects []state.Effect
	for _, key := range d.Names(PartSharedMemory) {
		if v := d.get(PartSharedMemory, key).json(); v == "null" {
			effects = append(effects, deleteEffect(PartMemory, key))
		} else {
			effects = append(effects, setEffect(PartMemory, key, v))
		}
	}
	return effects
}

// DropShared returns the effects that drop what the run has written to what the
// threads share.
func (d *Document) DropShared() []state.Effect {
	var effects []state.Effect
	for _, part := range []string{PartShared, PartSharedMemory} {
		for _, field := range d.Names(part) {
			effects = append(effects, deleteEffect(part, field))
		}
	}
	return effects
}
