package workspace

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
)

// appendHash returns an object with one more member at its end, whose value is
// a hash.
func appendHash(object []byte, name, sum string) []byte {
	return fmt.Appendf(object[:len(object)-1:len(object)-1], `,"%s":"%s"}`, name, sum)
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

// hash returns SHA-256 as text of hashLen bytes.
func hash(parts ...[]byte) string {
	d := sha256.New()
	for _, p := range parts {
		d.Write(p)
	}
	return base64.RawURLEncoding.EncodeToString(d.Sum(nil))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// newID returns 128 random bits as text.
func newID() string { return base64.RawURLEncoding.EncodeToString(randomBytes(16)) }

// unknownMembers are members of a stored object that this program does not
// know. It writes them back unchanged, so that it loses nothing that a newer
// program has written.
type unknownMembers = jsontext.Object

// marshalKnown encodes a struct, followed by the unknown members.
func marshalKnown(known any, unknown unknownMembers) ([]byte, error) {
	data, err := jsontext.Marshal(known)
	if err != nil || len(unknown) == 0 {
		return data, err
	}
	data = append(data[:len(data)-1], ',')
	return append(data, unknown.JSON()[1:]...), nil
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
