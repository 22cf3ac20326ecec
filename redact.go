package state

import (
	"io"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Redact returns text with [SECRET] in place of every value of a Secret field
// that this handle may read. Use the host's handle, which knows all secrets. An
// agent's handle does not mask secrets that the agent may not read, although a
// tool may have put them into the text.
//
// Every string, sequence of bytes, number and key of a map in the value is
// masked, at any depth. It is also found if it is escaped as in JSON (once or
// twice), Go, HTML or a URL, or encoded in base64 or hexadecimal, also as a part
// of a larger encoded text. A value of less than 6 bytes is masked only where it
// is not part of a word, and a number only where it is not part of a number with
// a fraction. What stands beside a mask without a gap is a part of its word.
//
// As long as the text is JSON from its beginning, the result is JSON: a number
// that contains a secret becomes a string with the mask, and punctuation does
// not change. Redact is idempotent.
//
// Redact knows the values that are set now. Values that were replaced or
// deleted, and values that only a fork has, are not masked. A [Redactor] masks
// a fixed set of values.
func (s *State) Redact(text string) string { return s.Redactor().Redact(text) }

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

// hostRedactor returns the Redactor for all secrets of the state, whatever
// rights the handle has.
func (s *State) hostRedactor() *Redactor {
	host := *s.on()
	host.rights = nil
	return host.redactor()
}

func (h *handle) redactor() *Redactor {
	var room [16]secretCell
	cells := h.secretCells(room[:0])
	if len(cells)+len(h.family.strange) == 0 {
		return nil
	}
	if r, ok := h.family.redactors.get(cells); ok {
		return r
	}
	secrets := slices.Clone(h.family.strange)
	for _, c := range cells {
		secrets = append(secrets, c.spec.leaves(c.cell.Value)...)
	}
	r := newRedactor(secrets)
	h.family.redactors.put(cells, r)
	return r
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
	for c := h.covered; c != nil; c = c.before {
		if h.mayRead(c.spec) {
			cells = append(cells, c.secretCell)
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

// Redact returns text with [SECRET] in place of each secret, found as by
// [State.Redact].
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	return r.hidden().masks.Redact(text)
}

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
		return &passThrough{next: w}
	}
	return r.hidden().masks.Writer(w)
}

// passThrough is the Writer of a nil Redactor.
type passThrough struct {
	next io.Writer
	err  error // of next, or fs.ErrClosed
}

func (w *passThrough) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	if n, w.err = w.next.Write(p); w.err == nil && n < len(p) {
		w.err = io.ErrShortWrite
	}
	return n, w.err
}

func (w *passThrough) Close() error {
	if w.err == nil {
		w.err = fs.ErrClosed
	}
	if w.err == fs.ErrClosed {
		return nil
	}
	return w.err
}

// String returns "[SECRET]".
func (r *Redactor) String() string { return mask }

// LogValue returns "[SECRET]".
func (r *Redactor) LogValue() slog.Value { return slog.StringValue(mask) }

// A secretCell is the cell of a secret field that is set.
type secretCell struct {
	spec *fieldSpec
	cell *engine.Cell
}

// A redactorCache keeps the Redactors that were made last. Cells do not change,
// so that those of the secrets say what a Redactor masks, whichever branch and
// rights they were read with.
type redactorCache struct {
	mu      sync.Mutex
	entries []redactorEntry // the newest first
}

type redactorEntry struct {
	cells    []secretCell
	redactor *Redactor
}

// maxCachedRedactors bounds how many sets of secrets stay in memory: those of
// some agents and branches.
const maxCachedRedactors = 4

func (c *redactorCache) get(cells []secretCell) (*Redactor, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if slices.Equal(e.cells, cells) {
			return e.redactor, true
		}
	}
	return nil, false
}

func (c *redactorCache) put(cells []secretCell, r *Redactor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = slices.Insert(c.entries, 0, redactorEntry{slices.Clone(cells), r})
	if len(c.entries) > maxCachedRedactors {
		c.entries = slices.Delete(c.entries, maxCachedRedactors, len(c.entries))
	}
}

// hiddenFrom calls yield with each value of a Secret field and, unless agent is
// "", of a field that agent may not read. The rights of the handle do not
// count. References are left out: no code looks into them.
func (h *handle) hiddenFrom(agent string, yield func(field string, secret bool, value any)) {
	host := *h
	host.rights = nil
	reader := host
	if agent != "" {
		reader.rights = h.schema.access.of(agent)
	}
	give := func(sp *fieldSpec, at engine.Address, c *engine.Cell) {
		if c == nil || sp.form.Reference || !sp.form.Secret && reader.mayRead(sp) {
			return
		}
		yield(addressName(at), sp.form.Secret, sp.form.Load(c.Value))
	}
	f := h.branch.Freeze()
	for sp, at := range host.readable(f) {
		give(sp, at, f.Get(at))
	}
	for sp, at := range host.readable(h.overlaid(f)) { // in an order that is the same each time
		give(sp, at, h.overlay[at])
	}
	for c := h.covered; c != nil; c = c.before {
		give(c.spec, c.spec.address(), c.cell)
	}
}
