package natsstore

import (
	"encoding/hex"
	"strings"

	"github.com/agentstate/state/store"
)

// hexDigits are the digits of escaped bytes in subjects.
const hexDigits = "0123456789ABCDEF"

// encodeKey returns the subject of a key, without the prefix of the bucket.
// Slashes separate the tokens of the subject, by which a server can filter. A
// byte that a token must not contain is encoded as = and two hexadecimal
// digits. No two keys have the same subject, and subjects remain readable.
func encodeKey(key string) string {
	var subject strings.Builder
	for i, token := range strings.Split(key, "/") {
		if i > 0 {
			subject.WriteByte('.')
		}
		if token == "" {
			subject.WriteByte('=') // a token must not be empty
		}
		for _, c := range []byte(token) {
			if isTokenByte(c) {
				subject.WriteByte(c)
			} else {
				subject.Write([]byte{'=', hexDigits[c>>4], hexDigits[c&15]})
			}
		}
	}
	return subject.String()
}

// decodeKey returns the key of a subject, or false if encodeKey never returns
// subject.
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
	// Other programs may write to the bucket. A key has exactly one subject.
	if encodeKey(key.String()) != subject || store.CheckKey(key.String()) != nil {
		return "", false
	}
	return key.String(), true
}

// subjectFilter returns a filter that matches all keys with the prefix, and
// possibly others, whose tokens after the last slash of the prefix match last:
// "*" for one token or ">" for any number.
func subjectFilter(prefix, last string) string {
	prefix = prefix[:min(len(prefix), store.MaxKey)]
	slash := strings.LastIndexByte(prefix, '/')
	if slash < 0 {
		return last
	}
	return encodeKey(prefix[:slash]) + "." + last
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
