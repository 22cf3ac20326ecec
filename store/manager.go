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

// Manager keeps strings and JSON in a store, under keys of which all begin with
// one prefix. It is safe for concurrent use, and so are several on one store.
// It does not close the store.
type Manager struct {
	store  Store
	prefix string
}

// NewManager returns a Manager that puts prefix, which may be empty, in front of
// every key. Choose prefixes of which none begins with another, such as "user:7/"
// and "user:71/".
func NewManager(s Store, prefix string) *Manager {
	return &Manager{store: s, prefix: prefix}
}

// Get returns the value of a key, and whether there is one. That there is none is
// no error.
func (m *Manager) Get(ctx context.Context, key string) (string, bool, error) {
	e, found, err := m.get(ctx, "get", key)
	return string(e.Value), found, err
}

// Set writes a value, whatever is there. To change a value that others may be
// changing, use [Manager.Update].
func (m *Manager) Set(ctx context.Context, key, value string) error {
	return m.set(ctx, "set", key, []byte(value), Always)
}

// Delete removes a key. That it is not there is no error.
func (m *Manager) Delete(ctx context.Context, key string) error {
	if err := m.check("delete", key); err != nil {
		return err
	}
	return m.store.Delete(ctx, m.prefix+key, Always)
}

// GetJSON decodes the value of a key into dst, as encoding/json does, and reports
// whether there is one; if not, dst is as it was. A number becomes a json.Number
// where dst leaves the type open, so that large ones stay what they are.
func (m *Manager) GetJSON(ctx context.Context, key string, dst any) (bool, error) {
	e, found, err := m.get(ctx, "get JSON", key)
	if err != nil || !found {
		return false, err
	}
	if err = decode(e.Value, dst); err != nil {
		return true, m.fail("get JSON", key, &jsonError{err})
	}
	return true, nil
}

func decode(data []byte, dst any) error {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return err // a Decoder would stop at the end of the first value
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(dst)
}

// SetJSON writes v as encoding/json encodes it, but with <, > and & as they are.
func (m *Manager) SetJSON(ctx context.Context, key string, v any) error {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return m.fail("set JSON", key, &jsonError{err})
	}
	return m.set(ctx, "set JSON", key, data, Always)
}

// Update replaces the value of a key by what fn makes of it, and returns what it
// wrote. Nothing that others write at the same time, from whatever process, is
// lost: if the value has changed meanwhile, fn is called again with the new one,
// until ctx ends. So fn should do nothing but compute. An error of fn is returned
// as it is, and nothing is written.
//
// ErrUnknownOutcome is returned too, for only the caller knows whether the update
// may be made twice.
func (m *Manager) Update(ctx context.Context, key string, fn func(value string, present bool) (string, error)) (string, error) {
	retry := backoff.Backoff{Min: 250 * time.Microsecond, Max: 128 * time.Millisecond}
	for {
		e, found, err := m.get(ctx, "update", key)
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
		err = m.set(ctx, "update", key, []byte(value), cond)
		if err == nil {
			return value, nil
		}
		if !errors.Is(err, ErrConflict) {
			return "", err
		}
		if retry.Wait(ctx) != nil {
			return "", m.fail("update", key, ctx.Err())
		}
	}
}

func (m *Manager) get(ctx context.Context, op, key string) (e Entry, found bool, err error) {
	if err := m.check(op, key); err != nil {
		return Entry{}, false, err
	}
	e, err = m.store.Get(ctx, m.prefix+key)
	if errors.Is(err, ErrNotFound) {
		return Entry{}, false, nil
	}
	return e, err == nil, err
}

func (m *Manager) set(ctx context.Context, op, key string, value []byte, cond Condition) error {
	if err := m.check(op, key); err != nil {
		return err
	}
	_, err := m.store.Put(ctx, m.prefix+key, value, cond)
	return err
}

// check returns ErrInvalid for what is no key, alone or behind the prefix.
func (m *Manager) check(op, key string) error {
	err := CheckKey(key)
	if err == nil && len(m.prefix)+len(key) > MaxKey {
		err = fmt.Errorf("%w: the key has %d bytes and the prefix %d, together more than %d",
			ErrInvalid, len(key), len(m.prefix), MaxKey)
	}
	if err == nil {
		err = CheckKey(m.prefix + key)
	}
	if err != nil {
		return m.fail(op, key, err)
	}
	return nil
}

func (m *Manager) fail(op, key string, err error) error {
	return &Error{Store: "manager", Op: op, Key: m.prefix + key, Err: err}
}

// jsonError is an error of encoding/json, or of a method that it calls, with a
// text of its own: theirs may hold what was to be encoded or decoded.
type jsonError struct{ err error }

func (e *jsonError) Unwrap() error { return e.err }

func (e *jsonError) Error() string {
	var (
		syntax  *json.SyntaxError
		misfit  *json.UnmarshalTypeError
		notGo   *json.InvalidUnmarshalError
		notJSON *json.UnsupportedTypeError
	)
	switch {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("not JSON, at byte %d", syntax.Offset)
	case errors.As(e.err, &misfit):
		return fmt.Sprintf("the JSON does not fit a Go %v, at byte %d", misfit.Type, misfit.Offset)
	case errors.As(e.err, &notGo):
		return "the destination is no pointer, or a nil one"
	case errors.As(e.err, &notJSON):
		return fmt.Sprintf("a Go %v cannot be JSON", notJSON.Type)
	}
	return "the value does not convert to or from JSON"
}
