package ledger

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/work"
)

// Key is a master key, as package workspace documents it. A Key must not be
// kept, because it shows its Secret when it is printed.
type Key struct {
	ID     string
	Secret []byte
}

const (
	keyIDBytes     = 64
	keySecretBytes = 32
	sealFormat     = 1
	// sealLabel separates the derived keys from those of other uses of a
	// Secret.
	sealLabel = "agentstate workspace seal 1 "
	nameLabel = "agentstate file name 1 "
	// sealHeaderBytes is the maximum length of the header of a sealed value, in
	// this format and in newer ones.
	sealHeaderBytes = 1 << 10
)

// Sealer encrypts and authenticates stored values. Each value is bound to its
// key in the store, so that values cannot be swapped. A nil sealer leaves
// values as they are.
type Sealer struct {
	first string // the ID of the key that seals
	// keys derive keys of workspaces, by ID. They are functions so that printers that
	// use reflection do not reach a secret.
	keys map[string]func(label, workspace string) []byte
}

// NewSealer returns a sealer that seals with the first key and opens with all
// of them, or nil if there are no keys.
func NewSealer(keys []Key) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	s := &Sealer{first: keys[0].ID, keys: make(map[string]func(label, workspace string) []byte, len(keys))}
	for i, k := range keys {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("%w: key %d: %w", work.ErrInvalid, i, err)
		}
		if s.keys[k.ID] != nil {
			return nil, fmt.Errorf("%w: key %d: another key has the same ID", work.ErrInvalid, i)
		}
		master, err := hkdf.Extract(sha256.New, k.Secret, nil)
		if err != nil {
			return nil, fmt.Errorf("workspace: key %d: %w", i, err)
		}
		s.keys[k.ID] = func(label, workspace string) []byte {
			// It does not fail for 32 bytes, and takes microseconds, which is not worth
			// a cache.
			key, _ := hkdf.Expand(sha256.New, master, label+workspace, 32)
			return key
		}
	}
	return s, nil
}

// aead returns what seals the values of a workspace with the key of an ID.
func (s *Sealer) aead(id, workspace string) cipher.AEAD {
	block, _ := aes.NewCipher(s.keys[id](sealLabel, workspace)) // neither fails for 32 bytes
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return aead
}

// nameKey returns the key with which the files of a workspace are named, nil without
// keys.
func (s *Sealer) nameKey(workspace string) []byte {
	if s == nil {
		return nil
	}
	return s.keys[s.first](nameLabel, workspace)
}

func (k Key) check() error {
	if k.ID == "" || len(k.ID) > keyIDBytes {
		return fmt.Errorf("the ID has %d bytes: want 1 to %d", len(k.ID), keyIDBytes)
	}
	for _, c := range []byte(k.ID) {
		if c <= ' ' || c > '~' {
			return errors.New("the ID is not visible ASCII")
		}
	}
	if len(k.Secret) < keySecretBytes {
		return fmt.Errorf("the Secret has %d bytes: want at least %d", len(k.Secret), keySecretBytes)
	}
	return nil
}

// sealHeader returns the line before a value that a key has sealed. The line
// and the value's key in the store are authenticated together with the value.
func sealHeader(id string) []byte {
	return fmt.Appendf(nil, `{"format":%d,"key":%s,"sealed":true}`+"\n", sealFormat, jsontext.AppendQuote(nil, id))
}

// additionalData returns what is authenticated but not encrypted. It is
// unambiguous because the only line end of a header is its last byte.
func additionalData(key string, header []byte) []byte {
	return append([]byte(key+"\n"), header...)
}

// keyID returns the id of the key that seals, or "".
func (s *Sealer) keyID() string {
	if s == nil {
		return ""
	}
	return s.first
}

// seal returns the value to be stored under a key. workspace is the key of the
// head of the workspace.
func (s *Sealer) seal(workspace, key string, plain []byte) []byte {
	if s == nil {
		return plain
	}
	aead := s.aead(s.first, workspace)
	header := sealHeader(s.first)
	sealed := make([]byte, 0, len(header)+len(plain)+aead.Overhead())
	return aead.Seal(append(sealed, header...), nil, plain, additionalData(key, header))
}

// open is the inverse of seal. A value that is not sealed is compact JSON,
// which has no line end and cannot be taken for a sealed one.
func (s *Sealer) open(workspace, key string, data []byte) ([]byte, error) {
	line, box, h := cutSealHeader(data)
	switch {
	case !h.Sealed && s == nil:
		return data, nil
	case !h.Sealed:
		return nil, fmt.Errorf("%w: %s: not sealed, although keys are given", work.ErrInvalidKey, key)
	case h.Format > sealFormat:
		return nil, fmt.Errorf("%w: %s: seal of format %d", work.ErrNewerFormat, key, h.Format)
	case s == nil || s.keys[h.Key] == nil:
		return nil, fmt.Errorf("%w: %s: sealed with key %s, which is not given", work.ErrInvalidKey, key, fault.Quote(h.Key))
	}
	plain, err := s.aead(h.Key, workspace).Open(nil, nil, box, additionalData(key, line))
	if err != nil {
		return nil, corrupt(key, "authentication failed")
	}
	return plain, nil
}

// sealHead is the content of a seal header.
type sealHead struct {
	Format int    `json:"format"`
	Key    string `json:"key"`
	Sealed bool   `json:"sealed"`
}

// cutSealHeader splits a sealed value into header and box, and decodes the
// header. For a value that is not sealed, all results are zero.
func cutSealHeader(data []byte) (line, box []byte, h sealHead) {
	end := 1 + bytes.IndexByte(data[:min(len(data), sealHeaderBytes)], '\n')
	if end == 0 || json.Unmarshal(data[:end], &h) != nil {
		return nil, nil, sealHead{}
	}
	return data[:end], data[end:], h
}
