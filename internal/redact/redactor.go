// Package redact masks secret values in text, even where they are escaped or
// encoded.
//
// What to look for is listed: each secret as it is, as encoders of JSON escape
// it, and in hexadecimal and base64. An automaton finds all spellings in one
// pass. It runs over the text itself, and over views of it, which undo one kind
// of escapes each: those of JSON and Go, of URLs, or of HTML.
package redact

import "sync"

const (
	// mask is written in place of a secret.
	mask = "[SECRET]"

	// shortBytes is the length below which a secret is part of other words by
	// accident. It is masked only as a whole token.
	shortBytes = 6

	// maxPooled is the size of a text from which its memory, which is up to 40
	// times as much, is not kept for the next one.
	maxPooled = 256 << 10
)

// A Secret is a text to mask.
type Secret struct {
	Text   string
	Number bool // it is a number, and not part of one with a fraction
}

// A Redactor masks a fixed set of secrets. It is safe for concurrent use.
type Redactor struct {
	automaton   automaton
	long        longPatterns
	maxSpelling int // length of the longest spelling that is found

	writers sync.Pool // of *Writer, for their memory
}

// New returns a Redactor for secrets. It ignores empty secrets and duplicates.
func New(secrets []Secret) *Redactor {
	r := &Redactor{
		automaton: automaton{states: make([]state, 1)},
		long:      longPatterns{map[int32][]int{}, map[longKey]bool{}},
	}
	r.writers.New = func() any { return r.Writer(nil) }
	r.addSecrets(secrets)
	r.automaton.linkStates()
	return r
}

// IsEmpty reports whether there is nothing to mask.
func (r *Redactor) IsEmpty() bool { return len(r.automaton.states) == 1 }

// Redact returns text with "[SECRET]" in place of each secret. It finds a
// secret as it is, escaped as in JSON (once or twice), in Go, in a URL or in
// HTML, and encoded in hexadecimal or in base64, at any place of a larger
// encoded text. Line ends may be "\n" or "\r\n". It masks matches that overlap
// together. It masks secrets of less than 6 bytes where they are not a part of
// a word, and in base64 or hexadecimal only on their own. Of base64 inside of a
// larger text, the characters that also say other bytes remain.
//
// As long as the text is JSON, a number with a secret becomes a string with the
// mask, so that it stays JSON.
//
// A mask that is already in text stays as it is, and what stands beside it
// without a gap is a part of its word: to redact a text twice is the same as
// once. If there is nothing to mask, Redact returns text itself.
func (r *Redactor) Redact(text string) string {
	if r.IsEmpty() || text == "" {
		return text
	}
	w := r.writers.Get().(*Writer)
	defer r.release(w, len(text))
	w.text = append(w.text[:0], text...)
	masks, _ := w.scan.find(w.text, 0, noRune, false)
	if len(masks) == 0 {
		return text
	}
	w.out.reset()
	w.safe, w.masked = 0, 0
	w.mask(w.text, masks, len(w.text))
	w.out.end()
	if string(w.out.text) == text {
		return text // only punctuation of JSON was found
	}
	return string(w.out.text)
}

// Finds reports whether text has something to mask. It may report true if that
// is only punctuation of JSON.
func (r *Redactor) Finds(text []byte) bool {
	w := r.writers.Get().(*Writer)
	defer r.release(w, len(text))
	masks, _ := w.scan.find(text, 0, noRune, false)
	return len(masks) > 0
}

// release gives the memory that a text of n bytes needed to the next text.
func (r *Redactor) release(w *Writer, n int) {
	if n <= maxPooled {
		r.writers.Put(w)
	}
}
