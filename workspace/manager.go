package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
)

// Manager keeps the workspaces in a store. It is safe for concurrent use.
type Manager struct {
	db         store.Store
	opts       Options
	sealer     *sealer
	ctx        context.Context // of what goes on in the background
	cancel     context.CancelCauseFunc
	goroutines sync.WaitGroup

	mu            sync.Mutex
	closed        bool
	ledgers       map[string]*ledger // of all workspaces that were used: they remember how far these have come
	recentLedgers []*ledger          // those that may keep content, the latest last
	heldRuns      map[string]*Run    // by lease
	activeRuns    int                // chains of runs that are being worked off
	idle          chan struct{}      // closed when there are none; nil if nobody waits
	watched       map[string]bool    // users for whose run a goroutine looks
}

// contents is how many workspaces' contents a Manager keeps in memory.
const maxCachedContents = 128

// Open returns a Manager of the workspaces in a store. It writes nothing. The
// Manager does not close the store. ctx is that of the runs that go on when Handle
// has returned; when it ends, they end.
func Open(ctx context.Context, db store.Store, opts *Options) (*Manager, error) {
	m := &Manager{db: db, ledgers: map[string]*ledger{}, heldRuns: map[string]*Run{}, watched: map[string]bool{}}
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
	m.opts.Keys = nil // so that no one prints them
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	return m, nil
}

// Close ends the runs that this Manager holds, as a crash would: others, or the
// next Manager, go on with them. It waits until the functions of Options have
// returned.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(ErrClosed)
	m.goroutines.Wait()
	return nil
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

// background runs fn in a goroutine that Close waits for, unless it is too late.
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
		batch, _ := m.db.(store.Batcher)
		l = &ledger{
			db: m.db, batch: batch, user: user, key: key, sealer: m.sealer, anchor: m.opts.Anchor,
			pause: sleep, ttl: m.opts.TTL, now: currentTime, minHistory: minHistoryBytes,
		}
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

// historyBytes is of how much of the newest records there are at least, for those
// who want to know what has happened.
const minHistoryBytes = 64 << 10

func currentTime() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func (m *Manager) holdRun(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heldRuns[r.leaseID] = r
}

func (m *Manager) releaseRun(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.heldRuns, r.leaseID)
}

// dismiss tells the runs of a user that are held here, but for one, that they were
// interrupted. Those that are held elsewhere find out by themselves.
func (m *Manager) endLocalRuns(user, but string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for lease, r := range m.heldRuns {
		if r.user == user && lease != but {
			r.cancel(fmt.Errorf("%w: %w", ErrFenced, ErrInterrupted))
		}
	}
}

// Store returns where the agents keep what is not part of a user's workspace. Its
// keys are never those of a workspace.
func (m *Manager) Store(userID string) *store.Manager {
	return store.NewManager(m.db, "agent:data:"+encodeUser(userID)+":")
}

// Handle has a message handled: it begins a run, calls Options.Run, and finishes
// the run with what that leaves behind. The outcome is Done, or Failed together
// with the error of the run.
//
// If a run is under way, msg.Busy determines what happens to the
// message. Handle does not wait for a message that is Queued: who holds the run
// handles it later. After the message a Manager goes on with those that wait, in
// the background.
//
// When ctx ends, or the run loses its workspace, before the message is handled, the
// message is not lost: the run is taken over, and Options.Run is called
// again, unless it was the message of another, or a reset, that ended the run.
func (m *Manager) Handle(ctx context.Context, userID string, msg Message) (Outcome, error) {
	leave, err := m.enter()
	if err != nil {
		return Outcome{}, wrapError("handle", userID, err)
	}
	defer leave()
	if m.opts.Run == nil {
		return Outcome{}, wrapError("handle", userID, fmt.Errorf("%w: Options has no Run", ErrInvalid))
	}
	run, out, err := m.Begin(ctx, userID, msg)
	if err != nil || run == nil {
		return out, wrapError("handle", userID, err)
	}
	defer m.trackRun()()
	next, status, err := m.performRun(run)
	if next != nil {
		m.drainInBackground(next)
	}
	return Outcome{Status: status, RunID: run.runID, Reply: run.Reply()}, wrapError("handle", userID, err)
}

