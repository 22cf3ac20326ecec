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

// encode returns the head as it is stored: its JSON with a checksum as the last
// member. The checksum finds damage; it does not authenticate.
func (h *head) encode() ([]byte, error) {
	data, err := h.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return appendHash(data, "sum", hash(data)), nil
}

// decodeHead is the inverse of encode. key is for errors.
func decodeHead(key string, data []byte) (*head, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	body, sum, ok := cutHash(data, "sum")
	if !ok || sum != hash(body) {
		// A newer format may have its checksum elsewhere.
		var f struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(data, &f) == nil && f.Format > headFormat {
			return nil, fmt.Errorf("%w: %s: format %d", ErrNewerFormat, key, f.Format)
		}
		return nil, corrupt(key, "the checksum does not match")
	}
	h := &head{}
	if err := json.Unmarshal(body, h); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	switch {
	case h.Format > headFormat:
		return nil, fmt.Errorf("%w: %s: format %d", ErrNewerFormat, key, h.Format)
	case h.Format != headFormat:
		return nil, corrupt(key, "no format")
	}
	return h, nil
}

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

func (h head) MarshalJSON() ([]byte, error) {
	type plain head
	return marshalKnown(plain(h), h.unknownMembers)
}

func (h *head) UnmarshalJSON(data []byte) error {
	type plain head
	return unmarshalKnown(data, (*plain)(h), &h.unknownMembers)
}

func (r activeRun) MarshalJSON() ([]byte, error) {
	type plain activeRun
	return marshalKnown(plain(r), r.unknownMembers)
}

func (r *activeRun) UnmarshalJSON(data []byte) error {
	type plain activeRun
	return unmarshalKnown(data, (*plain)(r), &r.unknownMembers)
}

func (m pendingMessage) MarshalJSON() ([]byte, error) {
	type plain pendingMessage
	return marshalKnown(plain(m), m.unknownMembers)
}

func (m *pendingMessage) UnmarshalJSON(data []byte) error {
	type plain pendingMessage
	return unmarshalKnown(data, (*plain)(m), &m.unknownMembers)
}

func (d deadLetter) MarshalJSON() ([]byte, error) {
	type plain deadLetter
	return marshalKnown(plain(d), d.unknownMembers)
}

func (d *deadLetter) UnmarshalJSON(data []byte) error {
	type plain deadLetter
	return unmarshalKnown(data, (*plain)(d), &d.unknownMembers)
}

func (r blobRef) MarshalJSON() ([]byte, error) {
	type plain blobRef
	return marshalKnown(plain(r), r.unknownMembers)
}

func (r *blobRef) UnmarshalJSON(data []byte) error {
	type plain blobRef
	return unmarshalKnown(data, (*plain)(r), &r.unknownMembers)
}

func (s snapshot) MarshalJSON() ([]byte, error) {
	type plain snapshot
	return marshalKnown(plain(s), s.unknownMembers)
}

func (s *snapshot) UnmarshalJSON(data []byte) error {
	type plain snapshot
	return unmarshalKnown(data, (*plain)(s), &s.unknownMembers)
}

// A head has up to maxFinished of these. They are coded without reflection.
func (f finishedMessage) MarshalJSON() ([]byte, error) {
	known := jsontext.Object{}.WithString("id", f.ID).WithString("as", f.Outcome)
	return append(known, f.unknownMembers...).JSON(), nil
}

func (f *finishedMessage) UnmarshalJSON(data []byte) error {
	r := jsontext.ReadObject("$", data)
	f.ID, f.Outcome = r.String("id"), r.String("as")
	f.unknownMembers = cloneMembers(r.Rest())
	return r.Err()
}

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
	isUnknown := func(m jsontext.Member) bool {
		return !slices.ContainsFunc(members, func(k jsonstruct.Member) bool { return k.Name == m.Name })
	}
	if slices.ContainsFunc(all, isUnknown) {
		*unknown = cloneMembers(slices.DeleteFunc(slices.Clone(all), func(m jsontext.Member) bool { return !isUnknown(m) }))
		data = jsontext.Object(slices.DeleteFunc(all, isUnknown)).JSON()
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
