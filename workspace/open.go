package workspace

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Open returns a Manager of the workspaces in a store. It writes nothing, except
// that with Options.Holder it makes the runs of an earlier process free. The
// Manager does not close the store. The end of ctx has the
// effect of Close, but nothing waits.
//
// On a store of [store.ReadOnly] the Manager shows workspaces, also while other
// processes use them. It writes nothing and holds no runs: all that would write
// returns store.ErrReadOnly.
func Open(ctx context.Context, db store.Store, opts *Options) (*Manager, error) {
	m := &Manager{
		core: core{db: db}, cacheSalt: rand.Text(), ledgers: map[string]*ledger.Ledger{}, localRuns: map[*Run]bool{}, watched: map[string]chan struct{}{},
	}
	if opts != nil {
		m.opts = *opts
	}
	if err := m.opts.complete(); err != nil {
		return nil, err
	}
	m.sharing = sharingOf(m.opts.Schema, m.opts.ThreadMemory)
	if db == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	m.telemetry.tracer, m.telemetry.logger = m.opts.Tracer, m.opts.Logger
	m.telemetry.ttl, m.telemetry.takeover, m.telemetry.background = m.opts.TTL, m.opts.Takeover, m.runInBackground
	m.slots, m.tidying = newSlots(m.opts.Runs, m.opts.UserRuns), newTidying(&m.core)
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
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	m.accepting, m.refuse = context.WithCancelCause(m.ctx)
	m.holder = newHolder(&m.core, m.opts.Holder)
	m.observed = &observations{by: m.holder, seen: map[string]*observation{}}
	if err := m.holder.claim(ctx); err != nil {
		m.cancel(ErrClosed)
		return nil, fmt.Errorf("workspace: open: %w", err)
	}
	if m.opts.Run != nil && !m.readOnly {
		m.background(func() { m.recoverRuns(m.expirer()) })
	}
	return m, nil
}
