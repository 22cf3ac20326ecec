package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// sharing is what a schema and the Options share between the threads of a user.
type sharing struct {
	fields map[string]bool // by present and former names
	memory bool
}

// sharingOf returns nil if a schema has no shared fields.
func sharingOf(schema *state.Schema, threadMemory bool) *sharing {
	if fields := internal.SharedNames(schema); fields != nil {
		return &sharing{fields, !threadMemory}
	}
	return nil
}

// has reports whether an effect edits what is shared. Nil shares only a memory,
// which no thread reads.
func (s *sharing) has(e state.Effect) bool {
	if s == nil {
		return e.Part == document.PartMemory
	}
	switch e.Part {
	case document.PartField, document.PartKey:
		return s.fields[e.Field]
	case document.PartMemory:
		return s.memory
	}
	return false
}

// checkPart returns an error if effects do more with a user part than to edit
// what is shared.
func (s *sharing) checkPart(effects []state.Effect) error {
	for _, e := range effects {
		if !document.IsVersion(e) && !s.has(e) {
			return fmt.Errorf("%w: %s %s belongs to a thread: it is not shared", ErrInvalid, e.Part, fault.Quote(e.Field))
		}
	}
	return nil
}

// userPart is what the content of a thread has of the user part.
type userPart struct {
	*sharing
	stale error // why what the run has stored cannot be done again
	// stored is what the run has written to shared fields and has stored with its
	// commits, and taken how much of what the State has kept that is.
	stored []internal.SharedWrite
	taken  int
}

// isThread reports whether a content has a user part besides its own.
func isThread(id string) bool { return id != "" && !ledger.IsShared(id) }

// checkRuns returns an error for a workspace that has no runs.
func checkRuns(id string) error {
	if !ledger.IsShared(id) {
		return nil
	}
	return fmt.Errorf("%w: what threads share has no messages and no runs", ErrInvalid)
}

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
	return newLiveContent(id, m.opts.Schema, doc, at, m.sharingFor(id), part)
}

// readPart returns the ledger and the content of the user part of a thread. The
// ledger is nil if the thread has none.
func (m *Manager) readPart(ctx context.Context, id string) (*ledger.Ledger, *document.Document, error) {
	if m.sharingFor(id) == nil {
		return nil, nil, nil
	}
	user, _ := SplitThread(id)
	l, err := m.ledger(Shared(user))
	if err != nil {
		return nil, nil, err
	}
	_, doc, err := l.ReadPresent(ctx)
	return l, doc, err
}

// view returns the content of a thread with what is shared in place of its own.
func (s *sharing) view(doc, part *document.Document) *document.Document {
	if part == nil {
		part = document.New()
	}
	return doc.WithShared(part, s.fields, s.memory)
}

// redo does again what the run has stored with its commits.
func (p *userPart) redo(doc *document.Document, s *state.State) (err error) {
	if p.stored, err = doc.SharedWrites(); err != nil {
		return err
	}
	p.stale = internal.RedoShared(s, p.stored)
	internal.KeepShared(s)
	return nil
}

// sharedDelta is what has changed of what is shared.
type sharedDelta struct {
	writes []internal.SharedWrite // all, also those that are stored
	memory []state.Effect         // since the last commit
}

// split takes what is shared out of the effects of a delta.
func (p *userPart) split(d *contentDelta) error {
	kept := make([]state.Effect, 0, len(d.Effects))
	for _, e := range d.Effects {
		switch {
		case !p.has(e):
			kept = append(kept, e)
		case e.Part == document.PartMemory:
			d.shared.memory = append(d.shared.memory, e)
		}
	}
	d.Effects = kept
	writes, err := internal.SharedWrites(d.state, p.taken)
	d.shared.writes = slices.Concat(p.stored, writes)
	return err
}

// store adds the effects that store what is written to what is shared, for the
// time until the run is finished.
func (p *userPart) store(d *contentDelta, doc *document.Document) error {
	effects, err := doc.AppendShared(d.shared.writes[len(p.stored):])
	if err != nil {
		return err
	}
	for _, e := range d.shared.memory {
		e.Part = document.PartSharedMemory
		if e.Kind == state.EffectDelete {
			e.Kind, e.Value = state.EffectSet, "null"
		}
		effects = append(effects, e)
	}
	d.Effects = append(d.Effects, effects...)
	return nil
}

// noteStored notes that a delta is stored.
func (p *userPart) noteStored(d contentDelta) {
	p.taken += len(d.shared.writes) - len(p.stored)
	p.stored = d.shared.writes // with the functions that make updates again
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
	d.Purge = d.Purge || c.purges(d.Effects)
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
	s, moved, err := loadState(m.opts.Schema, doc)
	if err != nil {
		return ledger.Change{}, err
	}
	before := s.Snapshot()
	if err := internal.RedoShared(s, writes); err != nil {
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
	return ledger.Change{Effects: effects, Time: ledger.CurrentTime(), Purge: m.dropsSecret(doc, effects)}, nil
}

// sharedError returns the error of the code that merges shared fields, if err is
// one.
func sharedError(err error) error {
	if own := (*ledger.ProgramError)(nil); errors.As(err, &own) && !errors.Is(err, store.ErrUnknownOutcome) {
		return own.Err
	}
	return err
}