// Submit is Handle that does not wait for the message to be handled: when it
// returns, the message is stored, and is handled in the background. The outcome
// is Started, Queued, Duplicate or Rejected. The run does not end with ctx, but
// with the context that Open was given.
func (m *Manager) Submit(ctx context.Context, userID string, msg Message) (Outcome, error) {
	leave, err := m.enter()
	if err != nil {
		return Outcome{}, wrapError("submit", userID, err)
	}
	defer leave()
	if m.opts.Run == nil {
		return Outcome{}, wrapError("submit", userID, fmt.Errorf("%w: Options has no Run", ErrInvalid))
	}
	run, out, err := m.begin(ctx, m.ctx, userID, msg)
	if err == nil && run != nil {
		m.drainInBackground(run)
	}
	return out, wrapError("submit", userID, err)
}

// Wait waits until this Manager works on no run that Handle, Submit, Recover or a
// queue has begun, or until ctx ends. To stop in peace, send nothing more, Wait and
// then Close.
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

// busy makes Wait wait until done is called.
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

// inBackground works a run off in a goroutine.
func (m *Manager) drainInBackground(run *Run) {
	done := m.trackRun()
	if !m.background(func() {
		defer done()
		m.drain(run)
	}) {
		done()
	}
}

// Begin begins a run for those who do not want Handle to call Options.Run: call
// Finish or Fail at the end. The run is nil if the outcome is not Started. The run
// is kept alive until ctx ends; it is then taken over.
func (m *Manager) Begin(ctx context.Context, userID string, msg Message) (*Run, Outcome, error) {
	run, out, err := m.begin(ctx, ctx, userID, msg)
	return run, out, wrapError("begin", userID, err)
}

// begin begins a run that lasts no longer than another context.
func (m *Manager) begin(ctx, lasting context.Context, userID string, msg Message) (*Run, Outcome, error) {
	o, err := m.newSubmission(msg)
	if err != nil {
		return nil, Outcome{}, err
	}
	l, err := m.ledger(userID)
	if err != nil {
		return nil, Outcome{}, err
	}
	o.lease = l.newLease()
	h, status, err := l.submit(ctx, o)
	out := Outcome{Status: status}
	switch {
	case err != nil:
		if errors.Is(err, ErrQueueFull) {
			out.Status = StatusRejected
		}
		return nil, out, err
	case status == StatusQueued:
		m.watchRun(userID, l)
		return nil, out, nil
	case status != StatusStarted:
		return nil, out, nil
	}
	if h.Run == nil || h.Run.LeaseID != o.lease.leaseID {
		// It was lost before it was known to have begun.
		return nil, out, fmt.Errorf("begin: %w", ErrFenced)
	}
	m.endLocalRuns(userID, h.Run.LeaseID)
	out.RunID = h.Run.RunID
	run, err := m.newRun(lasting, l, h)
	if err != nil {
		m.watchRun(userID, l)
		return nil, out, err
	}
	m.opts.Hooks.runStarted(run.ctx, run)
	return run, out, nil
}

// offer checks a message.
func (m *Manager) newSubmission(msg Message) (submission, error) {
	o := submission{busy: msg.Busy, maxQueue: m.opts.Queue}
	if !o.busy.valid() {
		return o, fmt.Errorf("%w: message with an unknown Busy", ErrInvalid)
	}
	if o.busy == BusyDefault {
		o.busy = m.opts.Busy
	}
	if msg.ID == "" {
		msg.ID = newID()
	}
	data, err := msg.encode()
	if err != nil {
		return o, err
	}
	o.message = pendingMessage{ID: msg.ID, At: currentTime()}
	if len(data) > maxInlineBody {
		o.body = data
	} else {
		o.message.Body = data
	}
	return o, nil
}

