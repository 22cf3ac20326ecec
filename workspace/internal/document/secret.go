package document

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// PartSecret says of which fields the values are secret, by the names under which
// they are stored: a build whose schema does not know that masks them all the same.
const PartSecret = "secret"

// markSecrets returns the effects that make PartSecret say what a schema says of
// the fields that effects write.
func (d *Document) markSecrets(schema *state.Schema, effects []state.Effect) (marks []state.Effect) {
	seen := map[string]bool{}
	for i := len(effects) - 1; i >= 0; i-- { // the last one of a field counts
		e := &effects[i]
		if e.Part != PartField && e.Part != PartKey || seen[e.Field] {
			continue
		}
		declared, secret := d.Declares(schema, e.Field)
		seen[e.Field] = declared
		switch marked := d.Has(PartSecret, e.Field); {
		case marked && declared && (!secret || e.Kind == state.EffectDelete):
			marks = append(marks, deleteEffect(PartSecret, e.Field))
		case !marked && secret && e.Kind != state.EffectDelete:
			marks = append(marks, setEffect(PartSecret, e.Field, "true"))
		}
	}
	return marks
}

// StrangeSecrets returns the values that are secret, and whose fields a schema does
// not have as secret ones.
func (d *Document) StrangeSecrets(schema *state.Schema) (values []state.JSON) {
	for _, name := range d.Names(PartSecret) {
		if _, secret := d.Declares(schema, name); secret {
			continue
		}
		for _, part := range []string{PartField, PartKey} {
			if v := d.get(part, name); v != nil {
				values = append(values, v.json())
			}
		}
	}
	return values
}

// DropsSecret reports whether effects on the content replace or delete a secret. A
// field that the schema does not have may be one.
func (d *Document) DropsSecret(schema *state.Schema, effects []state.Effect) bool {
	return slices.ContainsFunc(effects, func(e state.Effect) bool {
		declared, secret := d.Declares(schema, e.Field)
		switch e.Part {
		case PartField:
			return (secret || !declared) && d.Has(e.Part, e.Field)
		case PartKey:
			return secret && d.Has(e.Part, e.Field)
		case PartMemory, PartSharedMemory:
			return d.isSecretEntry(e.Part, e.Field)
		case PartShared: // a list, which only grows until it is dropped
			return (secret || !declared) && e.Kind == state.EffectDelete
		}
		return false
	})
}

// isSecretEntry reports whether an entry of a memory is secret. One that does not say so
// in the form in which it is stored may be.
func (d *Document) isSecretEntry(part, name string) bool {
	v := d.get(part, name)
	if v == nil || jsontext.IsNull([]byte(v.json())) {
		return false
	}
	entry, err := jsontext.Members([]byte(v.json()))
	secret := entry.Get("secret")
	return err != nil || secret != nil && string(secret) != "false"
}
