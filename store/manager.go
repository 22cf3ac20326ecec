package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/internal/jsontext"
)

// Manager keeps strings and JSON in a store under keys with a common prefix. It
// is safe for concurrent use, and several Managers can share a store. A Manager
// does not close its store.
type Manager struct {
	store  Store
	prefix string
}

// NewManager returns a Manager that puts prefix, which may be empty, in front
// of every key. Prefixes must not begin with one another: choose "user:7/" and
// "user:71/", not "user:7" and "user:71".
func NewManager(s Store, prefix string) *Manager {
	return &Manager{store: s, prefix: prefix}
}

// Get returns the value of a key, and whether the key exists. A missing key is
// not an error.
func (m *Manager) Get(ctx context.Context, key string) (string, bool, error) {
	e, found, err := m.getEntry(ctx, "get", key)
	return string(e.Value), found, err
}

// Set writes a value unconditionally. To change a value that others may be
// changing, use [Manager.Update].
func (m *Manager) Set(ctx context.Context, key, value string) error {
	return m.putValue(ctx, "set", key, []byte(value), Always)
}

// Delete removes a key. A missing key is not an error.
func (m *Manager) Delete(ctx context.Context, key string) error {
	if err := m.checkKey("delete", key); err != nil {
		return err
	}
	return Delete(ctx, m.store, m.prefix+key, Always)
}

// GetJSON decodes the value of a key into dst, as encoding/json does, and
// reports whether the key exists. It does not change dst if the key is missing.
// Where dst leaves the type open, a number is decoded as json.Number, which
// keeps large numbers exact.
func (m *Manager) GetJSON(ctx context.Context, key string, dst any) (bool, error) {
	e, found, err := m.getEntry(ctx, "get JSON", key)
	if err != nil || !found {
		return false, err
	}
	if err = decodeJSON(e.Value, dst); err != nil {
		return true, m.newError("get JSON", key, err)
	}
	return true, nil
}

// SetJSON writes v as encoding/json encodes it, but does not escape <, > and &.
func (m *Manager) SetJSON(ctx context.Context, key string, v any) error {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return m.newError("set JSON", key, &jsonError{err})
	}
	return m.putValue(ctx, "set JSON", key, data, Always)
}

// maxConflicts is how often Update tries. With the pauses between them that takes
// a minute or two, in which others have made as many updates: a store that never
// makes this one is broken.
const maxConflicts = 1000

// Update replaces the value of a key with the result of fn, and returns what it
// wrote. It loses no concurrent change, by any process: if the value has
// changed since it was read, Update calls fn again with the new value, until
// ctx ends, and returns ErrConflict after a thousand times. fn should therefore
// have no side effects. If fn fails, Update writes nothing and returns the error
// of fn.
//
// Update does not retry after ErrUnknownOutcome, because only the caller knows
// whether the change may be made twice.
func (m *Manager) Update(
	ctx context.Context, key string, fn func(value string, present bool) (string, error),
) (string, error) {
	retry := backoff.Backoff{Min: 250 * time.Microsecond, Max: 128 * time.Millisecond}
	for tries := 1; ; tries++ {
		e, found, err := m.getEntry(ctx, "update", key)
		if err != nil {
			return "", err
		}
		cond := IfAbsent
		if found {
			cond = IfRevision(e.Revision)
		}
		value, err := fn(string(e.Value), found)
		if err != nil {
			return "", err
		}
		err = m.putValue(ctx, "update", key, []byte(value), cond)
		if err == nil {
			return value, nil
		}
		if !errors.Is(err, ErrConflict) {
			return "", err
		}
		if tries == maxConflicts {
			return "", m.newError("update", key, fmt.Errorf("%d times: %w", tries, ErrConflict))
		}
		if retry.Wait(ctx) != nil {
			return "", m.newError("update", key, ctx.Err())
		}
	}
}

func (m *Manager) getEntry(ctx context.Context, op, key string) (e Entry, found bool, err error) {
	if err := m.checkKey(op, key); err != nil {
		return Entry{}, false, err
	}
	e, err = Get(ctx, m.store, m.prefix+key)
	if errors.Is(err, ErrNotFound) {
		return Entry{}, false, nil
	}
	return e, err == nil, err
}

func (m *Manager) putValue(ctx context.Context, op, key string, value []byte, cond Condition) error {
	if err := m.checkKey(op, key); err != nil {
		return err
	}
	_, err := Put(ctx, m.store, m.prefix+key, value, cond)
	return err
}

// checkKey returns an error if key, alone or with the prefix, is not valid. A
// key must be valid alone because two invalid halves can make valid UTF-8.
func (m *Manager) checkKey(op, key string) error {
	err := CheckKey(key)
	if err == nil && len(m.prefix)+len(key) > MaxKey {
		err = fmt.Errorf("%w: %d bytes with a prefix of %d bytes, more than %d",
			ErrInvalidKey, len(m.prefix)+len(key), len(m.prefix), MaxKey)
	}
	if err == nil {
		err = CheckKey(m.prefix + key)
	}
	if err != nil {
		return m.newError(op, key, err)
	}
	return nil
}

func (m *Manager) newError(op, key string, err error) error {
	return &Error{Store: "manager", Op: op, Key: m.prefix + key, Err: err}
}

func decodeJSON(data []byte, dst any) error {
	// A Decoder stops at the end of the first value and ignores the rest.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return &jsonError{err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(dst); err != nil {
		return &jsonError{err}
	}
	return nil
}

// jsonError wraps an error of encoding/json, or of a method that encoding/json
// calls, with a text that does not contain the value.
type jsonError struct{ err error }

func (e *jsonError) Unwrap() error { return e.err }

func (e *jsonError) Error() string {
	var (
		syntax      *json.SyntaxError
		mismatch    *json.UnmarshalTypeError
		destination *json.InvalidUnmarshalError
		unsupported *json.UnsupportedTypeError
	)
	switch {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("not JSON, at byte %d", syntax.Offset)
	case errors.As(e.err, &mismatch):
		return fmt.Sprintf("the JSON does not fit a Go %v, at byte %d", mismatch.Type, mismatch.Offset)
	case errors.As(e.err, &destination):
		return "the destination is not a pointer, or is nil"
	case errors.As(e.err, &unsupported):
		return fmt.Sprintf("a Go %v cannot be encoded as JSON", unsupported.Type)
	}
	return "the value does not convert to or from JSON"
}
