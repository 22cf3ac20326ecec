package workspace

import (
	"encoding/json"
	"slices"
	"time"
)

// headFormat is the version of the heads, records and blobs that this package
// writes.
const headFormat = 1

// Limits of the lists of a head. Their oldest elements go first.
const (
	maxFinished    = 64
	maxDeadLetters = 16
)

var maxOps = 32

// head is the state of a workspace, except for the blobs that it refers to. It
// is one value of the store, and is only replaced as a whole, by
// compare-and-set. It authenticates everything else: it refers to blobs by
// their hashes, and to records by a chain of hashes.
type head struct {
	Format      int               `json:"format"`
	Nonce       string            `json:"nonce"` // new with every write
	Epoch       uint64            `json:"epoch"` // the number of resets
	Seq         uint64            `json:"seq"`   // the number of writes
	Token       uint64            `json:"token"` // the fencing token of the last lease
	Version     uint64            `json:"version"`
	Chain       string            `json:"chain"` // the hash of all records up to Version
	Run         *activeRun        `json:"run,omitempty"`
	Queue       []pendingMessage  `json:"queue,omitempty"`
	Finished    []finishedMessage `json:"finished,omitempty"`
	DeadLetters []deadLetter      `json:"dead_letters,omitempty"`
	Ops         []appliedOp       `json:"ops,omitempty"`
	Snapshot    *snapshot         `json:"snapshot,omitempty"`
	Segments    []blobRef         `json:"segments,omitempty"`
	Tail        []storedRecord    `json:"tail,omitempty"` // the newest records, after the segments
	// Purge is the version that replaced or deleted a secret, or 0. Older
	// records are to be compacted away.
	Purge uint64 `json:"purge,omitempty"`

	unknownMembers unknownMembers
}

// activeRun is the run that is under way, with the lease of its holder.
type activeRun struct {
	LeaseID  string         `json:"lease_id"` // changes when another holder takes over
	RunID    string         `json:"run_id"`   // stays when another holder takes over
	Token    uint64         `json:"token"`    // the fencing token of the lease
	TTL      int64          `json:"ttl_ms"`
	Renewals uint64         `json:"renewals"` // heartbeats of the holder
	Attempt  int            `json:"attempt"`
	Message  pendingMessage `json:"message"`
	Base     position       `json:"base"` // where the run began
	Began    time.Time      `json:"began"`

	unknownMembers unknownMembers
}

func (r *activeRun) ttl() time.Duration { return time.Duration(r.TTL) * time.Millisecond }

// leaseState identifies a heartbeat: as long as it stays the same, the holder
// has not renewed its lease.
type leaseState struct {
	leaseID  string
	renewals uint64
}

func leaseStateOf(h *head) leaseState {
	if h.Run == nil {
		return leaseState{}
	}
	return leaseState{h.Run.LeaseID, h.Run.Renewals}
}

// pendingMessage is a message that waits or is being handled.
type pendingMessage struct {
	ID       string          `json:"id"`
	At       time.Time       `json:"at"`
	Body     json.RawMessage `json:"body,omitempty"`
	BodyBlob *blobRef        `json:"body_blob,omitempty"` // takes the place of a large Body

	unknownMembers unknownMembers
}

// The outcomes of a message.
const (
	finishedHandled     = "handled"
	finishedFailed      = "failed"
	finishedInterrupted = "interrupted"
	finishedRolledBack  = "rolled_back"
	finishedReset       = "reset"
)

// finishedMessage is a message that will not be handled again.
type finishedMessage struct {
	ID      string `json:"id"`
	Outcome string `json:"as"`

	unknownMembers unknownMembers
}

// deadLetter is a message whose run was begun too often.
type deadLetter struct {
	Message pendingMessage `json:"message"`
	Attempt int            `json:"attempt"`

	unknownMembers unknownMembers
}

// appliedOp is an operation that has taken effect.
type appliedOp struct {
	ID  string `json:"op"`
	Seq uint64 `json:"seq"`
}

