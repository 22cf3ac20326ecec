package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// Open returns a Manager of the workspaces in a store. It writes nothing, except
// that with Options.Name it makes the runs of an earlier process free. The
// Manager does not close the store. Open ends with ctx, but the Manager does not:
// background work and runs have the values of ctx, and end with Close.
//
// On a store of [store.ReadOnly] the Manager shows workspaces, also while other
// processes use them. It writes nothing and holds no runs: all that would write
// returns store.ErrReadOnly.
//
// Open returns an error if the store refuses List and answers other calls. It logs if a
// Manager of this process has the Name on the same store and was not closed.
func Open(ctx context.Context, db store.Store, opts *Options) (*Manager, error) {
	m := &Manager{
		core: core{db: db}, cacheSalt: rand.Text(), ledgers: map[string]*ledger.Ledger{}, localRuns: map[*Run]bool{},
		watched: map[string]chan struct{}{},
	}
	if opts != nil {
		m.opts = *opts
	}
	if err := m.opts.complete(); err != nil {
		return nil, err
	}
	m.schema = state.New(m.opts.Schema).Schema()
	m.sharing = sharingOf(m.schema, m.opts.ThreadMemory)
	if db == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	m.telemetry.tracer, m.telemetry.logger = m.opts.Tracer, m.opts.Logger
	m.telemetry.ttl, m.telemetry.takeover, m.telemetry.background = m.opts.TTL, m.opts.Takeover, m.runInBackground
	m.slots, m.tidying = turns.NewSlots(m.opts.Runs, m.opts.UserRuns, ownerOf), newTidying(&m.core)
	m.feeds = newFeeds(&m.core)
	var err error
	if m.sealer, err = newSealer(m.opts.Keys); err != nil {
		return nil, err
	}
	for _, key := range m.opts.Keys {
		m.keyIDs = append(m.keyIDs, key.ID)
	}
	m.opts.Keys = nil // so that no Manager that is printed shows them
	m.readOnly = isReadOnly(db)
	m.storeTimeout, m.live = m.opts.StoreTimeout, m.opts.Live
	m.db = boundedStore{db, max(m.opts.StoreTimeout, m.opts.TTL)}
	m.ctx, m.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	m.accepting, m.refuse = context.WithCancelCause(m.ctx)
	m.holder = newHolder(&m.core, m.opts.Name)
	m.name = openName{db, m.opts.Name}
	taken := m.name.take(m)
	if err = m.tryList(ctx); err == nil {
		err = m.holder.claim(ctx)
	}
	if err != nil {
		m.name.free(m)
		m.cancel(ErrClosed)
		return nil, fmt.Errorf("workspace: open: %w", err)
	}
	if taken != nil {
		m.raise(ctx, alarmHolderLost, "", taken)
	}
	if db.Durability() == store.DurabilityServer && !m.readOnly { // what is in this process is meant to end with it
		m.raise(ctx, alarmNotDurable, "", errNotDurable)
	}
	if m.opts.Run != nil && !m.readOnly {
		m.background(func() { m.recoverRuns(m.expirer()) })
	}
	return m, nil
}

var errNotDurable = errors.New("workspace: an acknowledged write is in the memory of a server, and is lost if that restarts")

// listTries is how often List is tried when a Manager is opened.
const listTries = 5

// tryList returns an error if the store answers other calls, and refuses List, as
// rights in a database may have it. A store that is away may come back.
func (m *Manager) tryList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.opts.TTL)
	defer cancel()
	delay := backoff.Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond}
	var refused error
	for range listTries {
		if refused = m.listOnce(ctx); refused == nil {
			return nil
		}
		if _, away := m.db.Get(ctx, string(ledger.Running)); away != nil || delay.Wait(ctx) != nil {
			return nil
		}
	}
	return fmt.Errorf("the store refuses List, with which runs of dead processes are found and lost workspaces are noticed: %w", refused)
}

func (m *Manager) listOnce(ctx context.Context) error {
	for _, err := range m.db.List(ctx, string(ledger.Running), "", false) {
		return err
	}
	return nil
}

// Shutdown closes the Manager when its runs have ended. Messages are refused
// with ErrClosed from now on, and messages that wait in queues are left to other
// Managers, which handle them at once, or within their TTL. If ctx
// ends before the runs do, Shutdown returns its error and that of Close.
//
// Shutdown returns ErrBusy, and does nothing, if ctx is that of a run of the
// Manager: the run would wait for itself.
func (m *Manager) Shutdown(ctx context.Context) error {
	if r, ok := FromContext(ctx); ok && r.m == m {
		return fmt.Errorf("workspace: shutdown: %w", ErrBusy)
	}
	m.refuse(ErrClosed)
	err := m.Wait(ctx)
	return errors.Join(err, m.Close())
}

// Close ends the contexts of the runs that this Manager holds, waits until the
// functions in Options have returned, and releases the runs that have not ended:
// other Managers continue them at once, without counting an attempt. Messages in
// queues are left to other Managers as well. For a graceful end, use Shutdown.
//
// If Close has cut runs off, it returns ErrBusy, with their number. If functions
// have not returned after Options.TTL, Close returns ErrBusy, and their runs are
// left to other Managers, with the attempt counted. So Close must not be called
// by such a function: it would wait for itself.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(ErrClosed)
	defer m.name.free(m)
	returned := make(chan struct{})
	go func() {
		m.goroutines.Wait()
		close(returned)
	}()
	timeout := time.NewTimer(m.opts.TTL)
	defer timeout.Stop()
	select {
	case <-returned:
		switch n := m.cutOff.Load(); {
		case m.isCodeLeft():
		case n > 0:
			return fmt.Errorf("workspace: close: %w: runs that were cut off, and are left to other Managers: %d", ErrBusy, n)
		default:
			return nil
		}
	case <-timeout.C:
	}
	return fmt.Errorf("workspace: close: %w: a function has not returned", ErrBusy)
}

// Wait waits until this Manager holds no run, or until ctx ends. Runs of
// messages in queues count, as long as the Manager takes them. Wait returns
// ErrBusy if ctx is that of a run of the Manager.
func (m *Manager) Wait(ctx context.Context) error {
	if r, ok := FromContext(ctx); ok && r.m == m {
		return fmt.Errorf("workspace: wait: %w", ErrBusy)
	}
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
