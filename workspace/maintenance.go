package workspace

import (
	"context"
	"errors"

	"github.com/agentstate/state"
)

// Update changes a workspace without a message: it calls fn and stores what fn
// has changed. If the workspace changes meanwhile, Update calls fn again, so fn
// should have no other effect. During a run, Update returns ErrBusy. An error
// of fn is returned, and nothing is stored.
func (m *Manager) Update(ctx context.Context, userID string, fn func(w *Workspace) error) error {
	effects, err := m.update(ctx, userID, fn)
	if err != nil {
		return wrapError("update", userID, err)
	}
	m.opts.Hooks.memoryChanged(ctx, userID, effects)
	return nil
}

func (m *Manager) update(
	ctx context.Context, userID string, fn func(w *Workspace) error,
) ([]state.Effect, error) {
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
		effects, err := m.tryUpdate(ctx, l, fn)
		if !errors.Is(err, errContentChanged) {
			return effects, err
		}
	}
}

// tryUpdate returns errContentChanged if the workspace has changed meanwhile.
func (m *Manager) tryUpdate(
	ctx context.Context, l *ledger, fn func(w *Workspace) error,
) ([]state.Effect, error) {
	h, doc, err := l.readPresent(ctx)
	if err != nil {
		return nil, err
	}
	if h.Run != nil {
		return nil, ErrBusy
	}
	c, err := newLiveContent(l.user, m.opts.Schema, doc, h.position())
	if err != nil {
		return nil, err
	}
	if err := fn(&c.Workspace); err != nil {
		return nil, err
	}
	d, err := c.delta()
	if err != nil || len(d.effects) == 0 {
		return nil, err
	}
	c.endWrites(ErrRunEnded)
	h, err = l.update(ctx, c.position, d.change)
	if err == nil {
		m.compactIfDue(ctx, l, h)
	}
	return d.effects, err
}

// Reset empties a workspace and ends its run. It returns the ids of the
// messages that were not handled. It deletes the stored data, as far as the
// store deletes.
func (m *Manager) Reset(ctx context.Context, userID string) ([]string, error) {
	l, err := m.ledger(userID)
	if err != nil {
		return nil, wrapError("reset", userID, err)
	}
	_, ids, err := l.reset(ctx)
	if err == nil {
		m.interruptLocalRuns(userID, "")
		_ = l.collect(ctx) // the next compaction collects the rest
	}
	return ids, wrapError("reset", userID, err)
}

// Compact writes the content of a workspace as one snapshot and deletes the
// data that the snapshot replaces. A Manager compacts by itself when that is
// due. Call Compact after a change of keys: it seals everything with the first
// of Options.Keys, except for the records of a run that is under way.
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

// compactIfDue compacts after a write. If that fails, it is done after the
// next.
func (m *Manager) compactIfDue(ctx context.Context, l *ledger, h *head) {
	if h.compactionDue(l.minHistory) && l.compact(ctx, false) == nil {
		_ = l.collect(ctx)
	}
}
