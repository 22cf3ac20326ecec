package workspace

import (
	"sync"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// stats are the Stats of a Manager, without Workspaces.
type stats work.Stats

// counters count what a Manager does.
type counters struct {
	mu  sync.Mutex
	now stats
}

// count changes the counters.
func (c *counters) count(change func(*stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.now)
}

// addEffort counts what an operation of a ledger has cost.
func (s *stats) addEffort(e ledger.Effort) {
	s.BytesWritten += int64(e.Bytes)
	s.Conflicts += int64(e.Conflicts)
	if e.Unknown {
		s.UnknownOutcomes++
	}
}

// addStatus counts a message that was handed over.
func (s *stats) addStatus(status Status) {
	switch status {
	case StatusQueued:
		s.Queued++
	case StatusRejected:
		s.Rejected++
	case StatusDuplicate:
		s.Duplicates++
	}
}

// addOperation counts an operation that has ended.
func (s *stats) addOperation(o *operation) {
	switch o.Kind {
	case work.OpRun:
		s.Held--
		s.addEnded(o.Ended)
	case work.OpCommit:
		if o.wrote {
			s.Commits++
		}
	case work.OpTakeover:
		if o.Taken {
			s.TakenOver++
		}
	case work.OpHeartbeat:
		if o.Err == nil {
			s.Heartbeats++
		}
		if o.late() {
			s.LateHeartbeats++
		}
	case work.OpCompact:
		if o.wrote {
			s.Compactions++
		}
	}
}

// addEnded counts a run that was held here and has ended.
func (s *stats) addEnded(e work.Ending) {
	switch e {
	case work.EndingFinished:
		s.Done++
	case work.EndingFailed:
		s.Failed++
	case work.EndingInterrupted, work.EndingRolledBack, work.EndingCancelled, work.EndingReset:
		s.Interrupted++
	case work.EndingFenced:
		s.Fenced++
	}
}
