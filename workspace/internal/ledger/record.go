package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// The kinds of records. Package workspace documents them as its Kind.
const (
	KindStep      work.Kind = "step"
	KindFinish    work.Kind = "finish"
	KindInterrupt work.Kind = "interrupt"
	KindRollback  work.Kind = "rollback"
	KindUpdate    work.Kind = "update"
	KindFail      work.Kind = "fail"
	KindCancel    work.Kind = "cancel"
	KindImport    work.Kind = "import"
	KindRevert    work.Kind = "revert"
)

// originOf returns what a document notes of the messages that a record stores.
func originOf(r *work.Record) document.Origin { return document.Origin{Time: r.Time, Run: r.Message} }

// Position is a version and the hash of the chain of records up to it.
type Position struct {
	Version uint64 `json:"version"`
	Chain   string `json:"chain"`
}

// storedRecord is the text of a record, which never changes. Its last member is
// the hash of the chain up to it.
type storedRecord struct {
	text    []byte
	version uint64
	chain   string
}

// storedAfter returns the stored form of a record that follows a chain.
func storedAfter(chain string, r *work.Record) (storedRecord, error) {
	size := 512 + len(r.Reply) + len(r.Reason)
	for i := range r.Effects {
		size += 64 + len(r.Effects[i].Value)
	}
	body, err := appendRecord(make([]byte, 0, size), r)
	if err != nil {
		return storedRecord{}, err
	}
	s := storedRecord{version: r.Version, chain: hash([]byte(chain), body)}
	s.text = appendHash(body, "chain", s.chain)
	return s, nil
}

func appendRecord(b []byte, r *work.Record) ([]byte, error) {
	b = append(b, '{')
	b = appendUint(b, "version", r.Version)
	b = appendText(b, "kind", string(r.Kind))
	b = appendTime(b, "time", r.Time)
	b = appendOptional(b, "run_id", r.RunID)
	b = appendOptional(b, "lease_id", r.Lease)
	b = appendOptional(b, "message_id", r.Message)
	b = appendOptional(b, "ending", string(r.Ending))
	b = appendOptional(b, "reason", r.Reason)
	b = appendOptional(b, "reply", r.Reply)
	b = appendOptional(b, "stop", string(r.Stop))
	for i := range r.Effects {
		if i == 0 {
			b = append(appendName(b, "effects"), '[')
		} else {
			b = append(b, ',')
		}
		var err error
		if b, err = appendEffect(b, &r.Effects[i]); err != nil {
			return nil, err
		}
	}
	if len(r.Effects) > 0 {
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// newStoredRecord returns the record with a version, whose text was read.
func newStoredRecord(version uint64, text []byte) (*storedRecord, error) {
	_, chain, ok := findHash(text, "chain")
	if !ok {
		return nil, fmt.Errorf("record %d has no chain", version)
	}
	return &storedRecord{text: text, version: version, chain: chain}, nil
}

// decode returns the record, if it is the one that follows a position.
func (s *storedRecord) decode(key string, after Position) (*work.Record, error) {
	where := fmt.Sprintf("record %d", s.version)
	body, _, _ := cutHash(s.text, "chain")
	switch {
	case s.version != after.Version+1:
		return nil, corrupt(key, fmt.Sprintf("%s follows version %d", where, after.Version))
	case hash([]byte(after.Chain), body) != s.chain:
		return nil, corrupt(key, where+" does not match the chain")
	}
	var r struct {
		work.Record
		Effects []storedEffect `json:"effects"` // in place of those of the Record
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w: %s: %s: %w", work.ErrCorrupt, key, where, err)
	}
	r.Record.Chain = s.chain
	for _, e := range r.Effects {
		r.Record.Effects = append(r.Record.Effects, state.Effect(e))
	}
	return &r.Record, nil
}

func (s *storedRecord) position() Position { return Position{s.version, s.chain} }

// CurrentTime returns the time with the precision of records.
func CurrentTime() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// recordPartBytes is the maximum length of a part of a record.
var recordPartBytes = 256 << 10

// Change is a change of the content.
type Change struct {
	Effects []state.Effect
	Purge   bool // a secret is replaced or deleted
	// Time is that of the record. The messages that it stores have it too.
	Time time.Time
	// Title is that of the conversation from now on, or "" if it stays.
	Title string
}

// storedEffect is an effect on a document as a record has it: an array of its
// kind, its part and its field, then the number and the value that the kind has,
// and then an object with its agent and its cause, if it has one of them.
type storedEffect state.Effect

// effectSigns are the members of the object at the end of a storedEffect.
type effectSigns struct {
	Agent string `json:"agent,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// effectMembers returns whether effects of a kind have a number and a value.
func effectMembers(kind state.EffectKind) (hasNumber, hasValue bool, err error) {
	switch kind {
	case state.EffectSet, state.EffectAppend:
		return false, true, nil
	case state.EffectInsert:
		return true, true, nil
	case state.EffectDropFirst, state.EffectTruncate, state.EffectRemoveAt:
		return true, false, nil
	case state.EffectDelete:
		return false, false, nil
	}
	return false, false, fmt.Errorf("workspace: an effect of the kind %q", kind)
}

// appendEffect appends an effect as a record has it.
func appendEffect(b []byte, e *state.Effect) ([]byte, error) {
	hasNumber, hasValue, err := effectMembers(e.Kind)
	if err != nil {
		return nil, err
	}
	b = jsontext.AppendQuote(append(b, '['), string(e.Kind))
	b = jsontext.AppendQuote(append(b, ','), e.Part)
	b = jsontext.AppendQuote(append(b, ','), e.Field)
	if hasNumber {
		b = strconv.AppendInt(append(b, ','), int64(e.N), 10)
	}
	if hasValue {
		b = append(b, ',')
		n := len(b)
		b = append(b, e.Value...)
		b = jsontext.AppendCompact(b[:n], b[n:]) // which writes nothing that it has not read
	}
	if e.Agent != "" || e.Cause != "" {
		b = append(b, ',', '{')
		b = appendOptional(b, "agent", e.Agent)
		b = append(appendOptional(b, "cause", e.Cause), '}')
	}
	return append(b, ']'), nil
}

var errEffect = errors.New("not an effect")

// UnmarshalJSON is the inverse of appendEffect.
func (e *storedEffect) UnmarshalJSON(data []byte) error {
	elements, err := jsontext.Elements(data)
	if err != nil || len(elements) < 3 {
		return errEffect
	}
	for _, text := range elements[:3] {
		if jsontext.Kind(text) != "string" {
			return errEffect
		}
	}
	*e = storedEffect{
		Kind: state.EffectKind(jsontext.Unquote(elements[0])),
		Part: jsontext.Unquote(elements[1]), Field: jsontext.Unquote(elements[2]),
	}
	hasNumber, hasValue, err := effectMembers(e.Kind)
	if err != nil {
		return err
	}
	rest := elements[3:]
	if hasNumber && len(rest) > 0 {
		if e.N, err = strconv.Atoi(string(rest[0])); err != nil {
			return errEffect
		}
		rest, hasNumber = rest[1:], false
	}
	if hasValue && len(rest) > 0 {
		e.Value, rest, hasValue = state.JSON(rest[0]), rest[1:], false
	}
	if len(rest) == 1 {
		var signs effectSigns
		if json.Unmarshal(rest[0], &signs) != nil {
			return errEffect
		}
		e.Agent, e.Cause, rest = signs.Agent, signs.Cause, nil
	}
	if hasNumber || hasValue || len(rest) > 0 {
		return errEffect
	}
	return nil
}
