package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Update changes a workspace without a message: it calls fn and stores what fn
// has changed. If the workspace changes meanwhile, Update calls fn again, so fn
// should have no other effect. During a run, Update returns ErrBusy. An error
// of fn is returned, and nothing is stored.
//
// With the id of [Shared], Update changes what all threads of a user share, the
// shared fields and the memory, whatever runs there are; also within a run, which
// does not see the change unless it is begun anew. ErrInvalid is returned for a
// change of anything else.
func (m *Manager) Update(ctx context.Context, userID string, fn func(w *Workspace) error) error {
	return m.updateFrom(ctx, userID, func(h *ledger.Head) error { return checkUnused(h, nil) }, fn)
}

// UpdateAt is Update for a caller that has seen a version of the content, for
// example in a form. If the content has another version, UpdateAt returns
// store.ErrConflict, and nothing is stored.
func (m *Manager) UpdateAt(ctx context.Context, userID string, version uint64, fn func(w *Workspace) error) error {
	return m.updateFrom(ctx, userID, func(h *ledger.Head) error { return checkUnused(h, &version) }, fn)
}

// updateFrom is Update for a head that check accepts.
func (m *Manager) updateFrom(
	ctx context.Context, userID string, check func(*ledger.Head) error, fn func(w *Workspace) error,
) error {
	return m.changeContent(ctx, userID, "update", func(ctx context.Context, l *ledger.Ledger, op *operation) error {
		return m.tryUpdate(ctx, l, check, fn, op)
	})
}

// changeContent calls try, which changes the content of a workspace by one
// record, again as long as it returns ledger.ErrContentChanged. name is that of
// the operation in errors.
func (m *Manager) changeContent(
	ctx context.Context, userID, name string, try func(context.Context, *ledger.Ledger, *operation) error,
) error {
	op := work.Operation{Kind: work.OpUpdate, UserID: userID}
	return m.observe(ctx, name, op, func(ctx context.Context, l *ledger.Ledger, op *operation) error {
		for { // another writer was faster: it ends when the others have written, or with ctx
			if err := try(ctx, l, op); !errors.Is(err, ledger.ErrContentChanged) {
				return err
			}
		}
	})
}

// checkUnused returns an error if a run is under way, or if version is not nil
// and the content has another one.
func checkUnused(h *ledger.Head, version *uint64) error {
	switch {
	case h.Run != nil:
		return ErrBusy
	case version != nil && h.Version != *version:
		return fmt.Errorf("version %d, not %d: %w", h.Version, *version, store.ErrConflict)
	}
	return nil
}

// tryUpdate is Update once.
func (m *Manager) tryUpdate(
	ctx context.Context, l *ledger.Ledger, check func(*ledger.Head) error, fn func(w *Workspace) error, op *operation,
) error {
	if fn == nil {
		return fmt.Errorf("%w: no function", ErrInvalid)
	}
	h, doc, err := l.ReadPresent(ctx)
	if err != nil {
		return err
	}
	if err := check(h); err != nil {
		return err
	}
	sharedLedger, part, err := m.readPart(ctx, l.User())
	if err != nil {
		return err
	}
	c, err := m.content(l.User(), doc, h.Position(), part)
	if err != nil {
		return err
	}
	if op.effort != nil {
		op.Redact = func(text string) string { return c.redactStored(c.Redact(text)) }
	}
	if err := fn(&c.Workspace); err != nil {
		return err
	}
	return m.storeUpdate(ctx, l, sharedLedger, h, c, op)
}

// storeUpdate stores what an update has changed of the content at a head.
func (m *Manager) storeUpdate(
	ctx context.Context, l, sharedLedger *ledger.Ledger, h *ledger.Head, c *liveContent, op *operation,
) error {
	d, err := c.delta()
	if err == nil && ledger.IsShared(l.User()) {
		err = m.sharing.checkPart(d.Effects)
	}
	if err != nil {
		return err
	}
	change := c.applyShared(m, sharedLedger, &d)
	if len(d.Effects) == 0 && change == nil {
		return nil
	}
	d.Title = m.titleOf(ctx, c, d.state)
	c.endWrites(ErrRunEnded)
	h, err = l.Update(ctx, ledger.KindUpdate, h, d.Change, change)
	if err = sharedError(err); errors.Is(err, internal.ErrSharedStale) {
		return ledger.ErrContentChanged
	}
	if err == nil {
		op.wrote, op.Effects, op.Version = true, len(d.Effects), h.Version
		// Unless others have written since, for whom the content is another one.
		if h.Version == c.position.Version+1 && c.noteStored(d, h.Position()) == nil {
			l.CacheContent(h.Position(), c.doc)
		}
		m.compactIfDue(ctx, l, h)
		if change != nil {
			m.tidy(ctx, sharedLedger, sharedLedger.LastHead())
		}
	}
	return err
}

// Reset empties a workspace and ends its run. It returns the ids of the
// messages that were not handled: that of the run, those that waited and the dead
// letters. It deletes the stored data, as far as the store deletes.
//
// Reset also resets a workspace whose data is damaged or missing, if Delete
// would delete it. It returns the ids that can still be read, and messages that
// were handled before may not be known as duplicates any more.
func (m *Manager) Reset(ctx context.Context, userID string) (ids []string, err error) {
	op := work.Operation{Kind: work.OpReset, UserID: userID}
	err = m.observe(ctx, "reset", op, func(ctx context.Context, l *ledger.Ledger, op *operation) (err error) {
		var h *ledger.Head
		if h, ids, err = l.Reset(ctx); err == nil {
			op.noteHead(h)
			m.endLocalRuns(userID, h, work.EndingReset)
		}
		return err
	})
	return ids, err
}

// Compact writes the content of a workspace as one snapshot and deletes the
// data that the snapshot replaces, with all records before it: it keeps nothing
// of what Options.RecordBytes says. A Manager compacts by itself when that is due.
// Call Compact after a change of keys: it seals everything with the first
// of Options.Keys, also the values of [Manager.Store] and all files of the user, except for the records
// of a run that is under way.
func (m *Manager) Compact(ctx context.Context, userID string) error {
	return m.operate(ctx, work.Operation{Kind: opCompactAll, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := m.compact(ctx, l, true); err != nil {
			return err
		}
		return errors.Join(m.data(userID).Reseal(ctx), m.files(ownerOf(userID)).Reseal(ctx))
	})
}

// compactIfDue compacts after a write. If that fails, it is done after the
// next.
func (m *Manager) compactIfDue(ctx context.Context, l *ledger.Ledger, h *ledger.Head) {
	if !l.CompactionDue(h) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.TTL) // the next run waits for it
	defer cancel()
	_ = m.compact(ctx, l, false)
}

func (m *Manager) compact(ctx context.Context, l *ledger.Ledger, force bool) error {
	ctx, op := m.begin(ctx, work.Operation{Kind: work.OpCompact, UserID: l.User()})
	err := l.Compact(ctx, force)
	op.wrote = err == nil
	op.end(err)
	return err
}

// tidy compacts a workspace in the background, so that no sender waits for it. If
// the Manager is closed or too much waits, the next write does it, unless a secret
// was replaced, which does not wait for another message.
func (m *Manager) tidy(ctx context.Context, l *ledger.Ledger, h *ledger.Head) {
	if h == nil || !l.CompactionDue(h) {
		return
	}
	noted := m.tidying.note(l.User(), func(ctx context.Context) { m.compactIfDue(ctx, l, h) })
	if !noted && h.Purge != 0 {
		m.compactIfDue(ctx, l, h)
	}
}
