package state

import (
	"reflect"

	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Redact returns text with every value of a Secret field that this handle may
// read replaced by [SECRET]. Use the host's handle, which knows all secrets: an
// agent's handle leaves secrets that the agent may not read, although a tool
// may have put them into the text.
//
// Every string, sequence of bytes, number and key of a map in the value is
// masked, at any depth. It is also found if it is JSON-escaped or URL-, base64-
// or hex-encoded. A value of less than 6 bytes is masked only where it stands
// alone.
//
// Redact knows the values that are set now. Values that were replaced or
// deleted, and values that only a branch has, are not masked.
func (s *State) Redact(text string) string {
	h := s.on()
	var secrets []string
	for _, sp := range h.schema.fields {
		if !sp.form.Secret || !h.mayRead(sp) {
			continue
		}
		if c := h.branch.Slot(&sp.slot); c != nil {
			secrets = append(secrets, sp.leaves(c.Value)...)
		}
	}
	if len(secrets) == 0 {
		return text
	}
	return redact.New(secrets).Redact(text)
}

// leaves returns the texts of which a stored value consists.
func (sp *fieldSpec) leaves(stored any) []string {
	v := reflect.New(sp.form.Type).Elem() // which keeps an interface
	if shared := sp.form.Share(stored); shared != nil {
		v.Set(reflect.ValueOf(shared))
	}
	leaves := value.Leaves(v)
	texts := make([]string, len(leaves))
	for i, leaf := range leaves {
		texts[i] = leaf.Text
	}
	return texts
}
