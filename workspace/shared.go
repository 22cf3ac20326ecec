package workspace

import (
	"context"
	"errors"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// sharingFor returns what a content shares with others, nil if it shares nothing.
func (m *Manager) sharingFor(id string) *sharing {
	if isThread(id) {
		return m.sharing
	}
	return nil
}

// content returns the content of a workspace. part is that of the user part, or
// nil if what is shared does not matter.
func (m *Manager) content(
	id string, doc *document.Document, at ledger.Position, part *document.Document,
) (*liveContent, error) {
	c, err := newLiveContent(id, m.schema, doc, at, m.sharingFor(id), part)
	if err == nil {
		inside.OnLacking(c.state, m.tellLacking)
	}
	return c, err
}

// readPart returns the ledger and the content of the user part of a thread. The
// ledger is nil if the thread has none.
func (m *Manager) readPart(ctx context.Context, id string) (*ledger.Ledger, *document.Document, error) {
	if m.sharingFor(id) == nil {
		return nil, nil, nil
	}
	user := ownerOf(id)
	l, err := m.ledger(Shared(user))
	if err != nil {
		return nil, nil, err
	}
	_, doc, err := l.ReadPresent(ctx)
	return l, doc, err
}

// applyShared turns what a delta has written to what is shared into a change of the user
// part, nil if there is none. The thread drops what is stored of it.
func (c *liveContent) applyShared(m *Manager, part *ledger.Ledger, d *contentDelta) *ledger.SharedChange {
	if c.part == nil {
		return nil
	}
	memory := append(c.doc.SharedMemory(), d.shared.memory...)
	d.Effects = append(d.Effects, c.doc.DropShared()...)
	for _, e := range memory { // the thread may have an entry from before there were shared fields
		gone := slices.ContainsFunc(d.Effects, func(x state.Effect) bool { return x.Part == e.Part && x.Field == e.Field })
		if c.doc.Has(e.Part, e.Field) && !gone {
			d.Effects = append(d.Effects, state.Effect{Part: e.Part, Field: e.Field, Kind: state.EffectDelete})
		}
	}
	d.Purge = d.Purge || c.doc.DropsSecret(c.schema, d.Effects)
	if len(d.shared.writes)+len(memory) == 0 {
		return nil
	}
	return &ledger.SharedChange{Part: part, Message: c.messageID, Make: func(doc *document.Document) (ledger.Change, error) {
		return m.mergeShared(doc, d.shared.writes, memory)
	}}
}

// mergeShared returns the change that writes do to the content of a user part,
// which it changes.
func (m *Manager) mergeShared(
	doc *document.Document, writes []internal.SharedWrite, memory []state.Effect,
) (ledger.Change, error) {
	s, moved, err := loadState(m.schema, doc)
	if err != nil {
		return ledger.Change{}, err
	}
	before := s.Snapshot()
	if err := inside.RedoShared(s, writes); err != nil {
		return ledger.Change{}, err
	}
	effects, err := doc.Save(before, s.Snapshot(), moved)
	if err != nil {
		return ledger.Change{}, err
	}
	if !slices.ContainsFunc(effects, func(e state.Effect) bool { return !document.IsVersion(e) }) {
		effects = nil
	}
	present := map[string]bool{}
	for _, e := range memory {
		has, known := present[e.Field]
		if !known {
			has = doc.Has(e.Part, e.Field)
		}
		present[e.Field] = e.Kind != state.EffectDelete
		if has || e.Kind != state.EffectDelete {
			effects = append(effects, e)
		}
	}
	return ledger.Change{Effects: effects, Time: ledger.CurrentTime(), Purge: doc.DropsSecret(m.schema, effects)}, nil
}

// sharedError returns the error of the code that merges shared fields, if err is
// one.
func sharedError(err error) error {
	if own := (*ledger.ProgramError)(nil); errors.As(err, &own) && !errors.Is(err, store.ErrUnknownOutcome) {
		return own.Err
	}
	return err
}
