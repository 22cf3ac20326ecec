package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/work"
)

// The encoders of this package are written by hand. A head and a record are
// encoded with each write, and encoding/json takes ten times as long.

// encode returns the head as it is stored: its JSON with a checksum as the last
// member. The checksum finds damage; it does not authenticate.
func (h *Head) encode() []byte {
	data := h.appendJSON(make([]byte, 0, 2<<10))
	return appendHash(data, "sum", hash(data))
}

func (h *Head) appendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendUint(b, "format", uint64(h.Format))
	b = appendText(b, "user", h.User)
	b = appendUint(b, "epoch", h.Epoch)
	b = appendUint(b, "seq", h.Seq)
	b = appendUint(b, "token", h.Token)
	b = appendUint(b, "version", h.Version)
	b = appendText(b, "chain", h.Chain)
	b = appendTime(b, "updated", h.Updated)
	if h.Run != nil {
		short := h.shortRun()
		b = short.appendJSON(appendName(b, "run"))
	}
	b = h.Queue.appendJSON(b, "queue")
	b = appendCount(b, "queue_bytes", h.QueueBytes)
	b = appendOptional(b, "ended", h.Ended)
	b = appendOptional(b, "endings", h.Endings)
	b = appendOptional(b, "outcomes", h.Outcomes)
	if h.DeadLetters != (deadLetters{}) {
		b = append(appendName(b, "dead_letters"), '{')
		b = appendUint(b, "count", uint64(h.DeadLetters.Count))
		b = append(appendText(b, "blob", h.DeadLetters.Blob), '}')
	}
	b = appendText(b, "ops", h.Ops)
	if s := h.Snapshot; s != nil {
		b = append(appendName(b, "snapshot"), '{')
		b = s.Position.appendMembers(b)
		b = s.Parts.appendJSON(b, "parts")
		b = appendCount(b, "bytes", s.Bytes)
		b = append(b, '}')
	}
	b = h.Records.appendJSON(b, "records")
	b = appendCount(b, "record_bytes", h.RecordBytes)
	if h.Past != (past{}) {
		b = append(appendName(b, "past"), '{')
		b = appendUint(b, "oldest", h.Past.Oldest)
		b = appendInt(b, "bytes", int64(h.Past.Bytes))
		b = append(appendText(b, "blob", h.Past.Blob), '}')
	}
	b = appendCount(b, "suspended", h.Suspended)
	if h.Expires > 0 {
		b = appendInt(b, "expires_ms", h.Expires)
	}
	if h.Purge > 0 {
		b = appendUint(b, "purge", h.Purge)
	}
	if !h.Deleted.IsZero() {
		b = appendTime(b, "deleted", h.Deleted)
	}
	if h.Closed {
		b = append(appendName(b, "closed"), "true"...)
	}
	if h.Sweeping {
		b = append(appendName(b, "sweeping"), "true"...)
	}
	if h.Kept > 0 {
		b = appendUint(b, "kept", h.Kept)
	}
	b = appendOptional(b, "title", h.Title)
	b = appendOptional(b, "name", h.Name)
	b = appendOptional(b, "notes", h.Notes)
	return append(b, '}')
}

func (r *Run) appendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendText(b, "lease_id", r.LeaseID)
	b = appendOptional(b, "holder", r.Holder)
	b = appendText(b, "run_id", r.RunID)
	if r.Token > 0 {
		b = appendUint(b, "token", r.Token)
	}
	b = appendInt(b, "ttl_ms", r.TTL)
	if r.Renewals > 0 {
		b = appendUint(b, "renewals", r.Renewals)
	}
	b = appendCount(b, "attempt", r.Attempt)
	b = r.Message.appendJSON(appendName(b, "message"))
	if r.Base != sameBase {
		b = append(appendName(b, "base"), '{')
		b = append(r.Base.appendMembers(b), '}')
	}
	if !r.Began.IsZero() {
		b = appendTime(b, "began", r.Began)
	}
	b = appendOptional(b, "trace", r.Trace)
	b = appendCount(b, "answers", r.Answers)
	if r.Ended {
		b = append(appendName(b, "ended"), "true"...)
	}
	for i := range r.Joined {
		if i == 0 {
			b = append(appendName(b, "joined"), '[')
		} else {
			b = append(b, ',')
		}
		b = r.Joined[i].appendJSON(b)
	}
	if len(r.Joined) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// sameBase stands for the position of the head, in a run that is stored. No run
// begins there.
var sameBase = Position{Version: math.MaxUint64}

