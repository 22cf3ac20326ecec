package work

import (
	"context"
	"time"

	"github.com/agentstate/state"
)

// Tracer is told of the operations of a Manager when they begin and when they
// end, for spans and metrics.
//
// Each Start that has returned is followed by exactly one End, also if the run
// loses its lease, the Manager is closed or ctx ends. The methods are called
// concurrently, and never under a lock. They should return soon and should not
// call the Manager: the operation waits for them. Both are called for an
// OpHeartbeat when it has ended, so that no Tracer delays it. A panic is
// recovered and reported to Options.Logger once. A Tracer that takes longer than
// a tenth of Options.TTL is reported as well.
type Tracer interface {
	// Start returns the context in which the operation goes on, which must be
	// ctx or be made of it. Functions in Options get it, and the store. If it
	// is nil, the operation goes on with ctx.
	Start(ctx context.Context, op Operation) context.Context
	// End gets the context that Start returned, possibly on another goroutine.
	End(ctx context.Context, op Operation)
	// Inject returns a text that names the operation of ctx, for links from
	// other processes. It is stored with a message or a lease. It may be empty.
	// A text that is not UTF-8, or is longer than 1 KiB, is dropped.
	Inject(ctx context.Context) string
}

// OpKind is the kind of an Operation.
type OpKind string

// The kinds of operations. The parent of an operation is the one of the context
// that Start gets, unless Operation.Root is set.
const (
	// OpHandle is a call of Handle or Submit.
	OpHandle OpKind = "handle"
	// OpRun is an attempt to handle a message in this process. It begins when
	// the Manager has taken the lease. It ends when the end of the run is
	// stored. If the lease is lost, it ends when the function that handles the
	// message has returned. Its parent is the OpHandle, or the call of Do, in
	// which the run has begun. Otherwise it is a root with Links.
	OpRun OpKind = "run"
	// OpCommit is one write of Commit, or of the end of a run. Its parent is the
	// OpRun, or an operation in it.
	OpCommit OpKind = "commit"
	// OpTakeover is the attempt to take over a run that has no holder, or whose
	// holder has not renewed its lease for too long. A Manager that has given a lease
	// up makes one that leaves the run without a holder. It is a root.
	OpTakeover OpKind = "takeover"
	// OpHeartbeat is one renewal of the leases of the Manager, all together. It
	// is a root, without a user, and Start is called after it. A run whose lease
	// is renewed by itself has an OpHeartbeat whose parent is the OpRun.
	OpHeartbeat OpKind = "heartbeat"
	// OpCompact is the compaction of a workspace.
	OpCompact OpKind = "compact"

	OpUpdate  OpKind = "update"
	OpReset   OpKind = "reset"
	OpDelete  OpKind = "delete"
	OpCancel  OpKind = "cancel"
	OpRetry   OpKind = "retry"
	OpDiscard OpKind = "discard"
	OpView    OpKind = "view" // View and ViewAt
	OpRecords OpKind = "records"
	OpVerify  OpKind = "verify"
)

// Operation is what a Tracer is told of an operation. Fields that do not apply
// are zero.
type Operation struct {
	Kind   OpKind
	UserID string
	// MessageID is empty for a run of Do. At the start of OpTakeover, RunID and
	// MessageID are known only if the lease was the Manager's own.
	MessageID, RunID, LeaseID string
	Attempt                   int // the number of attempts before, as Run.Attempt
	// Root says that the operation has no parent: ctx is that of Open, or of
	// another operation that did not cause it.
	Root bool
	// Links is set for OpRun. It has what Inject returned for the sender of the
	// message, unless that is the parent, and then what it returned for the
	// attempt before.
	Links []string
	// Waited is the time since the message was accepted, for OpRun.
	Waited time.Duration

	// The rest is set at the end.

	Status Status // of OpHandle
	// Ended says how an OpRun has ended. It is empty if the same Manager makes
	// another attempt, because of RetryAfter. OpTakeover has EndingFailed if
	// the message was given up.
	Ended   Ending
	Queued  int    // the number of waiting messages afterwards
	Version uint64 // of the content afterwards
	Effects int    // of the change, for OpCommit and OpUpdate
	Bytes   int    // written to the store, head and blobs
	Tries   int    // attempts to replace the head; more than one means conflicts or errors of the store
	// Conflicts are the Tries that failed because another writer was faster.
	Conflicts int
	// Left is what was left of the lease, whose lifetime is TTL, when its
	// renewal began, for OpHeartbeat.
	Left, TTL time.Duration
	// Taken says that OpTakeover has ended the lease of a holder, by the policy
	// Takeover. It is false if nobody held the run, or somebody was faster.
	Taken    bool
	Takeover Takeover
	Err      error // its text may contain secrets; see Redact
	// Results are the results that were appended to the history since the
	// OpCommit before, also if this one has failed. OpRun has those that were
	// appended after the last OpCommit, which are lost. They are valid only
	// during the call, and may contain secrets.
	Results []state.InferenceResult
	// Redact masks all secrets of the workspace in a text, as Logger masks them
	// in errors. It is nil if the content of the workspace is not known. It may
	// be called only during the call.
	Redact func(text string) string
}
