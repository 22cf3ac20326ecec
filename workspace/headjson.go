package workspace

import (
	"encoding/json"
	"fmt"

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
