package workspace

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Key is a master key. Each workspace is sealed with a key of its own that is
// derived from it. No form in which a Key is printed, logged or marshalled has the
// Secret.
type Key struct {
	ID     string // what is written next to what the key has sealed: up to 64 visible ASCII characters
	Secret []byte // 32 bytes or more, random
}

// String returns the ID.
func (k Key) String() string { return fmt.Sprintf("key %q %s", fault.Clip(k.ID), masked) }

// GoString returns String.
func (k Key) GoString() string { return k.String() }

// Format prints String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

const (
	keyIDBytes     = 64
	keySecretBytes = 32
	sealFormat     = 1
	// sealLabel is in every derived key, so that it is of no use for anything else.
	sealLabel = "agentstate workspace seal 1 "
	// sealHeaderBytes is within what the header of a sealed value ends, also that of
	// a newer format.
	sealHeaderBytes = 1 << 10
)

// sealer encrypts what is stored, so that it can only be read, and not be changed,
// by who has the key, and bound to the key of the store under which it lies. A nil
// sealer leaves everything as it is.
type sealer struct {
	first string // the ID of the key that seals
	// keys derive, by ID. They are funcs, so that printers that use reflection do
	// not reach a secret.
	keys map[string]func(workspace string) cipher.AEAD
}

// newSealer returns a sealer that seals with the first key and opens with all; nil
// without keys.
func newSealer(keys []Key) (*sealer, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	s := &sealer{first: keys[0].ID, keys: make(map[string]func(string) cipher.AEAD, len(keys))}
	for i, k := range keys {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("%w: key %d: %w", ErrInvalid, i, err)
		}
		if s.keys[k.ID] != nil {
			return nil, fmt.Errorf("%w: key %d: another key has its ID", ErrInvalid, i)
		}
		master, err := hkdf.Extract(sha256.New, k.Secret, nil)
		if err != nil {
			return nil, fmt.Errorf("workspace: key %d: %w", i, err)
		}
		s.keys[k.ID] = func(workspace string) cipher.AEAD {
			// None of these fails with keys of 32 bytes. Deriving takes
			// microseconds, so nothing is kept.
			key, _ := hkdf.Expand(sha256.New, master, sealLabel+workspace, 32)
			block, _ := aes.NewCipher(key)
			aead, _ := cipher.NewGCMWithRandomNonce(block)
			return aead
		}
	}
	return s, nil
}

func (k Key) check() error {
	if k.ID == "" || len(k.ID) > keyIDBytes {
		return fmt.Errorf("the ID has %d bytes, not 1 to %d", len(k.ID), keyIDBytes)
	}
	for _, c := range []byte(k.ID) {
		if c <= ' ' || c > '~' {
			return errors.New("the ID is not visible ASCII")
		}
	}
	if len(k.Secret) < keySecretBytes {
		return fmt.Errorf("the Secret has %d bytes, fewer than %d", len(k.Secret), keySecretBytes)
	}
	return nil
}

// sealHeader returns the line in front of what a key has sealed. The line and the
// key of the store are authenticated with it.
func sealHeader(id string) []byte {
	return fmt.Appendf(nil, `{"format":%d,"key":%s,"sealed":true}`+"\n", sealFormat, jsontext.AppendQuote(nil, id))
}

// sealData returns what is authenticated. It is unambiguous, since a header has no
// other line end than its last byte.
func sealData(key string, header []byte) []byte {
	return append([]byte(key+"\n"), header...)
}

// seal returns what is to be stored under a key of a workspace, which is named by
// the key of its head.
func (s *sealer) seal(workspace, key string, plain []byte) []byte {
	if s == nil {
		return plain
	}
	aead := s.keys[s.first](workspace)
	header := sealHeader(s.first)
	sealed := make([]byte, 0, len(header)+len(plain)+aead.Overhead())
	return aead.Seal(append(sealed, header...), nil, plain, sealData(key, header))
}

// open returns what seal was given. What is not sealed is compact JSON, so it has
// no line end and does not pass for sealed.
func (s *sealer) open(workspace, key string, data []byte) ([]byte, error) {
	line, box, h := cutSealHeader(data)
	switch {
	case !h.Sealed && s == nil:
		return data, nil
	case !h.Sealed:
		return nil, fmt.Errorf("%w: %s: not sealed, although keys are given", ErrInvalidKey, key)
	case h.Format > sealFormat:
		return nil, fmt.Errorf("%w: %s: seal of format %d", ErrNewerFormat, key, h.Format)
	case s == nil || s.keys[h.Key] == nil:
		return nil, fmt.Errorf("%w: %s: sealed with key %q, which is not given", ErrInvalidKey, key, fault.Clip(h.Key))
	}
	plain, err := s.keys[h.Key](workspace).Open(nil, nil, box, sealData(key, line))
	if err != nil {
		return nil, corrupt(key, "the seal does not fit")
	}
	return plain, nil
}

type sealHead struct {
	Format int    `json:"format"`
	Key    string `json:"key"`
	Sealed bool   `json:"sealed"`
}

// cutSealHeader returns the header of a sealed value, what comes after it, and
// what it says: nothing if the value is not sealed.
func cutSealHeader(data []byte) (line, box []byte, h sealHead) {
	end := 1 + bytes.IndexByte(data[:min(len(data), sealHeaderBytes)], '\n')
	if end == 0 || json.Unmarshal(data[:end], &h) != nil {
		return nil, nil, sealHead{}
	}
	return data[:end], data[end:], h
}
