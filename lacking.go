package state

import (
	"errors"
	"log/slog"
	"sync"
)

// What answers without an error, such as GetOr, cannot say that the schema does not have
// the field: mostly its name is misspelt, or it was not given to NewSchema. The host is
// told, once for each field, and the answer stays what it is for an unset field. A
// program may ask on purpose, so this is no panic.

// toldFields are the fields of which the host was told, for all states of a schema.
type toldFields struct {
	mu    sync.Mutex
	names map[string]bool
}

// maxToldFields bounds the names that are kept: rules may come from elsewhere.
const maxToldFields = 1000

// add reports whether the name is a new one.
func (t *toldFields) add(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name] || len(t.names) >= maxToldFields {
		return false
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
	return true
}

// tellLacking tells the host of the error of a use that returns none, if it is that of a
// field which the schema does not have, or has in another form.
func (h *handle) tellLacking(err error) {
	if err == nil || h.lacks != nil { // then it was told
		return
	}
	var name string
	var wrong *TypeError
	switch lacking := (*unknownFieldError)(nil); {
	case errors.As(err, &lacking):
		name = lacking.name
	case errors.As(err, &wrong):
		name = wrong.Field
	default:
		return
	}
	if !h.schema.told.add(name) {
		return
	}
	if tell := h.family.tell; tell != nil {
		tell(name, err)
		return
	}
	slog.Default().Warn("state: a field that is read is not in the schema of the State", "field", name, "err", err)
}
