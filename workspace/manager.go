package workspace

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/bounded"
	"github.com/agentstate/state/internal/told"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
	"github.com/agentstate/state/workspace/work"
)

// Manager manages the workspaces in a store. It is safe for concurrent use.
type Manager struct {
	core
	opts       Options
	schema     *state.Schema // Options.Schema, or that of a State without one
	sharing    *sharing      // nil if nothing is shared
	keyIDs     []string      // of Options.Keys
	cancel     context.CancelCauseFunc
	accepting  context.Context // ends when no more runs are to begin
	refuse     context.CancelCauseFunc
	goroutines sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// of all workspaces used, since they remember the newest heads seen; see glimpseLedger
	ledgers       map[string]*ledger.Ledger
	recentLedgers []*ledger.Ledger // those that may cache content, the latest last
	// endErrors has the users whose runs are being ended, each with the latest error of
	// the store after which that is tried again, or nil.
	endErrors     sync.Map
	localRuns     map[*Run]bool            // those made here whose function has not returned, or whose Do has not
	activeRuns    int                      // runs that are held
	idle          chan struct{}            // closed when there are none; nil if nothing waits for it
	watched       map[string]chan struct{} // by user; wakes the goroutine that watches the run
	cutOff        atomic.Int64             // runs that Close has ended
	slots         *turns.Slots
	tidying       *tidying
	holder        *holder
	lateWindows   sync.Map // by user: movedWindows that could not be stored because a run had begun
	movingWindows sync.Map // the users whose windows are being moved
	feeds         *feeds
	unread        told.Names
	name          openName
	cacheSalt     string            // of the keys of providers' caches
	leftCode      []<-chan struct{} // each is closed when code that was left behind ends
}

// maxCachedContents is the number of workspaces whose content a Manager caches.
const maxCachedContents = 128

// Store returns a store for a user's data outside the workspace. Its keys are
// never those of a workspace. With Options.Keys, its values are sealed with the
// key of the workspace. Without keys, it refuses a value that looks like a
// sealed one.
func (m *Manager) Store(userID string) *store.Manager {
	data := m.data(userID)
	return store.NewManager(data, data.Prefix())
}

func (m *Manager) data(userID string) *ledger.DataStore {
	return ledger.NewDataStore(m.db, m.sealer, userID)
}

// ledger returns the ledger of a user's workspace.
func (m *Manager) ledger(user string) (*ledger.Ledger, error) {
	return m.keepLedger(user, nil)
}

// glimpseLedger returns the ledger of a user's workspace for one look. If the
// Manager has not used the workspace, it does not remember the ledger: a search
// through all workspaces must not cost memory for each of them. Those who go on
// after the look call keepLedger.
func (m *Manager) glimpseLedger(user string) (*ledger.Ledger, error) {
	key, err := ledger.HeadKey(user)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch l := m.ledgers[user]; {
	case m.closed:
		return nil, ErrClosed
	case l != nil:
		return l, nil
	}
	return ledger.New(m.db, user, key, m.ledgerOptions(user)), nil
}

// keepLedger returns the ledger that the Manager remembers for a user. If there
// is none, it remembers l, or a new one if l is nil.
func (m *Manager) keepLedger(user string, l *ledger.Ledger) (*ledger.Ledger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if known := m.ledgers[user]; known != nil {
		l = known
	} else {
		if l == nil {
			key, err := ledger.HeadKey(user)
			if err != nil {
				return nil, err
			}
			l = ledger.New(m.db, user, key, m.ledgerOptions(user))
		}
		m.ledgers[user] = l
	}
	m.noteUse(l)
	return l, nil
}

func (m *Manager) ledgerOptions(user string) ledger.Options {
	opts := ledger.Options{
		Live: m.opts.Live, Confirm: m.db.Durability() == store.DurabilityFailover,
		Sealer: m.sealer, TTL: m.opts.TTL, Fits: m.fits(user), Retry: mayPassInRun, Patience: m.patience(),
		DeadLetters: m.opts.DeadLetters, RecordBytes: m.opts.RecordBytes, Turns: turns.NewLine(1), Notify: m.note,
		Schema: m.schema,
	}
	if m.opts.Run != nil { // else there are no runs of messages
		opts.Unfinished = func(doc *document.Document, u ledger.Unfinished) ([]state.Effect, error) {
			return m.keepUnfinished(user, doc, u)
		}
	}
	if owner, thread := SplitThread(user); thread != "" {
		opts.UserPart = func() (*ledger.Ledger, error) { return m.ledger(Shared(owner)) }
	}
	return opts
}

// note is told by a ledger what has happened in its workspace. It tells those who follow
// the workspace, the counters and the operation of ctx, and those who wait for the end
// of a run.
func (m *Manager) note(ctx context.Context, of *ledger.Ledger, n ledger.Notice) {
	if n.Head != nil {
		m.feeds.note(of.User(), n)
	}
	if n.Cost != nil {
		m.noteEffort(ctx, *n.Cost)
	}
	if n.Err != nil {
		if _, ends := m.endErrors.Load(of.User()); ends {
			m.endErrors.Store(of.User(), n.Err)
		}
		m.noteStoreError(ctx, of.User(), n.Err)
	}
}

// noteUse makes a ledger the latest of those that may cache content. The caller
// holds mu.
func (m *Manager) noteUse(l *ledger.Ledger) {
	if n := len(m.recentLedgers); n > 0 && m.recentLedgers[n-1] == l {
		return
	}
	others := slices.DeleteFunc(m.recentLedgers, func(r *ledger.Ledger) bool { return r == l })
	m.recentLedgers = append(others, l)
	if n := len(m.recentLedgers) - maxCachedContents; n > 0 {
		m.dropCaches(m.recentLedgers[0])
		m.recentLedgers = slices.Delete(m.recentLedgers, 0, n)
	}
}

