package workspace

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/agentstate/state/store"
)

// Manager manages the workspaces in a store. It is safe for concurrent use.
type Manager struct {
	db         store.Store
	opts       Options
	sealer     *sealer
	ctx        context.Context // of background work
	cancel     context.CancelCauseFunc
	goroutines sync.WaitGroup

	mu            sync.Mutex
	closed        bool
	ledgers       map[string]*ledger // of all workspaces used, since they remember the newest heads seen
	recentLedgers []*ledger          // those that may cache content, the latest last
	localRuns     map[string]localRun
	activeRuns    int             // runs that are being handled
	idle          chan struct{}   // closed when there are none; nil if nothing waits for it
	watched       map[string]bool // the users whose run a goroutine watches
}

// localRun is a run that is held by this Manager. The keys of localRuns are
// leases.
type localRun struct {
	user   string
	cancel context.CancelCauseFunc
}

// maxCachedContents is the number of workspaces whose content a Manager caches.
const maxCachedContents = 128

// Open returns a Manager of the workspaces in a store. It writes nothing. The
// Manager does not close the store. Runs that continue after Handle has
// returned end with ctx.
func Open(ctx context.Context, db store.Store, opts *Options) (*Manager, error) {
	m := &Manager{
		db: db, ledgers: map[string]*ledger{}, localRuns: map[string]localRun{}, watched: map[string]bool{},
	}
	if opts != nil {
		m.opts = *opts
	}
	if err := m.opts.complete(); err != nil {
		return nil, err
	}
	if db == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	var err error
	if m.sealer, err = newSealer(slices.Clone(m.opts.Keys)); err != nil {
		return nil, err
	}
	m.opts.Keys = nil // so that no Manager that is printed shows them
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	return m, nil
}

// Close ends the runs that this Manager holds as the death of its process
// would: other Managers, or the next one, continue them. It waits until the
// functions in Options have returned. For a graceful shutdown, call Wait first.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(ErrClosed)
	m.goroutines.Wait()
	return nil
}

// Wait waits until this Manager handles no run that Handle, Submit, Recover or
// the queue has begun, or until ctx ends. For a graceful shutdown, stop sending
// messages, Wait, and then Close.
func (m *Manager) Wait(ctx context.Context) error {
	m.mu.Lock()
	if m.activeRuns == 0 {
		m.mu.Unlock()
		return nil
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	idle := m.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Store returns a store for a user's data outside the workspace. Its keys are
// never those of a workspace.
func (m *Manager) Store(userID string) *store.Manager {
	return store.NewManager(m.db, "agent:data:"+encodeUser(userID)+":")
}

// enter makes Close wait until leave is called.
func (m *Manager) enter() (leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.goroutines.Add(1)
	return m.goroutines.Done, nil
}

// background calls fn in a goroutine that Close waits for. It reports false if
// the Manager is closed.
func (m *Manager) background(fn func()) bool {
	leave, err := m.enter()
	if err != nil {
		return false
	}
	go func() {
		defer leave()
		fn()
	}()
	return true
}

// trackRun makes Wait wait until done is called.
func (m *Manager) trackRun() (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.activeRuns++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.activeRuns--; m.activeRuns == 0 && m.idle != nil {
			close(m.idle)
			m.idle = nil
		}
	}
}

// ledger returns the ledger of a user's workspace.
func (m *Manager) ledger(user string) (*ledger, error) {
	key, err := headKey(user)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	l := m.ledgers[user]
	if l == nil {
		l = newLedger(m.db, user, key, m.sealer)
		l.anchor, l.ttl = m.opts.Anchor, m.opts.TTL
		m.ledgers[user] = l
	}
	if n := len(m.recentLedgers); n == 0 || m.recentLedgers[n-1] != l {
		m.recentLedgers = append(slices.DeleteFunc(m.recentLedgers, func(r *ledger) bool { return r == l }), l)
		if n := len(m.recentLedgers) - maxCachedContents; n > 0 {
			m.recentLedgers[0].dropCaches()
			m.recentLedgers = slices.Delete(m.recentLedgers, 0, n)
		}
	}
	return l, nil
}

func (m *Manager) addLocalRun(leaseID string, r localRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.localRuns[leaseID] = r
}

func (m *Manager) deleteLocalRun(leaseID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.localRuns, leaseID)
}

// interruptLocalRuns tells the runs of a user that are held here, except for
// one, that they were interrupted. Runs that are held elsewhere find out when
// they renew their lease.
func (m *Manager) interruptLocalRuns(user, exceptLease string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for lease, r := range m.localRuns {
		if r.user == user && lease != exceptLease {
			r.cancel(fmt.Errorf("%w: %w", ErrFenced, ErrInterrupted))
		}
	}
}

// markWatched reports whether the caller has to watch the run of a user: no
// other goroutine does.
func (m *Manager) markWatched(user string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched[user] {
		return false
	}
	m.watched[user] = true
	return true
}

func (m *Manager) unmarkWatched(user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, user)
}
