package workspace

import (
	"cmp"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Summary is what the head of a workspace says, without its content.
type Summary struct {
	UserID  string // the id of the workspace: see Thread
	Title   string // what Rename has given, or else what Options.Title returned last
	Version uint64 // of the content
	Oldest  uint64 // the oldest version that ViewAt can show
	Seq     uint64 // the number of writes; 0 if the workspace does not exist
	// Revision is the name of the last write. No other write has it, not even one
	// with the same Seq: Seq begins again at 1 if a workspace that was deleted has
	// expired, and goes back if a backup is restored. It is empty if Seq is 0.
	Revision string
	// LastActive is when the content has last changed, or a message was last
	// accepted.
	LastActive time.Time
	// Run is the run that is under way, or nil. Its Message has only the ID.
	Run         *RunInfo
	Queued      int // messages that wait
	DeadLetters int
	Suspended   int // calls that wait for a result from outside: see [Run.Suspend]
	Bytes       int // of the stored content, its changes and what Options.RecordBytes keeps
	// KeyID is the id of the key with which the head is sealed, or "".
	KeyID string
	// Deleting says that [Manager.DeleteUser] is under way for the user of this
	// user part. Then only UserID is set.
	Deleting bool
	// Err is why the head could not be read, or nil. Then only UserID is set.
	Err error
}

func newSummary(user string, h *ledger.Head) Summary {
	if !h.Exists() { // what Delete has left until Expire says nothing of a workspace
		return Summary{UserID: user, Deleting: h.Sweeping}
	}
	s := Summary{
		UserID: user, Title: cmp.Or(h.Name, h.Title), Version: h.Version, Oldest: h.Oldest(), Seq: h.Seq,
		Revision: h.Revision(), LastActive: h.Updated, KeyID: h.KeyID(),
		Queued: h.Waiting(), DeadLetters: h.DeadLetters.Count, Suspended: h.Suspended, Bytes: h.RecordBytes,
	}
	if h.Snapshot != nil {
		s.Bytes += h.Snapshot.Bytes
	}
	s.Bytes += h.Past.Bytes
	if r := h.Run; r != nil {
		var msg Message
		if !r.Message.Ticket {
			msg.ID = r.Message.ID
		}
		s.Run = newRunInfo(user, h, msg)
	}
	return s
}

// summaryOf returns the summary of a workspace whose head was listed.
func summaryOf(u ledger.UserHead) Summary {
	if u.Head == nil {
		return Summary{UserID: u.User, Err: wrapError("summary", u.User, u.Err)}
	}
	return newSummary(u.User, u.Head)
}

// RunInfo describes a run that is under way.
type RunInfo struct {
	UserID  string
	ID      string
	Message Message // the zero Message for a call of [Manager.Do]
	Began   time.Time
	Attempt int // the number of times that it was taken over
	Step    int // the number of its records: see [Run.Step]
	// LeaseID is the id of the holder's lease. Another holder has another lease.
	// It is empty if the run waits for a holder.
	LeaseID string
	TTL     time.Duration // of the lease: see [Options].TTL
	// Heartbeat grows with each renewal of the lease. In a [Summary], which shows
	// only the head, it grows with those by commits of the run, and not with the
	// heartbeats that the holder makes for all of its runs together.
	Heartbeat uint64
	Joined    []string // the ids of the messages that have joined it: see [BusyJoin]
}

// newRunInfo returns what a head says of its run.
func newRunInfo(user string, h *ledger.Head, message Message) *RunInfo {
	r := h.Run
	info := &RunInfo{
		UserID: user, ID: r.RunID, Message: message, Began: r.Began, Attempt: r.Attempt,
		Step: int(h.Version - r.Base.Version), LeaseID: r.LeaseID, TTL: r.LeaseTTL(), Heartbeat: r.Renewals,
	}
	for _, j := range r.Joined {
		info.Joined = append(info.Joined, j.Message.ID)
	}
	return info
}
