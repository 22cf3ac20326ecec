package state

import (
	"reflect"

	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Redactor masks a fixed set of secrets in texts. [State.Redactor] makes one. A
// nil *Redactor masks nothing. It is safe for concurrent use.
type Redactor struct{ secrets *redact.Redactor }

// Redactor returns a Redactor for the secrets that this handle may read, as
// they are set now. It does not learn of secrets that are set later, and keeps
// those that are replaced or deleted later.
func (s *State) Redactor() *Redactor {
	h := s.on()
	var secrets []redact.Secret
	for _, sp := range h.schema.fields {
		if !sp.form.Secret || !h.mayRead(sp) {
			continue
		}
		if c := h.branch.Slot(&sp.slot); c != nil {
			secrets = append(secrets, sp.leaves(c.Value)...)
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	return &Redactor{redact.New(secrets)}
}

// Redact returns text with [SECRET] in place of each secret.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	return r.secrets.Redact(text)
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
