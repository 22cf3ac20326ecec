package workspace

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Summary is what the head of a workspace says, without its content.
type Summary struct {
	UserID  string
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
	Bytes       int // of the stored content, its changes and what Options.History keeps
	// KeyID is the id of the key with which the head is sealed, or "".
	KeyID string
	// Err is why the head could not be read, or nil. Then only UserID is set.
	Err error
}

// Summary returns the summary of a user's workspace, for which it reads one
// value of the store. That of a workspace that does not exist has Seq 0. An
// error is also in Summary.Err, so that a list of summaries can show it.
func (m *Manager) Summary(ctx context.Context, userID string) (Summary, error) {
	var s Summary
	err := m.operate(ctx, Operation{Kind: opSummary, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		h, err := l.ReadHead(ctx)
		if err == nil {
			s = newSummary(userID, h)
		}
		return err
	})
	if err != nil {
		s = Summary{UserID: userID, Err: err}
	}
	return s, err
}

// Summaries yields the summaries of the workspaces of the users that come after
// one, in the order of [Manager.List]; with "", of all. It reads one value of
// the store for each, and leaves out workspaces that were deleted. A workspace
// whose head cannot be read has Summary.Err and does not end the loop. An error
// of the store does.
func (m *Manager) Summaries(ctx context.Context, after string) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		for u, err := range ledger.Heads(ctx, m.db, m.sealer, after) {
			s := Summary{UserID: u.User, Err: wrapError("summary", u.User, u.Err)}
			if u.Head != nil {
				s = newSummary(u.User, u.Head)
			}
			if !yield(s, wrapError("summaries", u.User, err)) {
				return
			}
		}
	}
}

// Busy yields the summaries of the workspaces in which something is to be done:
// first of those with a run, for which messages may wait, and then of the others
// with dead letters, or with calls that wait for a result from outside. It reads
// nothing of idle workspaces, so its cost does not depend on their number. The
// errors are those of Summaries.
func (m *Manager) Busy(ctx context.Context) iter.Seq2[Summary, error] {
	all := func(string) bool { return false }
	return func(yield func(Summary, error) bool) {
		for _, list := range []ledger.BusyList{ledger.Running, ledger.Waiting} {
			for heads, err := range list.Heads(ctx, m.db, m.sealer, all) {
				if err != nil {
					yield(Summary{}, wrapError("busy", "", err))
					return
				}
				for _, u := range heads {
					s := Summary{UserID: u.User, Err: wrapError("summary", u.User, u.Err)}
					if u.Head != nil {
						s = newSummary(u.User, u.Head)
					}
					if list == ledger.Waiting && s.Run != nil { // it was yielded before
						continue
					}
					if !yield(s, nil) {
						return
					}
				}
			}
		}
	}
}

func newSummary(user string, h *ledger.Head) Summary {
	if !h.Exists() { // what Delete has left until Expire says nothing of a workspace
		return Summary{UserID: user}
	}
	s := Summary{
		UserID: user, Version: h.Version, Oldest: h.Oldest(), Seq: h.Seq, Revision: h.Revision(), LastActive: h.Updated, KeyID: h.KeyID(),
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

// Held returns the runs that this Manager holds, in the order in which they
// began. It reads nothing from the store.
func (m *Manager) Held() []RunInfo {
	var runs []*Run
	m.mu.Lock()
	for r := range m.localRuns {
		if r.ready && r.lease.lost() == nil && !r.ending.Load() {
			runs = append(runs, r)
		}
	}
	m.mu.Unlock()
	var list []RunInfo
	for _, r := range runs {
		list = append(list, RunInfo{
			UserID: r.ledger.User(), ID: r.runID, Message: r.message, Began: r.began, Attempt: r.attempt,
			Step: int(r.steps.Load()), LeaseID: r.lease.id, TTL: r.lease.ttl, Heartbeat: r.lease.heartbeats(),
		})
	}
	slices.SortFunc(list, func(a, b RunInfo) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.UserID, b.UserID))
	})
	return list
}

// Stats returns the counters of the Manager. They are not read at one moment. It
// is cheap, and safe for concurrent use. For expvar:
//
//	expvar.Publish("agentstate", expvar.Func(func() any { return m.Stats() }))
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	workspaces := len(m.ledgers)
	m.mu.Unlock()
	c := &m.counters
	return Stats{
		Held: int(c.held.Load()), Workspaces: workspaces,
		Started: c.started.Load(), Done: c.done.Load(), Failed: c.failed.Load(), Interrupted: c.interrupted.Load(),
		Fenced: c.fenced.Load(), TakenOver: c.takenOver.Load(), DeadLetters: c.deadLetters.Load(),
		Abandoned: c.abandoned.Load(), StoreErrors: c.storeErrors.Load(),
		Queued: c.queued.Load(), Rejected: c.rejected.Load(), Duplicates: c.duplicates.Load(),
		Commits: c.commits.Load(), Conflicts: c.conflicts.Load(), UnknownOutcomes: c.unknown.Load(),
		Heartbeats: c.heartbeats.Load(), LateHeartbeats: c.lateHeartbeats.Load(), Compactions: c.compactions.Load(),
		BytesWritten: c.bytes.Load(),
	}
}
