package workspace

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Workspace is the content of a user's workspace, as a [Run], a [View] or
// [Manager.Update] provides it.
type Workspace struct {
	user     string
	state    *state.State
	memory   *Memory
	settings *sharedSettings

	suspended *suspendedCalls
	masks     *state.Redactor // of the host, if state is the handle of an agent
}

// UserID returns the user whose workspace it is.
func (w *Workspace) UserID() string { return w.user }

// State returns the host's handle on the state. Give agents and tools narrower
// handles, which its method As returns.
func (w *Workspace) State() *state.State { return w.state }

// Memory returns what is remembered about the user.
func (w *Workspace) Memory() *Memory { return w.memory }

// Settings returns a copy of the settings.
func (w *Workspace) Settings() Settings { return w.settings.get() }

// SetSettings calls fn with a copy of the settings and stores what fn made of
// it. Concurrent changes wait for one another. fn may read the settings but
// must not call SetSettings.
func (w *Workspace) SetSettings(fn func(*Settings)) error { return w.settings.change(fn) }

// Redact returns text in which the values of all secrets of the state and of
// the memory are replaced by [SECRET].
func (w *Workspace) Redact(text string) string { return w.Redactor().Redact(text) }

// Redactor returns a Redactor for all secrets of the state and of the memory, as
// they are set now: see [state.State.Redactor]. It returns nil if there are
// none, and the same Redactor as long as they do not change.
func (w *Workspace) Redactor() *state.Redactor {
	switch {
	case w.state == nil: // the zero Workspace
		return nil
	case w.masks != nil:
		return w.masks
	}
	return w.memory.redactor(w.state.Redactor())
}

// redactor returns Redact for the secrets as they are set now.
func (w *Workspace) redactor() func(text string) string { return w.Redactor().Redact }

// liveContent is a Workspace that can be changed, with the stored content that
// it was made from.
type liveContent struct {
	Workspace
	schema       *state.Schema
	doc          *document.Document
	position     ledger.Position // of doc
	moved        document.Moved
	storedState  *state.State // a snapshot of the state in doc
	messageID    string       // of the message that the run handles, or ""
	storedMemory memorySnapshot
	part         *userPart // nil if nothing is shared
}

// newLiveContent returns the content that a document, which it may change later,
// has at a position. If it shares something, that is the one of the user part,
// nil for an empty one.
func newLiveContent(
	user string, schema *state.Schema, doc *document.Document, at ledger.Position, shares *sharing,
	part *document.Document,
) (*liveContent, error) {
	view, p := doc, (*userPart)(nil)
	if shares != nil {
		view, p = shares.view(doc, part), &userPart{sharing: shares}
	}
	s, moved, err := loadState(schema, view)
	if err == nil && part != nil {
		err = inside.KeepSecrets(s, part.StrangeSecrets(schema))
	}
	if err == nil && p != nil {
		err = p.redo(doc, s)
		maps.DeleteFunc(moved, func(field string, _ document.MovedField) bool { return shares.fields[field] })
	}
	if err != nil {
		return nil, err
	}
	m, err := newMemory(view.Fields(document.PartMemory), ledger.CurrentTime)
	if err != nil {
		return nil, err
	}
	set, err := decodeSettings(doc.Fields(document.PartSetting))
	if err != nil {
		return nil, err
	}
	suspended, err := decodeSuspended(doc)
	if err != nil {
		return nil, err
	}
	return &liveContent{
		Workspace: Workspace{user: user, state: s, memory: m, settings: set, suspended: suspended}, schema: schema,
		doc: doc, position: at, moved: moved, storedState: s.Snapshot(), storedMemory: m.snapshot(), part: p,
	}, nil
}

// redactStored masks the stored secrets. Those that were changed since stay
// secret if the changes are not stored.
func (c *liveContent) redactStored(text string) string {
	return c.storedState.Redactor().Join(c.storedMemory.redactor()).Redact(text)
}

// contentDelta turns the stored content into the present one.
type contentDelta struct {
	ledger.Change
	state     *state.State
	memory    memorySnapshot
	suspended map[string]document.Suspension
	shared    sharedDelta
}

// delta returns what has changed since the content was stored.
func (c *liveContent) delta() (contentDelta, error) {
	if err := c.closeEdited(); err != nil {
		return contentDelta{}, err
	}
	d := contentDelta{state: c.state.Snapshot(), memory: c.memory.snapshot()}
	d.Time = ledger.CurrentTime()
	effects, err := c.doc.Save(c.storedState, d.state, c.moved)
	if err != nil {
		return d, err
	}
	settings, err := c.settings.effects()
	if err != nil {
		return d, err
	}
	if d.suspended, err = c.suspended.settle(d.state); err != nil {
		return d, err
	}
	suspended, err := c.suspended.effects(d.suspended)
	if err != nil {
		return d, err
	}
	d.Effects = slices.Concat(effects, suspended, d.memory.effectsSince(c.storedMemory), settings)
	if c.part != nil {
		err = c.part.split(&d)
	}
	d.Purge = c.doc.DropsSecret(c.schema, d.Effects)
	return d, err
}

// origin returns what is noted of the messages that a delta stores.
func (c *liveContent) origin(d contentDelta) document.Origin {
	return document.Origin{Time: d.Time, Run: c.messageID}
}

// nextNumber returns the number that the message gets which is added to the end
// of the conversation next.
func (c *liveContent) nextNumber() (int, error) {
	return c.doc.NextAfter(c.storedState, c.state.Snapshot())
}

// noteStored notes that a delta is stored, and at which position.
func (c *liveContent) noteStored(d contentDelta, at ledger.Position) error {
	if err := c.doc.ApplySaved(d.Effects, c.origin(d), c.schema, d.state); err != nil {
		return err
	}
	c.moved.Forget(d.Effects)
	c.position, c.storedState, c.storedMemory = at, d.state, d.memory
	if c.part != nil {
		c.part.noteStored(d)
	}
	c.settings.noteStored(d.Effects)
	c.suspended.noteStored(d.suspended)
	return nil
}

// endWrites makes further writes fail with err: they would be lost. Those to the State
// of a run that was taken over go on, since Commit refuses them.
func (c *liveContent) endWrites(err error) {
	if !errors.Is(err, ErrFenced) {
		inside.EndWrites(c.state, err)
	}
	c.memory.end(err)
	c.settings.end(err)
	c.suspended.end(err)
}

// loadState returns the state in a document, or ErrSchema if the schema has no
// place for it.
func loadState(schema *state.Schema, doc *document.Document) (*state.State, document.Moved, error) {
	s, moved, err := doc.Load(schema)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return s, moved, err
}

func checkContent(schema *state.Schema, doc *document.Document, shares *sharing) error {
	if shares != nil {
		doc = shares.view(doc, nil)
	}
	_, _, err := loadState(schema, doc)
	return err
}

// orEmpty returns w, or an empty workspace for the zero value, which programs
// have if they log what an error has left.
func (w Workspace) orEmpty() Workspace {
	if w.state == nil {
		if c, err := newLiveContent(w.user, nil, document.New(), ledger.Position{}, nil, nil); err == nil {
			return c.Workspace
		}
	}
	return w
}
