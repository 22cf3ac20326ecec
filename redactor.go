package state

import (
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/redact"
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
