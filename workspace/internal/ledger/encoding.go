package ledger

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
)

// appendHash returns an object with one more member at its end, whose value is
// a hash. It changes object.
func appendHash(object []byte, name, sum string) []byte {
	return append(appendText(object[:len(object)-1], name, sum), '}')
}

// cutHash undoes appendHash.
func cutHash(object []byte, name string) (rest []byte, sum string, ok bool) {
	i := len(object) - len(name) - len(`,"":""}`) - hashLen
	if i < 1 {
		return nil, "", false
	}
	last, ok := bytes.CutPrefix(object[i:], []byte(`,"`+name+`":"`))
	if !ok || !bytes.HasSuffix(last, []byte(`"}`)) {
		return nil, "", false
	}
	return append(object[:i:i], '}'), string(last[:hashLen]), true
}

const hashLen = 43

// hash returns SHA-256 of the concatenated parts as text of hashLen bytes.
func hash(parts ...[]byte) string {
	var sum [sha256.Size]byte
	if len(parts) == 1 {
		sum = sha256.Sum256(parts[0])
	} else {
		d := sha256.New()
		for _, p := range parts {
			d.Write(p)
		}
		copy(sum[:], d.Sum(nil))
	}
	var text [hashLen]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:])
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// NewID returns 128 random bits as text.
func NewID() string { return base64.RawURLEncoding.EncodeToString(randomBytes(16)) }

// textDigits are the 64 characters of random texts.
const textDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// randomText returns a random text of n characters.
func randomText(n int) string {
	text := randomBytes(n)
	for i, b := range text {
		text[i] = textDigits[int(b)%len(textDigits)]
	}
	return string(text)
}

// unknownMembers are members of a stored object that this program does not
// know. It writes them back unchanged, so that it loses nothing that a newer
// program has written.
type unknownMembers = jsontext.Object

func appendText(b []byte, name, text string) []byte {
	return jsontext.AppendQuote(jsontext.AppendName(b, name), text)
}

// appendOptional appends a member, unless its text is empty.
func appendOptional(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, name, text)
}

func appendUint(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(jsontext.AppendName(b, name), n, 10)
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(jsontext.AppendName(b, name), n, 10)
}

// appendCount appends a member, unless its number is 0.
func appendCount(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return appendInt(b, name, int64(n))
}

func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(jsontext.AppendName(b, name), '"')
	return append(t.AppendFormat(b, time.RFC3339Nano), '"')
}

// appendUnknown appends the unknown members and ends the object.
func appendUnknown(b []byte, unknown unknownMembers) []byte {
	for _, m := range unknown {
		b = jsontext.AppendMember(b, m.Name, m.Value)
	}
	return append(b, '}')
}

// unmarshalKnown decodes an object into a struct, by the exact names of the
// members, which encoding/json alone would match in any case.
func unmarshalKnown(data []byte, known any, unknown *unknownMembers) error {
	all, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	members, _ := jsonstruct.Members(reflect.TypeOf(known).Elem())
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	if others := jsontext.Object(all).Without(names...); len(others) > 0 {
		*unknown = cloneMembers(others)
		data = jsontext.Object(slices.DeleteFunc(all, func(m jsontext.Member) bool {
			return !slices.Contains(names, m.Name)
		})).JSON()
	}
	return json.Unmarshal(data, known)
}

// cloneMembers returns members that do not keep the text in memory from which
// they were read; nil if there are none.
func cloneMembers(members unknownMembers) unknownMembers {
	var c unknownMembers
	for _, m := range members {
		c = append(c, jsontext.Member{Name: m.Name, Value: slices.Clone(m.Value)})
	}
	return c
}
