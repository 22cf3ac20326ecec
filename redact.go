package state

import (
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Redact returns text with [SECRET] in place of every value of a Secret field
// that this handle may read. Use the host's handle, which knows all secrets. An
// agent's handle does not mask secrets that the agent may not read, although a
// tool may have put them into the text.
//
// Every string, sequence of bytes, number and key of a map in the value is
// masked, at any depth. It is also found if it is escaped as in JSON (once or
// twice), Go, HTML or a URL, or encoded in base64 or hexadecimal, also as a part
// of a larger encoded text. A value of less than 6 bytes is masked only where it
// is not part of a word, and a number only where it is not part of a number with
// a fraction. What stands beside a mask without a gap is a part of its word.
//
// As long as the text is JSON from its beginning, the result is JSON: a number
// that contains a secret becomes a string with the mask, and punctuation does
// not change. Redact is idempotent.
//
// Redact knows the values that are set now. Values that were replaced or
// deleted, and values that only a fork has, are not masked. A [Redactor] masks
// a fixed set of values.
func (s *State) Redact(text string) string { return s.Redactor().Redact(text) }

// Redactor returns a Redactor for the secrets that this handle may read, as
// they are set now. Call it on the host's handle, which knows all secrets: an
// agent's handle leaves out the secrets that the agent may not read.
//
// The Redactor does not mask values that are set later, and still masks values
// that are replaced or deleted later. Values that are set only in a fork are
// masked only by Redactors of that fork. Redactor returns nil if no secret is
// set. It returns the same Redactor as long as the secrets do not change, so it
// is cheap to call for each text.
func (s *State) Redactor() *Redactor { return s.on().redactor() }

// hostRedactor returns the Redactor for all secrets of the state, whatever
// rights the handle has.
func (s *State) hostRedactor() *Redactor {
	host := *s.on()
	host.rights = nil
	return host.redactor()
}

func (h *handle) redactor() *Redactor {
	var room [16]secretCell
	cells := h.secretCells(room[:0])
	if len(cells) == 0 {
		return nil
	}
	if r, ok := h.family.redactors.get(cells); ok {
		return r
	}
	var secrets []redact.Secret
	for _, c := range cells {
		secrets = append(secrets, c.spec.leaves(c.cell.Value)...)
	}
	r := newRedactor(secrets)
	h.family.redactors.put(cells, r)
	return r
}

// secretCells appends the cells of the secret fields that the handle may read,
// as they are at one moment: cells that are the same in two passes did not
// change between them.
func (h *handle) secretCells(cells []secretCell) []secretCell {
	cells = h.readSecretCells(h.branch, cells)
	for range 4 {
		if len(cells) < 2 {
			return cells
		}
		var room [16]secretCell
		again := h.readSecretCells(h.branch, room[:0])
		if slices.Equal(cells, again) {
			return cells
		}
		cells = append(cells[:0], again...)
	}
	return h.readSecretCells(h.branch.Freeze(), cells[:0])
}

func (h *handle) readSecretCells(b *engine.Branch, cells []secretCell) []secretCell {
	for _, sp := range h.schema.secrets {
		if !h.mayRead(sp) {
			continue
		}
		if c := b.Slot(&sp.slot); c != nil {
			cells = append(cells, secretCell{sp, c})
		}
		// A value that was given to With does not make the stored one public.
		if c := h.overlay[sp.address()]; c != nil {
			cells = append(cells, secretCell{sp, c})
		}
	}
	for _, c := range h.covered {
		if h.mayRead(c.spec) {
			cells = append(cells, c)
		}
	}
	return cells
}

// leaves returns the texts of which a stored value consists.
func (sp *fieldSpec) leaves(stored any) []redact.Secret {
	v := reflect.New(sp.form.Type).Elem() // which keeps an interface
	if shared := sp.form.Share(stored); shared != nil {
		v.Set(reflect.ValueOf(shared))
	}
	leaves := value.Leaves(v)
	secrets := make([]redact.Secret, len(leaves))
	for i, leaf := range leaves {
		secrets[i] = redact.Secret(leaf)
	}
	return secrets
}
