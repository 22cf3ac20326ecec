package workspace

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Kind says what a Record comes from.
type Kind string

// The kinds of records.
const (
	KindStep      Kind = "step"      // a Commit of a run
	KindFinish    Kind = "finish"    // the end of a run
	KindInterrupt Kind = "interrupt" // calls of tools that the end of a run left open were closed
	KindRollback  Kind = "rollback"  // what a run had committed was taken back
	KindUpdate    Kind = "update"    // Manager.Update
)

// Record is one change of the content of a workspace: what Commit, Finish or
// another operation has changed at once.
type Record struct {
	Version uint64         `json:"version"`
	Kind    Kind           `json:"kind"`
	Time    time.Time      `json:"time"`
	RunID   string         `json:"run,omitempty"`
	Lease   string         `json:"lease,omitempty"` // the holder of the run
	Message string         `json:"msg,omitempty"`   // the id of the message that the run handles
	Effects []state.Effect `json:"effects,omitempty"`
	Chain   string         `json:"-"` // the hash of all records up to this one
}

// entry is a record as it is stored and will always be: its JSON, with the hash of
// the chain up to it at the end.
type storedRecord struct {
	text    json.RawMessage
	version uint64
	chain   string
}

// link returns the entry of a record that comes after a chain.
func (r *Record) chainAfter(chain string) (storedRecord, error) {
	body, err := jsontext.Marshal(r)
	if err != nil {
		return storedRecord{}, err
	}
	e := storedRecord{version: r.Version, chain: hash([]byte(chain), body)}
	e.text = appendHash(body, "chain", e.chain)
	return e, nil
}

// MarshalJSON returns the text.
func (e storedRecord) MarshalJSON() ([]byte, error) { return e.text, nil }

// UnmarshalJSON keeps the text.
func (e *storedRecord) UnmarshalJSON(data []byte) error {
	_, chain, ok := cutHash(data, "chain")
	if !ok {
		return fmt.Errorf("a record has no chain")
	}
	var head struct {
		Version uint64 `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	*e = storedRecord{text: append([]byte(nil), data...), version: head.Version, chain: chain}
	return nil
}

// record returns what the entry says, if it is the one that comes after a point.
func (e *storedRecord) decode(key string, after position) (*Record, error) {
	where := fmt.Sprintf("record %d", e.version)
	body, _, _ := cutHash(e.text, "chain")
	switch {
	case e.version != after.Version+1:
		return nil, corrupt(key, fmt.Sprintf("%s comes after version %d", where, after.Version))
	case hash([]byte(after.Chain), body) != e.chain:
		return nil, corrupt(key, where+" does not fit the chain")
	}
	if err := jsontext.Check(body, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, key, where, err)
	}
	r := &Record{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, key, where, err)
	}
	return r, nil
}

func (e *storedRecord) position() position { return position{e.version, e.chain} }
