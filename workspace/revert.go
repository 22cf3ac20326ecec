package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Revert gives the fields, undeclared keys, memory and settings of a workspace
// the values that they had at an earlier version, as the next version. What was
// said and done stays: the conversation, the history and the suspended calls.
// Secrets stay as they are as well, and so do fields that the schema does not
// have.
//
// Revert returns state.ErrCompacted if the version is no longer held, ErrSchema
// if one of the values does not fit the schema any more, and during a run
// ErrBusy. If there is nothing to change, it stores nothing.
func (m *Manager) Revert(ctx context.Context, userID string, version uint64) error {
	effects, err := m.tracedRevert(ctx, userID, version)
	if err != nil {
		return wrapError("revert", userID, err)
	}
	m.memoryChanged(ctx, userID, effects)
	return nil
}

func (m *Manager) tracedRevert(ctx context.Context, userID string, version uint64) ([]state.Effect, error) {
	ctx, op := m.begin(ctx, Operation{Kind: OpUpdate, UserID: userID})
	effects, err := m.revert(ctx, userID, version, &op)
	op.end(err)
	return effects, err
}

func (m *Manager) revert(ctx context.Context, userID string, version uint64, op *operation) ([]state.Effect, error) {
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
		effects, h, err := m.tryRevert(ctx, l, version)
		switch {
		case errors.Is(err, ledger.ErrContentChanged):
			continue
		case err == nil && len(effects) > 0:
			op.wrote, op.Effects, op.Version = true, len(effects), h.Version
			m.compactIfDue(ctx, l, h)
		}
		return effects, err
	}
}

// tryRevert returns ledger.ErrContentChanged if the workspace has changed
// meanwhile.
func (m *Manager) tryRevert(
	ctx context.Context, l *ledger.Ledger, version uint64,
) (effects []state.Effect, h *ledger.Head, err error) {
	h, err = l.ReadStable(ctx, func(h *ledger.Head) error {
		if h.Run != nil {
			return ErrBusy
		}
		at, err := l.PositionAt(ctx, h, version)
		if err != nil {
			return err
		}
		now, err := m.contentAt(ctx, l, h, h.Position())
		if err != nil {
			return err
		}
		past, err := m.contentAt(ctx, l, h, at)
		if err == nil {
			effects, err = now.revertTo(past)
		}
		return err
	})
	if err != nil || len(effects) == 0 {
		return nil, h, err
	}
	h, err = l.Update(ctx, ledger.KindRevert, h.Position(), ledger.Change{Effects: effects})
	return effects, h, err
}

func (m *Manager) contentAt(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head, at ledger.Position,
) (*liveContent, error) {
	doc, err := l.Content(ctx, h, at)
	if err != nil {
		return nil, err
	}
	return newLiveContent(l.User(), m.opts.Schema, doc, at)
}

// revertTo returns the effects of Manager.Revert, or none if they change
// nothing.
func (c *liveContent) revertTo(past *liveContent) ([]state.Effect, error) {
	open := map[string]bool{}
	for _, f := range c.state.Fields() {
		for _, name := range append(f.Was, f.Name) {
			open[name] = !f.Secret
		}
	}
	effects := c.doc.RevertFields(past.doc, func(part, field string) bool {
		switch part {
		case document.PartField:
			return open[field]
		case document.PartKey:
			shown, declared := open[field]
			return shown || !declared
		case document.PartMemory:
			return !c.storedMemory.secret(field) && !past.storedMemory.secret(field)
		}
		return part == document.PartSetting
	})
	if len(effects) == 0 {
		return nil, nil
	}
	reverted := c.doc.Clone()
	if err := reverted.Apply(effects); err != nil {
		return nil, err
	}
	if _, err := newLiveContent(c.user, c.schema, reverted, c.position); err != nil {
		return nil, fmt.Errorf("version %d: %w", past.position.Version, err)
	}
	return effects, nil
}
