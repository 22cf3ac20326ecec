package workspace

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Info describes a Manager and its store, for people.
type Info struct {
	// Options are those of the Manager, with their defaults. The Keys have no
	// Secret.
	Options
	// Store is the kind of the store, such as "sqlite".
	Store      string
	Durability store.Durability
	// ReadOnly says that the store refuses writes: see [store.ReadOnly].
	ReadOnly bool
}

// Info returns a description of the Manager and its store. It reads nothing from
// the store.
func (m *Manager) Info() Info {
	info := Info{
		Options: m.opts, Store: storeKind(m.db), Durability: m.db.Durability(), ReadOnly: m.readOnly,
	}
	for _, id := range m.keyIDs {
		info.Keys = append(info.Keys, Key{ID: id})
	}
	return info
}

// storeKind returns the name that the errors of a store have. Every store
// refuses the empty key without looking anything up.
func storeKind(db store.Store) string {
	_, err := store.Get(context.Background(), db, "")
	var refused *store.Error
	if errors.As(err, &refused) {
		return refused.Store
	}
	return "unknown"
}

// Summary returns the summary of a user's workspace, for which it reads one
// value of the store. That of a workspace that does not exist has Seq 0. An
// error is also in Summary.Err, so that a list of summaries can show it.
func (m *Manager) Summary(ctx context.Context, userID string) (Summary, error) {
	var s Summary
	err := m.operate(ctx, work.Operation{Kind: opSummary, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
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

// Summaries yields the summaries of all workspaces, also of threads and user
// parts, that come after an id, in the order of the keys in the store; with "",
// of all. It reads one value of the store for each, and leaves out workspaces that
// were deleted. A workspace whose head cannot be read has Summary.Err and does not
// end the loop. An error of the store does.
func (m *Manager) Summaries(ctx context.Context, after string) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) { m.summaries(ctx, "", after, yield) }
}

// summaries is Summaries for the workspaces whose ids begin with a text. It
// reports whether it is to go on.
func (m *Manager) summaries(ctx context.Context, prefix, after string, yield func(Summary, error) bool) bool {
	for u, err := range ledger.Heads(ctx, m.db, m.sealer, ledger.Range{Prefix: prefix, After: after}) {
		if !yield(summaryOf(u), wrapError("summaries", u.User, err)) {
			return false
		}
	}
	return true
}

// Active yields the summaries of the workspaces in which something is to be done:
// first of those with a run, for which messages may wait, and then of the others
// with dead letters, or with calls that wait for a result from outside. It reads
// nothing of idle workspaces, so its cost does not depend on their number. The
// errors are those of Summaries.
func (m *Manager) Active(ctx context.Context) iter.Seq2[Summary, error] {
	all := func(string) bool { return false }
	return func(yield func(Summary, error) bool) {
		for _, list := range []ledger.BusyList{ledger.Running, ledger.Waiting} {
			for heads, err := range list.Heads(ctx, m.db, m.sealer, all) {
				if err != nil {
					yield(Summary{}, wrapError("busy", "", err))
					return
				}
				for _, u := range heads {
					s := summaryOf(u)
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

// Held returns the runs that this Manager holds, in the order in which they
// began. It reads nothing from the store.
func (m *Manager) Held() []RunInfo {
	var runs []*Run
	m.mu.Lock()
	for r := range m.localRuns {
		if r.life.is(phaseRunning, phaseLeft) && r.lease.lost() == nil {
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

// Stats returns the counters of the Manager. It is cheap, and safe for concurrent
// use. For expvar:
//
//	expvar.Publish("agentstate", expvar.Func(func() any { return m.Stats() }))
func (m *Manager) Stats() work.Stats {
	var now work.Stats
	m.counters.count(func(s *stats) { now = work.Stats(*s) })
	m.mu.Lock()
	defer m.mu.Unlock()
	now.Workspaces = len(m.ledgers)
	return now
}

// Threads yields the summaries of the threads of a user, by name as [Thread] takes
// it, that come after an id; with "", of all. They come in the order of their ids:
// the user's own workspace, if it exists, and then the threads, of those of
// [NewThread] the newest first. For another order, such as that of LastActive,
// collect and sort them. Threads reads the heads with one list of the store, and
// errors are those of [Manager.Summaries]. The user part is not yielded.
func (m *Manager) Threads(ctx context.Context, userID, after string) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		own, shared := Thread(userID, ""), Shared(userID)
		if after == "" {
			s, err := m.Summary(ctx, own)
			if err != nil && (mayPass(err) || errors.Is(err, ErrInvalid)) {
				yield(Summary{}, err)
				return
			}
			if (err != nil || s.Seq > 0) && !yield(s, nil) {
				return
			}
		}
		m.summaries(ctx, shared, after, func(s Summary, err error) bool {
			return s.UserID == shared && err == nil || yield(s, err)
		})
	}
}

// maxTitle is the length of a title, in bytes.
const maxTitle = 200

// titleOf returns the title of a content whose State is s by now, or "" if that
// stays.
func (m *Manager) titleOf(ctx context.Context, c *liveContent, s *state.State) string {
	if m.opts.Title == nil {
		return ""
	}
	redact := func(text string) string { return c.redactStored(c.Redact(text)) }
	var title string
	code := startCode("title", redact, func() error {
		title = m.opts.Title(s)
		return nil
	})
	<-code.done
	if code.err != nil {
		m.warnLater(ctx, c.user, alarmTitle, code.err)
		return ""
	}
	return titleText(title, redact)
}
