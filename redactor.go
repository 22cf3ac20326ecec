package state

import (
	"io"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Redactor masks a fixed set of secrets in texts: those that a handle may read
// when [State.Redactor] is called. All its methods are safe for concurrent use.
// A nil *Redactor masks nothing.
//
// A Redactor masks text, not the frames of a protocol that carry it: a secret
// may be split over several frames, such as the JSON events of a model's
// stream. Take the text out of the frames first.
type Redactor struct {
	hidden func() redactorContent // a func, because printers that use reflection do not look into it
}

type redactorContent struct {
	secrets []redact.Secret
	masks   *redact.Redactor
}

func newRedactor(secrets []redact.Secret) *Redactor {
	masks := redact.New(secrets)
	if masks.IsEmpty() {
		return nil
	}
	content := redactorContent{secrets, masks}
	return &Redactor{func() redactorContent { return content }}
}

// Redactor returns a Redactor for the secrets that this handle may read, as
// they are set now. Call it on the host's handle, which knows all secrets: an
// agent's handle leaves out the secrets that the agent may not read.
//
// The Redactor does not mask values that are set later, and still masks values
// that are replaced or deleted later. Values that are set only in a fork are
// masked only by Redactors of that fork. Redactor returns nil if no secret is
// set. It returns the same Redactor as long as the secrets do not change, so it
// is cheap to call for each text.
func (s *State) Redactor() *Redactor { return s.on().redactor() }

func (h *handle) redactor() *Redactor {
	var room [16]secretCell
	cells := h.secretCells(room[:0])
	if len(cells) == 0 {
		return nil
	}
	if r, ok := h.family.redactors.get(cells); ok {
		return r
	}
	var secrets []redact.Secret
	for _, c := range cells {
		secrets = append(secrets, c.spec.leaves(c.cell.Value)...)
	}
	r := newRedactor(secrets)
	h.family.redactors.put(cells, r)
	return r
}

// Redact returns text with [SECRET] in place of each secret, found as by
// [State.Redact].
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	return r.hidden().masks.Redact(text)
}

// finds reports whether text may have something to mask.
func (r *Redactor) finds(text []byte) bool { return r.hidden().masks.Finds(text) }

// Join returns a Redactor for the secrets of r and of the others, each of which
// may be nil.
func (r *Redactor) Join(others ...*Redactor) *Redactor {
	all := []*Redactor{}
	for _, o := range append([]*Redactor{r}, others...) {
		if o != nil && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	var secrets []redact.Secret
	for _, o := range all {
		secrets = append(secrets, o.hidden().secrets...)
	}
	return newRedactor(secrets)
}

// Writer returns a writer that masks what is written to it and passes it on to
// w. However the text is split into chunks, w gets what Redact returns for the
// whole text. Write holds back text that may be the beginning of a secret:
// usually nothing or a few bytes, and at most 256 bytes plus 40 times the
// longest secret. Close passes on the rest and does not close w.
//
// After an error of w, every Write and Close returns it. A Write after Close
// fails with [fs.ErrClosed]. The writer is not safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	if r == nil {
		return passThrough{w}
	}
	return r.hidden().masks.Writer(w)
}

// passThrough is the Writer of a nil Redactor.
type passThrough struct{ io.Writer }

func (passThrough) Close() error { return nil }

// String returns "[SECRET]".
func (r *Redactor) String() string { return mask }

// LogValue returns "[SECRET]".
func (r *Redactor) LogValue() slog.Value { return slog.StringValue(mask) }

// A secretCell is the cell of a secret field that is set.
type secretCell struct {
	spec *fieldSpec
	cell *engine.Cell
}

// secretCells appends the cells of the secret fields that the handle may read,
// as they are at one moment: cells that are the same in two passes did not
// change between them.
func (h *handle) secretCells(cells []secretCell) []secretCell {
	cells = h.readSecretCells(h.branch, cells)
	for range 4 {
		if len(cells) < 2 {
			return cells
		}
		var room [16]secretCell
		again := h.readSecretCells(h.branch, room[:0])
		if slices.Equal(cells, again) {
			return cells
		}
		cells = append(cells[:0], again...)
	}
	return h.readSecretCells(h.branch.Freeze(), cells[:0])
}

func (h *handle) readSecretCells(b *engine.Branch, cells []secretCell) []secretCell {
	for _, sp := range h.schema.secrets {
		if !h.mayRead(sp) {
			continue
		}
		if c := b.Slot(&sp.slot); c != nil {
			cells = append(cells, secretCell{sp, c})
		}
		// A value that was given to With does not make the stored one public.
		if c := h.overlay[sp.address()]; c != nil {
			cells = append(cells, secretCell{sp, c})
		}
	}
	return cells
}

// leaves returns the texts of which a stored value consists.
func (sp *fieldSpec) leaves(stored any) []redact.Secret {
	v := reflect.New(sp.form.Type).Elem() // which keeps an interface
	if shared := sp.form.Share(stored); shared != nil {
		v.Set(reflect.ValueOf(shared))
	}
	leaves := value.Leaves(v)
	secrets := make([]redact.Secret, len(leaves))
	for i, leaf := range leaves {
		secrets[i] = redact.Secret(leaf)
	}
	return secrets
}

// A redactorCache keeps the Redactors that were made last. Cells do not change,
// so that those of the secrets say what a Redactor masks, whichever branch and
// rights they were read with.
type redactorCache struct {
	entries atomic.Pointer[[]redactorEntry] // the newest first; never changed
}

type redactorEntry struct {
	cells    []secretCell
	redactor *Redactor
}

const (
	// maxCachedRedactors bounds how many sets of secrets stay in memory: those
	// of some agents and branches.
	maxCachedRedactors = 8

	// maxCachedBytes bounds their size. The newest one may be larger.
	maxCachedBytes = 64 << 20
)

func (c *redactorCache) get(cells []secretCell) (*Redactor, bool) {
	if entries := c.entries.Load(); entries != nil {
		for i := range *entries {
			if e := &(*entries)[i]; slices.Equal(e.cells, cells) {
				return e.redactor, true
			}
		}
	}
	return nil, false
}

func (c *redactorCache) put(cells []secretCell, r *Redactor) {
	for {
		old := c.entries.Load()
		entries := []redactorEntry{{slices.Clone(cells), r}}
		size := r.size()
		if old != nil {
			for _, e := range *old {
				if size += e.redactor.size(); len(entries) == maxCachedRedactors || size > maxCachedBytes {
					break
				}
				entries = append(entries, e)
			}
		}
		if c.entries.CompareAndSwap(old, &entries) {
			return
		}
	}
}

// size returns about how many bytes the Redactor takes.
func (r *Redactor) size() int {
	if r == nil {
		return 0
	}
	return r.hidden().masks.Size()
}
