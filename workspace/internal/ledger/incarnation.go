package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// A Manager that holds runs is a holder. Its holder record is one value of the
// store, outside of all workspaces, that it renews for all of its runs
// together. A process that begins again under the name of a holder is its next
// incarnation. An incarnation has ended when its record was replaced or
// deleted, and never comes back: what others do because of that stays right.
// A contender that has waited for an incarnation long enough ends it before it
// takes a run over.

// holderPrefix begins the keys of all holder records.
const holderPrefix = "agent:holder:"

// incarnationLen is the length of the random text that tells incarnations apart.
const incarnationLen = 11

// maxHolderName is the maximum length of the name of a holder.
const maxHolderName = 64

// CheckHolderName returns an error if a name is not that of a holder.
func CheckHolderName(name string) error {
	if name == "" || len(name) > maxHolderName {
		return fmt.Errorf("%w: the name of the holder has %d bytes: want 1 to %d", work.ErrInvalid, len(name), maxHolderName)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%w: the name of the holder is not visible ASCII", work.ErrInvalid)
		}
	}
	return nil
}

// holderRecord is the value of a holder record.
type holderRecord struct {
	Format     int    `json:"format"`
	Holder     string `json:"holder"` // the id of the incarnation
	Heartbeats uint64 `json:"heartbeats"`
	TTL        int64  `json:"ttl_ms"`
	// Time is that of the holder's clock when it wrote the record.
	Time int64 `json:"time_ms,omitempty"`
	// Abandoned has the ids of leases that the holder no longer has, although
	// the head of the run may say so.
	Abandoned []string `json:"abandoned,omitempty"`
}

// Holders is the holder records of a store.
type Holders struct {
	db     store.Store
	sealer *Sealer
	pause  func(context.Context, time.Duration) error
}

// NewHolders returns the holder records of a store.
func NewHolders(db store.Store, s *Sealer) *Holders {
	return &Holders{db: db, sealer: s, pause: backoff.Sleep}
}

// holderKey returns the key of the record of an incarnation.
func holderKey(id string) string {
	name := id
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		name = id[:i]
	}
	return holderPrefix + EncodeUser(name)
}

// Incarnation is the record of this process. Its methods but ID are for one
// goroutine.
type Incarnation struct {
	holders  *Holders
	key      string
	record   holderRecord
	revision store.Revision
}

// NewIncarnation returns an incarnation of a holder, which is not written yet.
// Without a name, the holder has no other one.
func (s *Holders) NewIncarnation(name string, ttl time.Duration) *Incarnation {
	id := randomText(incarnationLen)
	if name != "" {
		id = name + "/" + id
	}
	return &Incarnation{
		holders: s, key: holderKey(id), record: holderRecord{Format: headFormat, Holder: id, TTL: ttl.Milliseconds()},
	}
}

// ID returns what heads call the incarnation.
func (i *Incarnation) ID() string { return i.record.Holder }

// Heartbeats returns the number of times that the record was to be written.
func (i *Incarnation) Heartbeats() uint64 { return i.record.Heartbeats }

var (
	// ErrIncarnationEnded is returned for an incarnation whose record was
	// replaced or deleted.
	ErrIncarnationEnded = fault.Passing("workspace: the holder record is lost")
	// ErrReplaced is returned if the record is that of another incarnation.
	ErrReplaced = fmt.Errorf("%w: another incarnation has begun", ErrIncarnationEnded)
)

// Begin writes the record, and so ends the incarnation before. After
// store.ErrUnknownOutcome the record may be written later, also after this
// incarnation has ended. So it must not be used: another one is to begin.
func (i *Incarnation) Begin(ctx context.Context) error {
	delay := newBackoff()
	cond := store.IfAbsent
	for {
		err := i.put(ctx, cond)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if waitErr := i.holders.pause(ctx, delay.Delay()); waitErr != nil {
			return err
		}
		e, err := i.read(ctx)
		if err != nil {
			return err
		}
		cond = store.IfAbsent
		if e.Revision != "" {
			cond = store.IfRevision(e.Revision)
		}
	}
}

