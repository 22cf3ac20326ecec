package workspace

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
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
	if fields := inside.SharedNames(schema); fields != nil {
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
	case document.PartField, document.PartKey, document.PartSecret:
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

// isThread reports whether a content has a user part besides its own.
func isThread(id string) bool { return id != "" && !ledger.IsShared(id) }

// checkRuns returns an error for a workspace that has no runs.
func checkRuns(id string) error {
	if !ledger.IsShared(id) {
		return nil
	}
	return fmt.Errorf("%w: what threads share has no messages and no runs", ErrInvalid)
}

// view returns the content of a thread with what is shared in place of its own.
func (s *sharing) view(doc, part *document.Document) *document.Document {
	if part == nil {
		part = document.New()
	}
	return doc.WithShared(part, s.fields, s.memory)
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

// redo does again what the run has stored with its commits.
func (p *userPart) redo(doc *document.Document, s *state.State) (err error) {
	if p.stored, err = doc.SharedWrites(); err != nil {
		return err
	}
	p.stale = inside.RedoShared(s, p.stored)
	inside.KeepShared(s)
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
	writes, err := inside.SharedWrites(d.state, p.taken)
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
