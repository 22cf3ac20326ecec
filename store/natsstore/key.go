package natsstore

import (
	"encoding/hex"
	"strings"

	"github.com/agentstate/state/store"
)

// A key is written as a subject: slashes divide it into tokens, which is what a
// server can filter by, and what no token may hold is written as = and two
// hexadecimal digits. So a list of the bucket can be read, and no two keys have
// the same subject.
const digits = "0123456789ABCDEF"

// encodeKey returns the subject of a key, below that of the bucket.
func encodeKey(key string) string {
	var subject strings.Builder
	for i, token := range strings.Split(key, "/") {
		if i > 0 {
			subject.WriteByte('.')
		}
		if token == "" {
			subject.WriteByte('=') // a subject has no empty tokens
		}
		for _, c := range []byte(token) {
			if plain(c) {
				subject.WriteByte(c)
			} else {
				subject.Write([]byte{'=', digits[c>>4], digits[c&15]})
			}
		}
	}
	return subject.String()
}

// decodeKey returns the key of a subject, and false for a subject of no key.
func decodeKey(subject string) (string, bool) {
	var key strings.Builder
	for i, token := range strings.Split(subject, ".") {
		if i > 0 {
			key.WriteByte('/')
		}
		if token == "=" {
			continue
		}
		for i := 0; i < len(token); i++ {
			if token[i] != '=' {
				key.WriteByte(token[i])
				continue
			}
			if len(token) < i+3 {
				return "", false
			}
			c, err := hex.DecodeString(token[i+1 : i+3])
			if err != nil {
				return "", false
			}
			key.Write(c)
			i += 2
		}
	}
	// Others may have written into the bucket: one key has one subject.
	if encodeKey(key.String()) != subject || store.CheckKey(key.String()) != nil {
		return "", false
	}
	return key.String(), true
}

// filter returns a filter that matches all keys with the prefix, and maybe others.
func filter(prefix string) string {
	prefix = prefix[:min(len(prefix), store.MaxKey)]
	slash := strings.LastIndexByte(prefix, '/')
	if slash < 0 {
		return ">"
	}
	return encodeKey(prefix[:slash]) + ".>"
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
