package ledger

import (
	"math/rand/v2"
	"strings"
	"time"
)

// headFormat is the version of the heads, records and blobs that this package
// reads and writes.
const headFormat = 3

// Head is the state of a workspace, except for the blobs that it refers to. It
// is one value of the store, and is only replaced as a whole, by
// compare-and-set. It authenticates everything else: the records by a chain of
// hashes, and the other blobs by their names.
//
// A Head does not change once it was read or written: a transition changes a copy.
// The head stays small, whatever waits and however long the history is: what
// grows is in blobs, of which the head has the names of few.
type Head struct {
	Format  int       `json:"format"`
	User    string    `json:"user"`  // so that a head under another user's key is found
	Epoch   uint64    `json:"epoch"` // see nextEpoch
	Seq     uint64    `json:"seq"`   // the number of writes
	Token   uint64    `json:"token"` // the fencing token of the last lease
	Version uint64    `json:"version"`
	Chain   string    `json:"chain"`   // the hash of all records up to Version
	Updated time.Time `json:"updated"` // when the last record was written, or the last message accepted
	Run     *Run      `json:"run,omitempty"`
	// Queue has the messages that wait. Each entry names the blob of a message.
	// QueueBytes is the length of their bodies.
	Queue      blobList `json:"queue,omitzero"`
	QueueBytes int      `json:"queue_bytes,omitempty"`
	// Ended has the endings of the latest messages, the newest last. Endings names
	// the blob that has those before as they are in Ended: records have the rest.
	// Outcomes names the blob with the outcomes before, whose records may be gone.
	Ended       string      `json:"ended,omitempty"`
	Endings     string      `json:"endings,omitempty"`
	Outcomes    string      `json:"outcomes,omitempty"`
	DeadLetters deadLetters `json:"dead_letters,omitzero"`
	Ops         string      `json:"ops"` // the operations of the latest writes, the newest last
	Snapshot    *snapshot   `json:"snapshot,omitempty"`
	// Records has the records after the snapshot: the entry with number n is of
	// the record with version n+1.
	Records     blobList `json:"records,omitzero"`
	RecordBytes int      `json:"record_bytes,omitempty"`
	// Past is what is kept of the time before the snapshot.
	Past past `json:"past,omitzero"`
	// Suspended is the number of calls that wait for a result from outside.
	Suspended int `json:"suspended,omitempty"`
	// Expires is when the first of them expires, or is to be told of, as Unix time in
	// ms, or 0.
	Expires int64 `json:"expires_ms,omitempty"`
	// Purge is the version that replaced or deleted a secret, or 0. Older
	// records are to be compacted away.
	Purge uint64 `json:"purge,omitempty"`
	// Deleted is when the workspace was deleted, if nothing was written since.
	Deleted time.Time `json:"deleted,omitzero"`
	// Closed says that the user was deleted, so that the workspace is not made
	// again. It is set in the heads of the user part and of the user's own
	// workspace. Sweeping says that the user may still have threads.
	Closed   bool `json:"closed,omitempty"`
	Sweeping bool `json:"sweeping,omitempty"`

	// Kept is one more than the number of records of which it was not known, when the
	// head was written, whether the store has acknowledged them, or 0 if it was known
	// of none.
	Kept uint64 `json:"kept,omitempty"`

	// Title is what the program calls the conversation, and Name what a person does.
	Title string `json:"title,omitempty"`
	Name  string `json:"name,omitempty"`
	// Notes names the blob with what was noted about messages.
	Notes string `json:"notes,omitempty"`

	keyID string // of the key with which it is sealed, or ""
}

// KeyID returns the id of the key with which the head is sealed, or "".
func (h *Head) KeyID() string { return h.keyID }

