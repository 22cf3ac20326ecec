package ledger

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/jsontext"
)

// appendHash returns an object with one more member at its end, whose value is
// a hash. It changes object.
func appendHash(object []byte, name, sum string) []byte {
	return append(appendText(object[:len(object)-1], name, sum), '}')
}

// cutHash undoes appendHash.
func cutHash(object []byte, name string) (rest []byte, sum string, ok bool) {
	i, sum, ok := findHash(object, name)
	if !ok {
		return nil, "", false
	}
	return append(object[:i:i], '}'), sum, true
}

// findHash returns the hash that appendHash has appended, and where its member
// begins.
func findHash(object []byte, name string) (at int, sum string, ok bool) {
	at = len(object) - len(name) - len(`,"":""}`) - hashLen
	if at < 1 {
		return 0, "", false
	}
	last, ok := bytes.CutPrefix(object[at:], []byte(`,"`+name+`":"`))
	if !ok || !bytes.HasSuffix(last, []byte(`"}`)) {
		return 0, "", false
	}
	return at, string(last[:hashLen]), true
}

const hashLen = 43

// hash returns SHA-256 of the concatenated parts as text of hashLen bytes.
func hash(parts ...[]byte) string {
	return string(appendHashText(make([]byte, 0, hashLen), parts...))
}

// appendHashText appends what hash returns.
func appendHashText(b []byte, parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.AppendEncode(b, h.Sum(sum[:0]))
}

// NewID returns 128 random bits as text.
func NewID() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// textDigits are the 64 characters of random texts.
const textDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// randomText returns a random text of n characters.
func randomText(n int) string { return string(appendRandomText(make([]byte, 0, opIDLen), n)) }

// appendRandomText appends what randomText returns.
func appendRandomText(b []byte, n int) []byte {
	begin := len(b)
	b = slices.Grow(b, n)[:begin+n]
	_, _ = rand.Read(b[begin:]) // never fails
	for i := begin; i < len(b); i++ {
		b[i] = textDigits[int(b[i])%len(textDigits)]
	}
	return b
}

// appendName appends what stands in front of the value of a member. Names are
// constants of the format, which nothing escapes.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' { // which no value ends with
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, '"', ':')
}

func appendText(b []byte, name, text string) []byte {
	return jsontext.AppendQuote(appendName(b, name), text)
}

// appendOptional appends a member, unless its text is empty.
func appendOptional(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, name, text)
}

func appendUint(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(appendName(b, name), n, 10)
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(b, name), n, 10)
}

// appendCount appends a member, unless its number is 0.
func appendCount(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return appendInt(b, name, int64(n))
}

func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(appendName(b, name), '"')
	return append(t.AppendFormat(b, time.RFC3339Nano), '"')
}
