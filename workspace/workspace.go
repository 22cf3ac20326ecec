package workspace

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// Workspace is what there is about one user, as a [Run], a [View] or
// [Manager.Update] has it.
type Workspace struct {
	user     string
	state    *state.State
	memory   *Memory
	settings *sharedSettings
}

// UserID returns the user whose workspace it is.
func (w *Workspace) UserID() string { return w.user }

// State returns the host's handle on the state. Give agents and tools handles of
// their own, with its As.
func (w *Workspace) State() *state.State { return w.state }

// Memory returns what is to be remembered about the user.
func (w *Workspace) Memory() *Memory { return w.memory }

// Settings returns a copy of the settings.
func (w *Workspace) Settings() Settings { return w.settings.get() }

// SetSettings calls fn with a copy of the settings and stores what fn made of it.
// Concurrent changes wait for one another. fn may read the settings but must not
// call SetSettings.
func (w *Workspace) SetSettings(fn func(*Settings)) error { return w.settings.change(fn) }

// Redact returns text with the values of all secrets replaced by [SECRET], those
// of the state and those of the memory.
func (w *Workspace) Redact(text string) string { return w.memory.redact(w.state.Redact(text)) }

// content is a workspace that can be changed, together with what is stored of it.
type liveContent struct {
	Workspace
	doc          *document.Document // what is stored
	position     position
	storedState  *state.State // a snapshot of the state as it is stored
	storedMemory memorySnapshot
}

// newContent returns the content that a document has at a point.
func newLiveContent(user string, schema *state.Schema, doc *document.Document, at position) (*liveContent, error) {
	s, err := doc.Load(schema)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(doc.Fields(document.PartMemory), currentTime)
	if err != nil {
		return nil, err
	}
	set, err := decodeSettings(doc.Fields(document.PartSetting))
	if err != nil {
		return nil, err
	}
	return &liveContent{
		Workspace: Workspace{user, s, m, set},
		doc:       doc.Clone(), position: at, storedState: s.Snapshot(), storedMemory: m.snapshot(),
	}, nil
}

// delta is what turns the stored content into the present one.
type contentDelta struct {
	effects []state.Effect
	purge   bool // a secret is replaced or gone
	state   *state.State
	memory  memorySnapshot
}

// delta returns what was changed since the content was stored.
func (c *liveContent) delta() (contentDelta, error) {
	x := contentDelta{state: c.state.Snapshot(), memory: c.Memory().snapshot()}
	effects, err := c.doc.Save(c.storedState, x.state)
	if err != nil {
		return x, err
	}
	set, err := c.settings.effects()
	if err != nil {
		return x, err
	}
	x.effects = append(append(effects, x.memory.effectsSince(c.storedMemory)...), set...)
	x.purge = c.purges(x.effects)
	return x, nil
}

// purges reports whether effects replace or delete a secret.
func (c *liveContent) purges(effects []state.Effect) bool {
	secret := map[string]bool{}
	for _, f := range c.state.Fields() {
		secret[f.Name] = f.Secret
	}
	return slices.ContainsFunc(effects, func(e state.Effect) bool {
		switch e.Part {
		case document.PartField, document.PartKey:
			return secret[e.Field] && c.doc.Has(e.Part, e.Field)
		case document.PartMemory:
			return c.storedMemory.secret(e.Field)
		}
		return false
	})
}

// saved notes that a delta is stored, at a point.
func (c *liveContent) noteStored(x contentDelta, at position) error {
	if err := c.doc.Apply(x.effects); err != nil {
		return err
	}
	c.position, c.storedState, c.storedMemory = at, x.state, x.memory
	c.settings.saved(x.effects)
	return nil
}

// end makes further writes to memory and settings fail.
func (c *liveContent) endWrites(err error) {
	c.Memory().end(err)
	c.settings.end(err)
}
