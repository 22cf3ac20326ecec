package store

import (
	"fmt"
	"unicode/utf8"
)

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 512

// CheckKey returns an error that matches ErrInvalidKey if key is not valid.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d bytes, more than %d", ErrInvalidKey, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	return nil
}

// CheckWrites returns the key and the error of the first write of a batch that
// no store accepts: an invalid key, a key that an earlier write of the batch
// has, or a delete with IfAbsent. It is for implementations of [Store].
func CheckWrites(writes []Write) (key string, err error) {
	seen := make(map[string]bool, len(writes))
	for _, w := range writes {
		if err := CheckKey(w.Key); err != nil {
			return w.Key, err
		}
		if w.Delete && w.Cond.Absent() {
			return w.Key, fmt.Errorf("%w: a delete with IfAbsent", ErrInvalid)
		}
		if seen[w.Key] {
			return w.Key, fmt.Errorf("%w: the key is in the batch twice", ErrInvalid)
		}
		seen[w.Key] = true
	}
	return "", nil
}

// onlyKey returns the key of a call with one key, or "". It is what the error of
// the whole call names.
func onlyKey(keys []string) string {
	if len(keys) == 1 {
		return keys[0]
	}
	return ""
}

// onlyWrite returns the key of a call with one write, or "".
func onlyWrite(writes []Write) string {
	if len(writes) == 1 {
		return writes[0].Key
	}
	return ""
}