// dropCaches frees the caches of a ledger. If it has not seen a workspace, for
// example because the user does not exist, it is forgotten: the names of such
// users have no limit. The caller holds mu.
func (m *Manager) dropCaches(l *ledger.Ledger) {
	l.DropCaches()
	if !l.HasSeen() {
		delete(m.ledgers, l.User())
	}
}

func (m *Manager) addLocalRun(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.localRuns[r] = true
}

// deleteLocalRun reports false if the run was deleted before.
func (m *Manager) deleteLocalRun(r *Run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	present := m.localRuns[r]
	delete(m.localRuns, r)
	return present
}

// earlierLocalRuns returns, for each earlier run of the same user whose function
// has not returned, the channel that says so.
func (m *Manager) earlierLocalRuns(than *Run) []<-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []<-chan struct{}
	for r := range m.localRuns {
		if r.ledger.User() == than.ledger.User() && r.lease.token < than.lease.token {
			list = append(list, r.returned)
		}
	}
	return list
}

// endLocalRuns ends the runs of a user that are held here, and that the write of
// a head has ended. Runs that are held elsewhere find out when they look at the
// head, or at once if the store is a store.Watcher. h may be nil.
func (m *Manager) endLocalRuns(user string, h *ledger.Head, ending work.Ending) {
	if h == nil {
		return
	}
	if ending == work.EndingReset {
		m.lateWindows.Delete(user)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.localRuns {
		if r.ledger.User() == user && r.lease.token <= h.Token && (h.Run == nil || r.lease.id != h.Run.LeaseID) {
			err := ledger.FencedBy(ending)
			r.lease.giveUp(err)
			r.cancel(err)
		}
	}
}

// forgetLedger forgets the ledger of a workspace that does not exist.
func (m *Manager) forgetLedger(user string, l *ledger.Ledger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ledgers[user] == l {
		delete(m.ledgers, user)
	}
	m.recentLedgers = slices.DeleteFunc(m.recentLedgers, func(r *ledger.Ledger) bool { return r == l })
}

// markWatched reports whether the caller has to watch the run of a user: no
// other goroutine does. The one that does is woken by look.
func (m *Manager) markWatched(user string) (look chan struct{}, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if look, ok := m.watched[user]; ok {
		turns.Wake(look)
		return look, false
	}
	look = make(chan struct{}, 1)
	m.watched[user] = look
	return look, true
}

// unmarkWatched reports false if the caller has to go on, because it was woken.
func (m *Manager) unmarkWatched(user string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.watched[user]:
		return false
	default:
		delete(m.watched, user)
		return true
	}
}

// fits returns a function that returns an error for content of a workspace that
// this Manager cannot use.
func (m *Manager) fits(id string) func(*document.Document) error {
	return func(doc *document.Document) error {
		m.tellUnread(id, doc)
		return checkContent(m.schema, doc, m.sharingFor(id))
	}
}

// trackRun makes Wait wait until untrackRun is called.
func (m *Manager) trackRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.activeRuns++
}

func (m *Manager) untrackRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.activeRuns--; m.activeRuns == 0 && m.idle != nil {
		close(m.idle)
		m.idle = nil
	}
}

// enter makes Close wait until leave is called.
func (m *Manager) enter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.goroutines.Add(1)
	return nil
}

func (m *Manager) leave() { m.goroutines.Done() }

// runInBackground calls fn in a goroutine that Close waits for. It reports false
// if the Manager is closed. A panic ends fn and not the process: what code of the
// user has to say is an error before it comes here, as that of startCode.
func (m *Manager) runInBackground(fn func()) bool {
	if err := m.enter(); err != nil {
		return false
	}
	go func() {
		defer m.leave()
		m.guard(fn)
	}()
	return true
}

// guard calls fn in the background. A panic ends fn only.
func (m *Manager) guard(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			m.raise(m.ctx, alarmPanic.of("background work"), "", panicOf("background work", p))
		}
	}()
	fn()
}

// checkAccepting returns ErrClosed if the Manager begins no more runs.
func (m *Manager) checkAccepting() error { return context.Cause(m.accepting) }

// withManager returns a context that ends with ctx, and when the Manager begins
// no more runs.
func (m *Manager) withManager(ctx context.Context) (context.Context, context.CancelFunc) {
	accepted := bounded.New(ctx, bounded.By{Other: m.accepting})
	return accepted, accepted.End
}

// untilClosed returns a context that ends with ctx, and when the Manager is
// closed.
func (m *Manager) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	open := bounded.New(ctx, bounded.By{Other: m.ctx})
	return open, open.End
}

// operate calls fn with the ledger of a workspace, as an operation that writes
// if it succeeds.
func (m *Manager) operate(
	ctx context.Context, op work.Operation, fn func(context.Context, *ledger.Ledger) error,
) error {
	return m.observe(ctx, string(op.Kind), op, func(ctx context.Context, l *ledger.Ledger, o *operation) error {
		err := fn(ctx, l)
		o.wrote = err == nil
		return err
	})
}

// observe calls fn with the ledger of a workspace, as an operation, of which fn
// notes what it has done. name is that of the operation in errors.
func (m *Manager) observe(
	ctx context.Context, name string, op work.Operation, fn func(context.Context, *ledger.Ledger, *operation) error,
) (err error) {
	defer func() { err = wrapError(name, op.UserID, err) }()
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	ctx, o := m.begin(ctx, op)
	defer func() { o.end(err) }() // also if fn panics
	l, err := m.ledger(op.UserID)
	if err != nil {
		return err
	}
	err = errNotReturned
	return fn(ctx, l, &o)
}
