// Package callkey makes the keys of tool calls.
//
// Providers give calls ids that repeat, or none. A key is drawn when an answer
// is recorded, is stored with the call, and is its identity everywhere but in
// requests to a provider. It has 84 random bits: nothing that repeats, such as a
// position, a time, a run or an id, goes into it. It is a letter and 14
// characters of base64url: it fits in a URL and in an id of HTML, and takes 24
// bytes in the JSON of a call.
package callkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The first letter of a key says whether the id of the call can stand in a
// request. The keys of calls that are not recorded begin with another letter.
const (
	own      = 'c' // the id is the call's own
	repeated = 'r' // another call of the conversation had the id before
	derived  = 'd' // made of what identifies the call elsewhere
)

const (
	chars    = 14
	maxBytes = 64
)

// New returns a key for a call.
func New() string {
	var random [(chars*6 + 7) / 8]byte
	_, _ = rand.Read(random[:]) // never fails
	return encode(own, random[:])
}

// Derive returns the key of a call that something else than a conversation
// identifies by the parts: the same for the same parts.
func Derive(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		_, _ = h.Write([]byte(":" + part))
	}
	return encode(derived, h.Sum(nil))
}

func encode(kind byte, bits []byte) string {
	return string(kind) + base64.RawURLEncoding.EncodeToString(bits)[:chars]
}

// Child returns the key of the n-th call that the function of a call makes.
func Child(key string, n int) string {
	if child := key + "." + strconv.Itoa(n); len(child) <= maxBytes {
		return child
	}
	return Derive(key, strconv.Itoa(n))
}

// Repeat returns the key as that of a call whose id another call had before.
func Repeat(key string) string { return string(repeated) + key[1:] }

// Own returns the key as that of a call whose id is its own.
func Own(key string) string { return string(own) + key[1:] }

// Repeats reports whether another call had the id of the call before.
func Repeats(key string) bool { return key != "" && key[0] == repeated }

// WireID returns the id by which requests name a call whose own id is missing or
// repeats: the same in each request, for the call and its result.
func WireID(key string) string { return "call_" + key[1:] }

// IDOf returns the id by which requests name a call with an id of its own and a
// key: that id, unless it is missing or repeats.
func IDOf(id, key string) string {
	if key != "" && (id == "" || Repeats(key)) {
		return WireID(key)
	}
	return id
}

// Valid reports whether a text may be a key.
func Valid(key string) bool {
	return key != "" && len(key) <= maxBytes &&
		strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// Masks replaces keys in texts by key_1, key_2 … in the order in which they
// appear: keys are random, and texts that are compared must not be. Its zero value
// knows none.
type Masks struct {
	names map[string]string
	keys  []string
}

// inJSON finds the keys in messages.
var inJSON = regexp.MustCompile(`"key":\s*"([` + string(own) + string(repeated) + `][A-Za-z0-9_-]{` + strconv.Itoa(chars) + `})"\s*}`)

// Add adds keys that texts may have.
func (m *Masks) Add(keys ...string) {
	for _, key := range keys {
		if m.names[key] != "" || key == "" {
			continue
		}
		if m.names == nil {
			m.names = map[string]string{}
		}
		m.keys = append(m.keys, key)
		m.names[key] = fmt.Sprintf("key_%d", len(m.keys))
	}
}

// Mask replaces the keys in a text: those that are known, and those of messages in
// it.
func (m *Masks) Mask(text string) string {
	for _, found := range inJSON.FindAllStringSubmatch(text, -1) {
		m.Add(found[1])
	}
	for _, key := range m.keys {
		text = strings.ReplaceAll(text, key, m.names[key])
	}
	return text
}