// Renew writes the record again, with the leases that were abandoned: it is the
// heartbeat of the holder. It returns ErrIncarnationEnded if the record is that of
// another incarnation, or gone.
func (i *Incarnation) Renew(ctx context.Context, abandoned []string) error {
	i.record.Abandoned = abandoned
	delay := newBackoff()
	for {
		err := i.put(ctx, store.IfRevision(i.revision))
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknownOutcome) {
			return err
		}
		if waitErr := i.holders.pause(ctx, delay.Delay()); waitErr != nil {
			return err
		}
		e, err := i.read(ctx)
		switch {
		case err != nil:
			return err
		case e.Revision == "":
			return fmt.Errorf("%w: %s was deleted", ErrIncarnationEnded, i.key)
		}
		switch r, err := i.holders.decode(e); {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrIncarnationEnded, err)
		case r.Holder != i.record.Holder:
			return ErrReplaced
		}
		i.revision = e.Revision // an earlier heartbeat was made
	}
}

func (i *Incarnation) put(ctx context.Context, cond store.Condition) error {
	i.record.Heartbeats++
	i.record.Time = CurrentTime().UnixMilli()
	data, err := jsontext.Marshal(i.record)
	if err != nil {
		return err
	}
	rev, err := store.Put(ctx, i.holders.db, i.key, i.holders.sealer.seal(i.key, i.key, data), cond)
	if err == nil {
		i.revision = rev
	}
	return err
}

// read returns the record. Its revision is "" if there is none.
func (i *Incarnation) read(ctx context.Context) (store.Entry, error) {
	entries, err := i.holders.db.Get(ctx, i.key)
	if err != nil {
		return store.Entry{}, err
	}
	return entries[0], nil
}

// Withdraw deletes the record, unless it is that of another incarnation.
func (i *Incarnation) Withdraw(ctx context.Context) error {
	for {
		e, err := i.read(ctx)
		if err != nil || e.Revision == "" {
			return err
		}
		if r, err := i.holders.decode(e); err != nil || r.Holder != i.record.Holder {
			return nil
		}
		err = store.Delete(ctx, i.holders.db, i.key, store.IfRevision(e.Revision))
		if !errors.Is(err, store.ErrConflict) { // by a heartbeat of unknown outcome
			return err
		}
	}
}

func (s *Holders) decode(e store.Entry) (holderRecord, error) {
	data, err := s.sealer.open(e.Key, e.Key, e.Value)
	if err != nil {
		return holderRecord{}, err
	}
	var r holderRecord
	if err := unmarshalChecked(data, &r); err != nil {
		return holderRecord{}, fmt.Errorf("%w: %s: %w", work.ErrCorrupt, e.Key, err)
	}
	return r, nil
}

// HolderState is what the store shows of the holder of a run. As long as it
// stays the same, the holder has made no heartbeat for the run.
type HolderState struct {
	// Ended says that the incarnation that holds the run has ended.
	Ended      bool
	Heartbeats uint64 // 0 if the record cannot be decoded
	Time       int64  // of the holder's clock at the last heartbeat, as Unix time in ms, or 0

	revision store.Revision // "" if there is no heartbeat for the run
}

// States returns the states of the holders of runs, in their order. A record that
// cannot be read may still show heartbeats.
func (s *Holders) States(ctx context.Context, runs ...*Run) ([]HolderState, error) {
	var keys []string
	for _, r := range runs {
		if r.Holder != "" {
			keys = append(keys, holderKey(r.Holder))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	records := map[string]store.Entry{}
	if len(keys) > 0 {
		entries, err := s.db.Get(ctx, keys...)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			records[e.Key] = e
		}
	}
	states := make([]HolderState, len(runs))
	for i, r := range runs {
		if r.Holder != "" {
			states[i] = s.stateOf(r, records[holderKey(r.Holder)])
		}
	}
	return states, nil
}

// stateOf returns what the record of its holder says of a run.
func (s *Holders) stateOf(r *Run, e store.Entry) HolderState {
	if e.Revision == "" { // it is written before any head names it
		return HolderState{Ended: true}
	}
	record, err := s.decode(e)
	switch {
	case err != nil:
		return HolderState{revision: e.Revision}
	case record.Holder != r.Holder:
		return HolderState{Ended: true}
	case slices.Contains(record.Abandoned, r.LeaseID):
		return HolderState{}
	}
	return HolderState{Heartbeats: record.Heartbeats, Time: record.Time, revision: e.Revision}
}

// End ends the incarnation that holds a run, unless its state is no longer the
// one that was observed. It returns ErrLeaseRenewed then. A lease that its
// holder has abandoned needs no end of the holder.
func (s *Holders) End(ctx context.Context, r *Run, observed HolderState) error {
	if observed.revision == "" {
		return nil
	}
	err := store.Delete(ctx, s.db, holderKey(r.Holder), store.IfRevision(observed.revision))
	if errors.Is(err, store.ErrConflict) {
		return ErrLeaseRenewed
	}
	return err
}
