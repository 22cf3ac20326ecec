package workspace

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Stats counts what a Manager has done since Open.
type Stats struct {
	Held       int `json:"held"`       // runs that it holds now
	Workspaces int `json:"workspaces"` // that it remembers now

	Started     int64 `json:"started"`     // attempts that it has begun, also after a takeover
	Done        int64 `json:"done"`        // runs that were finished
	Failed      int64 `json:"failed"`      // runs that have failed
	Interrupted int64 `json:"interrupted"` // runs held here that another caller has ended
	Fenced      int64 `json:"fenced"`      // runs held here whose leases were taken over or had expired
	TakenOver   int64 `json:"taken_over"`  // runs whose leases had expired, also its own
	DeadLetters int64 `json:"dead_letters"`
	Abandoned   int64 `json:"abandoned"` // functions that were left behind, because they had not returned

	Queued     int64 `json:"queued"`     // messages that had to wait
	Rejected   int64 `json:"rejected"`   // messages that were not accepted because of a run
	Duplicates int64 `json:"duplicates"` // messages that were accepted before

	Commits         int64 `json:"commits"`          // writes of Commit, and of the ends of runs
	Conflicts       int64 `json:"conflicts"`        // attempts to write that another writer has overtaken
	StoreErrors     int64 `json:"store_errors"`     // errors of the store after which an operation was tried again
	UnknownOutcomes int64 `json:"unknown_outcomes"` // operations of which it is not known whether they took effect
	Heartbeats      int64 `json:"heartbeats"`       // renewals of leases
	LateHeartbeats  int64 `json:"late_heartbeats"`  // those with less than a third of the lease left
	Compactions     int64 `json:"compactions"`
	BytesWritten    int64 `json:"bytes_written"` // heads and blobs, without the values of Manager.Store
}

// counters are the counters of Stats.
type counters struct {
	held, started, done, failed, interrupted, fenced, takenOver, deadLetters    atomic.Int64
	queued, rejected, duplicates                                                atomic.Int64
	abandoned, storeErrors                                                      atomic.Int64
	commits, conflicts, unknown, heartbeats, lateHeartbeats, compactions, bytes atomic.Int64
}

// addEffort counts what an operation of a ledger has cost.
func (c *counters) addEffort(e ledger.Effort) {
	c.bytes.Add(int64(e.Bytes))
	c.conflicts.Add(int64(e.Conflicts))
	if e.Unknown {
		c.unknown.Add(1)
	}
}

// addStatus counts a message that was handed over.
func (c *counters) addStatus(s Status) {
	switch s {
	case StatusQueued:
		c.queued.Add(1)
	case StatusRejected:
		c.rejected.Add(1)
	case StatusDuplicate:
		c.duplicates.Add(1)
	}
}

// addEnded counts a run that was held here and has ended.
func (c *counters) addEnded(e Ending) {
	switch e {
	case EndingFinished:
		c.done.Add(1)
	case EndingFailed:
		c.failed.Add(1)
	case EndingInterrupted, EndingRolledBack, EndingCancelled, EndingReset:
		c.interrupted.Add(1)
	case EndingFenced:
		c.fenced.Add(1)
	}
}

// addOperation counts an operation that has ended.
func (c *counters) addOperation(o *operation) {
	switch o.Kind {
	case OpRun:
		c.held.Add(-1)
		c.addEnded(o.Ended)
	case OpCommit:
		if o.wrote {
			c.commits.Add(1)
		}
	case OpTakeover:
		if o.Taken {
			c.takenOver.Add(1)
		}
	case OpHeartbeat:
		if o.Err == nil {
			c.heartbeats.Add(1)
		}
		if o.late() {
			c.lateHeartbeats.Add(1)
		}
	case OpCompact:
		if o.wrote {
			c.compactions.Add(1)
		}
	}
}

// effort is what the ledger tells of an operation.
type effort struct {
	injected string // the trace that OpHandle has given to its message

	mu       sync.Mutex
	cost     ledger.Effort
	warnings []warning
}

// warning is an error that no caller gets.
type warning struct {
	event string
	err   error
}

type effortKey struct{}

func effortOf(ctx context.Context) *effort {
	e, _ := ctx.Value(effortKey{}).(*effort)
	return e
}

func (e *effort) add(cost ledger.Effort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cost.Bytes += cost.Bytes
	e.cost.Tries += cost.Tries
	e.cost.Conflicts += cost.Conflicts
}

func (e *effort) warn(w warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnings = append(e.warnings, w)
}

func (e *effort) take() (cost ledger.Effort, warnings []warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cost, e.warnings
}