// shortRun returns the run without what the head says too.
func (h *Head) shortRun() Run {
	r := *h.Run
	if r.Token == h.Token {
		r.Token = 0
	}
	if r.Base == h.Position() {
		r.Base = sameBase
	}
	if r.Message.At.Equal(h.Updated) {
		r.Message.At = time.Time{}
	}
	if r.Began.Equal(h.Updated) {
		r.Began = time.Time{}
	}
	return r
}

// wholeRun undoes shortRun for the run that was read.
func (h *Head) wholeRun() {
	r := h.Run
	if r.Token == 0 {
		r.Token = h.Token
	}
	if r.Base == sameBase {
		r.Base = h.Position()
	}
	if r.Message.At.IsZero() {
		r.Message.At = h.Updated
	}
	if r.Began.IsZero() {
		r.Began = h.Updated
	}
}

// UnmarshalJSON is the inverse of appendJSON.
func (r *Run) UnmarshalJSON(data []byte) error {
	type plain Run
	r.Base = sameBase // unless data has it
	return json.Unmarshal(data, (*plain)(r))
}

func (m *Message) appendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendText(b, "id", m.ID)
	if !m.At.IsZero() {
		b = appendTime(b, "at", m.At)
	}
	b = appendOptional(b, "trace", m.Trace)
	if m.Stands {
		b = append(appendName(b, "stands"), "true"...)
	}
	if m.Ticket {
		b = append(appendName(b, "ticket"), "true"...)
	}
	if m.Join {
		b = append(appendName(b, "join"), "true"...)
	}
	if len(m.Body) > 0 {
		b = jsontext.AppendCompact(appendName(b, "body"), m.Body)
	}
	b = appendOptional(b, "blob", m.Blob)
	b = appendCount(b, "body_bytes", m.BodyBytes)
	return append(b, '}')
}

func (p Position) appendMembers(b []byte) []byte {
	return appendText(appendUint(b, "version", p.Version), "chain", p.Chain)
}

// appendJSON appends the list as a member, unless it is zero.
func (l *blobList) appendJSON(b []byte, name string) []byte {
	if l.First == 0 && l.Next == 0 && len(l.Levels) == 0 {
		return b
	}
	b = append(appendName(b, name), '{')
	b = appendUint(b, "first", l.First)
	b = appendUint(b, "next", l.Next)
	if len(l.Levels) > 0 {
		b = append(appendName(b, "levels"), '[')
		for i, names := range l.Levels {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsontext.AppendQuote(b, names)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// decodeHead is the inverse of encode, for the head of a user. key is for
// errors.
func decodeHead(key, user string, data []byte) (*Head, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", work.ErrCorrupt, key, err)
	}
	body, sum, ok := cutHash(data, "sum")
	if !ok || sum != hash(body) {
		// A newer format may have its checksum elsewhere.
		var f struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(data, &f) == nil && f.Format > headFormat {
			return nil, fmt.Errorf("%w: %s: format %d", work.ErrNewerFormat, key, f.Format)
		}
		return nil, corrupt(key, "the checksum does not match")
	}
	h := &Head{}
	if err := json.Unmarshal(body, h); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", work.ErrCorrupt, key, err)
	}
	if h.Run != nil {
		h.wholeRun()
	}
	switch {
	case h.Format > headFormat:
		return nil, fmt.Errorf("%w: %s: format %d", work.ErrNewerFormat, key, h.Format)
	case h.Format < headFormat:
		return nil, corrupt(key, fmt.Sprintf("format %d, want %d", h.Format, headFormat))
	case h.User != user:
		return nil, corrupt(key, "it is the workspace of another user, "+fault.Quote(h.User))
	case h.Records.Next != h.Version || len(h.Ops)%nonceLen != 0 || h.Kept > h.Version+1 ||
		h.Past != (past{}) && h.Past.Oldest >= h.start().Version:
		return nil, corrupt(key, "its members do not fit each other")
	}
	return h, nil
}

// MarshalJSON writes the message as in a head.
func (m Message) MarshalJSON() ([]byte, error) { return m.appendJSON(nil), nil }

// openHead returns the head of a user in the value of a key.
func (s *Sealer) openHead(user, key string, value []byte) (*Head, error) {
	data, err := s.open(key, key, value)
	if err != nil {
		return nil, err
	}
	h, err := decodeHead(key, user, data)
	if err == nil {
		_, _, seal := cutSealHeader(value)
		h.keyID = seal.Key
	}
	return h, err
}