// Run is the run that is under way, with the lease of its holder. What it
// repeats of the head is not stored: see [Head.shortRun].
type Run struct {
	LeaseID  string    `json:"lease_id"`         // changes when another holder takes over; empty if the lease is vacant
	Holder   string    `json:"holder,omitempty"` // the incarnation that has the lease
	RunID    string    `json:"run_id"`           // stays when another holder takes over
	Token    uint64    `json:"token,omitempty"`  // the fencing token of the lease
	TTL      int64     `json:"ttl_ms"`
	Renewals uint64    `json:"renewals,omitempty"` // by commits of the holder
	Attempt  int       `json:"attempt,omitempty"`
	Message  Message   `json:"message"`
	Base     Position  `json:"base"` // where the run began
	Began    time.Time `json:"began,omitzero"`
	Trace    string    `json:"trace,omitempty"` // of the holder's attempt, for links between traces
	// Answers is how many answers models have given that are committed, and Ended
	// says that the last one has no calls.
	Answers int  `json:"answers,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Joined are messages that have joined it.
	Joined []Joined `json:"joined,omitempty"`
}

// LeaseTTL returns the lifetime of the lease.
func (r *Run) LeaseTTL() time.Duration { return time.Duration(r.TTL) * time.Millisecond }

// Vacant reports whether nobody holds the lease, so that any Manager may take
// the run at once.
func (r *Run) Vacant() bool { return r.LeaseID == "" }

// LeaseState identifies a renewal: as long as it stays the same, the holder has
// not renewed its lease by a commit. See also HolderState.
type LeaseState struct {
	token    uint64
	renewals uint64
	leaseID  string
}

// Vacant reports whether nobody held the lease.
func (s LeaseState) Vacant() bool { return s.leaseID == "" }

// LeaseState returns the renewal that the head shows.
func (h *Head) LeaseState() LeaseState {
	if h.Run == nil {
		return LeaseState{}
	}
	return LeaseState{h.Run.Token, h.Run.Renewals, h.Run.LeaseID}
}

// snapshot is the whole content at a position, cut into blobs.
type snapshot struct {
	Position
	Parts blobList `json:"parts,omitzero"`
	Bytes int      `json:"bytes,omitempty"`
}

// Exists reports whether the workspace exists: it was written, and not deleted
// since.
func (h *Head) Exists() bool { return h.Seq > 0 && h.Deleted.IsZero() }

// Expired reports whether the workspace was deleted at a time or before, with all
// that belongs to it.
func (h *Head) Expired(before time.Time) bool {
	return !h.Deleted.IsZero() && !h.Deleted.After(before) && !h.Sweeping
}

// Position returns the newest position.
func (h *Head) Position() Position { return Position{h.Version, h.Chain} }

// start returns the position of the snapshot, with which reading the present
// content begins.
func (h *Head) start() Position {
	if h.Snapshot == nil {
		return Position{}
	}
	return h.Snapshot.Position
}

// settled returns the position up to which nothing can be rolled back.
func (h *Head) settled() Position {
	if h.Run != nil {
		return h.Run.Base
	}
	return h.Position()
}

// snapshotBytes returns the length of the snapshot.
func (h *Head) snapshotBytes() int {
	if h.Snapshot == nil {
		return 0
	}
	return h.Snapshot.Bytes
}

// compactionDue reports whether the head is to be compacted: because a secret
// is to go, or because there are more bytes of records than minHistory and than
// the snapshot has. So compaction costs a constant share of what is written.
func (h *Head) compactionDue(minHistory int) bool {
	if h.purges(h.settled()) {
		return true
	}
	return h.Records.len() > 0 && h.RecordBytes >= max(h.snapshotBytes(), minHistory)
}

// purges reports whether a secret that was replaced or deleted is to go, and a
// snapshot at a position is past it.
func (h *Head) purges(at Position) bool { return h.Purge != 0 && h.Purge <= at.Version }

// clone returns a copy that can be changed without changing h. The lists are
// changed as a whole.
func (h *Head) clone() *Head {
	c := *h
	if h.Run != nil {
		run := *h.Run
		c.Run = &run
	}
	if h.Snapshot != nil {
		s := *h.Snapshot
		c.Snapshot = &s
	}
	return &c
}

// An operation is known by opIDLen characters. One more character counts its
// attempts, so that each write has a text of its own, its nonce.
const (
	opIDLen  = 7
	nonceLen = opIDLen + 1
)

// maxOps is the number of writes whose operations a head remembers. It is a
// variable so that tests reach it with few writes.
var maxOps = 16

// nextEpoch returns the name of the epoch of a workspace that begins at a time,
// after another one. An epoch begins when the workspace is made from nothing, when
// Reset or Delete empties it, and when Accept accepts a loss. What was meant for
// an epoch is not written in another one. The name is the time in ms and 20 random
// bits, so that later epochs are greater, and no other process finds it by itself.
func nextEpoch(now time.Time, after uint64) uint64 {
	return max(uint64(max(0, now.UnixMilli()))<<epochBits, after) + 1 + rand.Uint64N(1<<epochBits)
}

const epochBits = 20

// Age orders the heads of a user: a later head has a greater one. Seq alone begins
// again with a workspace that is made after Expire.
type Age struct{ epoch, seq uint64 }

// Age returns the age of the head. One that was never written is the first.
func (h *Head) Age() Age {
	return Age{h.Epoch, h.Seq}
}

// After reports whether the head with age a is later than that with age b.
func (a Age) After(b Age) bool { return a.epoch > b.epoch || a.epoch == b.epoch && a.seq > b.seq }

// Revision returns what no other head has, even if it has the same Seq, or ""
// if the head was never written.
func (h *Head) Revision() string { return h.nonce() }

// nonce returns the text of the write that made the head.
func (h *Head) nonce() string { return h.Ops[max(0, len(h.Ops)-nonceLen):] }

// nonceAt returns the nonce of the head with a Seq, or "" if h does not remember
// it.
func (h *Head) nonceAt(seq uint64) string {
	if seq > h.Seq || h.Seq-seq >= uint64(len(h.Ops)/nonceLen) {
		return ""
	}
	end := len(h.Ops) - int(h.Seq-seq)*nonceLen
	return h.Ops[end-nonceLen : end]
}

// hasOp reports whether an operation has taken effect.
func (h *Head) hasOp(id string) bool {
	for ops := h.Ops; len(ops) >= nonceLen; ops = ops[nonceLen:] {
		if strings.HasPrefix(ops, id) {
			return true
		}
	}
	return false
}

// hasOpsSince reports whether the head knows all operations from a Seq on.
func (h *Head) hasOpsSince(seq uint64) bool { return seq > h.Seq || h.nonceAt(seq) != "" }

// sign makes the head that of the next write, by an attempt of an operation.
func (h *Head) sign(nonce string) {
	h.Seq++
	h.Ops += nonce
	h.Ops = h.Ops[max(0, len(h.Ops)-maxOps*nonceLen):]
}