// perform calls Options.Run and ends the run.
func (m *Manager) performRun(run *Run) (next *Run, status Status, err error) {
	err = m.callRun(run)
	// What was done is stored even if ctx has ended in between.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run.ctx), run.ttl)
	defer cancel()
	switch {
	case err == nil:
		if next, err = run.Finish(ctx); err == nil {
			return next, StatusDone, nil
		}
		if !errors.As(err, new(*store.Error)) && run.leaseValid() {
			break // there is something in it that cannot be stored
		}
		fallthrough
	case run.ctx.Err() != nil:
		// Who takes it over goes on.
		run.abandon(err)
		if cause := context.Cause(run.ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
		return nil, "", err
	}
	next, lost := run.Fail(ctx, err)
	if lost != nil {
		run.abandon(lost)
		return nil, "", errors.Join(lost, err)
	}
	return next, StatusFailed, err
}

// call calls Options.Run. A panic is an error of the run.
func (m *Manager) callRun(run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("workspace: run panicked: %s", run.Redact(fmt.Sprint(p)))
		}
	}()
	return m.opts.Run(run.ctx, run)
}

// workOff performs a run and those after it.
func (m *Manager) drain(run *Run) {
	for run != nil {
		run, _, _ = m.performRun(run) // the hooks have heard of it
	}
}

// tidy does what is due when a run has ended. If it fails it is done next time.
func (m *Manager) compactIfDue(ctx context.Context, l *ledger, h *head) {
	if h.compactionDue(l.minHistory) && l.compact(ctx, false) == nil {
		_ = l.collect(ctx)
	}
}

// Update changes a workspace without a message and without a run: it stores what
// fn has changed. If others have changed the workspace meanwhile, fn is called
// again, so it should do nothing else. ErrBusy is returned while a run is under
// way. An error of fn is returned, and nothing is stored.
func (m *Manager) Update(ctx context.Context, userID string, fn func(w *Workspace) error) error {
	effects, err := m.update(ctx, userID, fn)
	if err != nil {
		return wrapError("update", userID, err)
	}
	m.opts.Hooks.memoryChanged(ctx, userID, effects)
	return nil
}

func (m *Manager) update(ctx context.Context, userID string, fn func(w *Workspace) error) ([]state.Effect, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	l, err := m.ledger(userID)
	if err != nil {
		return nil, err
	}
	for {
		h, doc, err := l.readPresent(ctx)
		if err != nil {
			return nil, err
		}
		if h.Run != nil {
			return nil, ErrBusy
		}
		c, err := newLiveContent(userID, m.opts.Schema, doc, h.position())
		if err != nil {
			return nil, err
		}
		if err := fn(&c.Workspace); err != nil {
			return nil, err
		}
		x, err := c.delta()
		if err != nil || len(x.effects) == 0 {
			return nil, err
		}
		c.endWrites(ErrRunEnded)
		h, err = l.update(ctx, h.position(), x.effects, x.purge)
		if errors.Is(err, errContentChanged) {
			continue
		}
		if err == nil {
			m.compactIfDue(ctx, l, h)
		}
		return x.effects, err
	}
}

// Reset empties a workspace, which ends the run that is under way, and returns the
// ids of the messages that were not handled. What was stored is deleted, as
// far as the store deletes.
func (m *Manager) Reset(ctx context.Context, userID string) ([]string, error) {
	l, err := m.ledger(userID)
	if err != nil {
		return nil, wrapError("reset", userID, err)
	}
	_, ids, err := l.reset(ctx)
	if err == nil {
		m.endLocalRuns(userID, "")
		_ = l.collect(ctx) // what is left is collected later
	}
	return ids, wrapError("reset", userID, err)
}

// Compact stores the content of a workspace anew, as one snapshot, and deletes what
// that makes needless. It happens by itself when it is due. It is there for a change
// of keys: afterwards all is sealed with the first of Options.Keys, but for the
// records of a run that is under way.
func (m *Manager) Compact(ctx context.Context, userID string) error {
	l, err := m.ledger(userID)
	if err == nil {
		err = l.compact(ctx, true)
	}
	if err == nil {
		err = l.collect(ctx)
	}
	return wrapError("compact", userID, err)
}
