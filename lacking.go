package state

import (
	"errors"
	"log/slog"
)

// What answers without an error, such as GetOr, cannot say that the schema does not have
// the field: mostly its name is misspelt, or it was not given to NewSchema. The host is
// told, once for each field, and the answer stays what it is for an unset field. A
// program may ask on purpose, so this is no panic.

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
	if !h.schema.told.Add(name) {
		return
	}
	if tell := h.family.tell; tell != nil {
		tell(name, err)
		return
	}
	slog.Default().Warn("state: a field that is read is not in the schema of the State", "field", name, "err", err)
}