// blobRef refers to a blob. A segment holds the records of a range of versions,
// or, on a higher level, refs to segments. Other blobs have no versions.
type blobRef struct {
	Name  string `json:"name"`
	Hash  string `json:"sha256"`
	Bytes int    `json:"bytes"` // of all records below it
	Level int    `json:"level,omitempty"`
	From  uint64 `json:"from,omitempty"`
	To    uint64 `json:"to,omitempty"`

	unknownMembers unknownMembers
}

// isSegment reports whether the blob has records.
func (r *blobRef) isSegment() bool { return r.To > 0 }

// snapshot is the whole content at a position, cut into blobs.
type snapshot struct {
	position
	Parts []blobRef `json:"parts,omitempty"`

	unknownMembers unknownMembers
}

// position returns the newest position.
func (h *head) position() position { return position{h.Version, h.Chain} }

// oldest returns the position after which the head has records.
func (h *head) oldest() position {
	if h.Snapshot == nil {
		return position{}
	}
	return h.Snapshot.position
}

// settled returns the position up to which nothing can be rolled back.
func (h *head) settled() position {
	if h.Run != nil {
		return h.Run.Base
	}
	return h.position()
}

// The states of a message that has no outcome yet.
const (
	messageRunning = "running"
	messageQueued  = "queued"
	messageDead    = "dead"
)

// messageState returns the state or the outcome of a message, or "" if the head
// does not know it.
func (h *head) messageState(id string) string {
	if h.Run != nil && h.Run.Message.ID == id {
		return messageRunning
	}
	for i := range h.Queue {
		if h.Queue[i].ID == id {
			return messageQueued
		}
	}
	for i := range h.Finished {
		if h.Finished[i].ID == id {
			return h.Finished[i].Outcome
		}
	}
	for i := range h.DeadLetters {
		if h.DeadLetters[i].Message.ID == id {
			return messageDead
		}
	}
	return ""
}

// pending returns the messages that have no outcome: that of the run, those
// that wait and the dead letters.
func (h *head) pending() []*pendingMessage {
	var list []*pendingMessage
	if h.Run != nil {
		list = append(list, &h.Run.Message)
	}
	for i := range h.Queue {
		list = append(list, &h.Queue[i])
	}
	for i := range h.DeadLetters {
		list = append(list, &h.DeadLetters[i].Message)
	}
	return list
}

// hasOp reports whether an operation has taken effect.
func (h *head) hasOp(id string) bool {
	return slices.ContainsFunc(h.Ops, func(op appliedOp) bool { return op.ID == id })
}

// hasOpsSince reports whether the head knows all operations from a Seq on.
func (h *head) hasOpsSince(seq uint64) bool {
	return len(h.Ops) > 0 && h.Ops[0].Seq <= seq
}

// blobRefs returns the refs in the head itself, without those in segments.
func (h *head) blobRefs() []blobRef {
	var refs []blobRef
	if h.Snapshot != nil {
		refs = append(refs, h.Snapshot.Parts...)
	}
	refs = append(refs, h.Segments...)
	for _, m := range h.pending() {
		if m.BodyBlob != nil {
			refs = append(refs, *m.BodyBlob)
		}
	}
	return refs
}

// compactionDue reports whether the head is to be compacted: because a secret
// is to go, or because there are more bytes of records than minHistory and than
// the snapshot has. So compaction costs a constant share of what is written.
func (h *head) compactionDue(minHistory int) bool {
	if h.Purge != 0 && h.Purge <= h.settled().Version {
		return true
	}
	return len(h.Segments) > 0 && totalBytes(h.Segments) >= max(h.snapshotBytes(), minHistory)
}

func (h *head) snapshotBytes() int {
	if h.Snapshot == nil {
		return 0
	}
	return totalBytes(h.Snapshot.Parts)
}

func totalBytes(refs []blobRef) int {
	n := 0
	for i := range refs {
		n += refs[i].Bytes
	}
	return n
}

// clone returns a copy that can be changed without changing h.
func (h *head) clone() *head {
	c := *h
	if h.Run != nil {
		run := *h.Run
		c.Run = &run
	}
	c.Queue, c.Finished = slices.Clone(h.Queue), slices.Clone(h.Finished)
	c.DeadLetters, c.Ops = slices.Clone(h.DeadLetters), slices.Clone(h.Ops)
	c.Segments, c.Tail = slices.Clone(h.Segments), slices.Clone(h.Tail)
	return &c
}
