package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Kind is the kind of operation that a Record comes from.
type Kind string

// The kinds of records.
const (
	KindStep      Kind = "step"      // Run.Commit
	KindFinish    Kind = "finish"    // Run.Finish
	KindInterrupt Kind = "interrupt" // answers tool calls that a run left without a result
	KindRollback  Kind = "rollback"  // undoes what a run has committed
	KindUpdate    Kind = "update"    // Manager.Update
)

// Record is one change of the content of a workspace.
//
// Its effects edit the stored content, so their parts are "field", "key",
// "message", "conversation", "memory" and "setting", or parts that a newer
// version of this package defines. The part "message" holds each message once,
// under a number; "conversation" refers to messages by their numbers.
type Record struct {
	Version uint64         `json:"version"`
	Kind    Kind           `json:"kind"`
	Time    time.Time      `json:"time"`
	RunID   string         `json:"run_id,omitempty"`
	Lease   string         `json:"lease_id,omitempty"`   // of the holder of the run
	Message string         `json:"message_id,omitempty"` // of the message that the run handles
	Effects []state.Effect `json:"effects,omitempty"`
	Chain   string         `json:"-"` // the hash of all records up to this one
}

// position is a version and the hash of the chain of records up to it.
type position struct {
	Version uint64 `json:"version"`
	Chain   string `json:"chain"`
}

// storedRecord is the text of a record, which never changes. Its last member is
// the hash of the chain up to it.
type storedRecord struct {
	text    json.RawMessage
	version uint64
	chain   string
}

// chainAfter returns the stored form of a record that follows a chain.
func (r *Record) chainAfter(chain string) (storedRecord, error) {
	body, err := jsontext.Marshal(r)
	if err != nil {
		return storedRecord{}, err
	}
	s := storedRecord{version: r.Version, chain: hash([]byte(chain), body)}
	s.text = appendHash(body, "chain", s.chain)
	return s, nil
}

// MarshalJSON returns the text.
func (s storedRecord) MarshalJSON() ([]byte, error) { return s.text, nil }

// UnmarshalJSON keeps the text.
func (s *storedRecord) UnmarshalJSON(data []byte) error {
	_, chain, ok := cutHash(data, "chain")
	if !ok {
		return errors.New("a record has no chain")
	}
	var known struct {
		Version uint64 `json:"version"`
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return err
	}
	*s = storedRecord{text: slices.Clone(data), version: known.Version, chain: chain}
	return nil
}

// decode returns the record, if it is the one that follows a position.
func (s *storedRecord) decode(key string, after position) (*Record, error) {
	where := fmt.Sprintf("record %d", s.version)
	body, _, _ := cutHash(s.text, "chain")
	switch {
	case s.version != after.Version+1:
		return nil, corrupt(key, fmt.Sprintf("%s follows version %d", where, after.Version))
	case hash([]byte(after.Chain), body) != s.chain:
		return nil, corrupt(key, where+" does not match the chain")
	}
	err := jsontext.Check(body, jsontext.Limits{})
	r := &Record{Chain: s.chain}
	if err == nil {
		err = json.Unmarshal(body, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, key, where, err)
	}
	return r, nil
}

func (s *storedRecord) position() position { return position{s.version, s.chain} }

// currentTime returns the time with the precision of records.
func currentTime() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
