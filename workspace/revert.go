package workspace

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// RevertTo is what [Manager.Revert] does.
type RevertTo struct {
	Version uint64 // the version whose values the workspace gets
	// Seen is the version of the content that the caller has seen, for example
	// in a form. If it is not 0 and the content has another version, Revert
	// returns store.ErrConflict.
	Seen uint64
	// Cause is that of the changes in the records, as with State.WithCause.
	Cause string
}

// Revert gives the fields, undeclared keys, memory and settings of a workspace
// the values that they had at an earlier version, as the next version. What was
// said and done stays: the conversation, the history and the suspended calls. So
// does what a thread shares with others: that is reverted under the id of [Shared].
// Secrets stay as they are as well, and so do fields that the schema does not
// have.
//
// Revert returns state.ErrCompacted if the version is no longer held, ErrSchema
// if one of the values does not fit the schema any more, and during a run
// ErrBusy. If there is nothing to change, it stores nothing.
func (m *Manager) Revert(ctx context.Context, userID string, r RevertTo) error {
	return m.changeContent(ctx, userID, "revert", func(ctx context.Context, l *ledger.Ledger, op *operation) error {
		return m.tryRevert(ctx, l, r, op)
	})
}

// tryRevert is Revert once.
func (m *Manager) tryRevert(ctx context.Context, l *ledger.Ledger, r RevertTo, op *operation) error {
	var seen *uint64
	if r.Seen != 0 {
		seen = &r.Seen
	}
	var effects []state.Effect
	h, err := l.ReadStable(ctx, func(h *ledger.Head) error {
		if err := checkUnused(h, seen); err != nil {
			return err
		}
		now, err := m.contentAt(ctx, l, h, h.Version)
		if err != nil {
			return err
		}
		past, err := m.contentAt(ctx, l, h, r.Version)
		if err == nil {
			effects, err = now.revertTo(past)
		}
		return err
	})
	if err != nil || len(effects) == 0 {
		return err
	}
	for i := range effects {
		effects[i].Cause = r.Cause
	}
	h, err = l.Update(ctx, ledger.KindRevert, h, ledger.Change{Effects: effects, Time: ledger.CurrentTime()}, nil)
	if err == nil {
		op.wrote, op.Effects, op.Version = true, len(effects), h.Version
		m.compactIfDue(ctx, l, h)
	}
	return err
}

// contentAt returns the content at a version.
func (m *Manager) contentAt(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head, version uint64,
) (*liveContent, error) {
	at, doc, err := l.ContentAt(ctx, h, version)
	if err != nil {
		return nil, err
	}
	return m.content(l.User(), doc, at, nil)
}

// open returns a function that reports whether a field, key or entry of the memory
// is no secret, in this content and in a past one. A field that the schema does
// not have may be one.
func (c *liveContent) open(past *liveContent) func(part, field string) bool {
	open := map[string]bool{}
	for _, f := range c.state.Fields() {
		for _, name := range append(f.Was, f.Name) {
			open[name] = !f.Secret
		}
	}
	return func(part, field string) bool {
		if c.part != nil && c.part.has(state.Effect{Part: part, Field: field}) {
			return false // what the thread has is from before it was shared
		}
		switch part {
		case document.PartField, document.PartSecret:
			return open[field]
		case document.PartKey:
			shown, declared := open[field]
			return shown || !declared
		case document.PartMemory:
			return !c.storedMemory.secret(field) && !past.storedMemory.secret(field)
		}
		return false
	}
}

// revertTo returns the effects of Manager.Revert, or none if they change
// nothing.
func (c *liveContent) revertTo(past *liveContent) ([]state.Effect, error) {
	open := c.open(past)
	effects := c.doc.RevertFields(past.doc, func(part, field string) bool {
		return part == document.PartSetting || open(part, field)
	})
	if len(effects) == 0 {
		return nil, nil
	}
	reverted := c.doc.Clone()
	if err := reverted.Apply(effects); err != nil {
		return nil, err
	}
	var shares *sharing
	if c.part != nil {
		shares = c.part.sharing
	}
	if _, err := newLiveContent(c.user, c.schema, reverted, c.position, shares, nil); err != nil {
		return nil, fmt.Errorf("version %d: %w", past.position.Version, err)
	}
	return effects, nil
}
