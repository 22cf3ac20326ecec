// Package redact masks secret values in text, even where they are escaped or
// encoded.
//
// An automaton finds the spellings of all secrets in one pass. It runs over the
// text itself, and over views of it: the text unescaped in each known way, once
// and twice, and what its parts say if they are base64 or hexadecimal. A view
// knows where its bytes come from, so that the mask goes into the text itself.
//
// A stream searches a text in chunks, a scan one of them. Every decision
// depends on a bounded part of the text, so that chunks make no difference.
package redact

import (
	"slices"
	"sync"
)

const (
	// shortBytes is the length below which a secret is part of other words by
	// accident. It is masked only as a whole token.
	shortBytes = 6

	// escapeLayers is the number of ways to escape that are undone one after
	// the other: JSON inside a string of JSON is usual.
	escapeLayers = 2

	// maxPooled is the size from which memory is not kept for the next text.
	maxPooled = 1 << 20
)

// A Secret is a text to mask.
type Secret struct {
	Text   string
	Number bool // it is a number, and not part of one with a fraction
}

// A Redactor masks a fixed set of secrets. It is safe for concurrent use.
type Redactor struct {
	automaton  automaton
	long       map[int32][]longPattern // by the state of their head
	unescapers []unescaper

	leastCertain int // length of the shortest pattern that is not a token, or 0
	maxSpelling  int // length of the longest spelling that is found

	firsts [256]bool // the bytes with which a pattern or an escape sequence may begin

	streams sync.Pool // of *stream, for their memory
}

// New returns a Redactor for secrets. It ignores empty secrets and duplicates.
func New(secrets []Secret) *Redactor {
	r := &Redactor{
		long:       map[int32][]longPattern{},
		unescapers: []unescaper{unescapeBackslash, unescapePercent, unescapeHTML},
	}
	r.streams.New = func() any { return new(stream) }
	r.addSecrets(secrets)
	r.automaton.linkStates()
	r.setFirsts()
	return r
}

// Redact returns text with "[SECRET]" in place of each secret. It finds a
// secret as it is, escaped as in JSON (once or twice), in Go, in a URL or in
// HTML, and encoded in hexadecimal or in base64, at any place of a larger
// encoded text and on several lines. Line ends may be "\n" or "\r\n". It masks
// matches that overlap together. It masks secrets of less than 6 bytes where
// they are not a part of a word, and in base64 or hexadecimal only on their
// own. A character that a secret cuts, as one that is not UTF-8 may, is masked
// whole.
//
// As long as the text is JSON, a number with a secret becomes a string with the
// mask, so that it stays JSON.
//
// A mask that is already in text stays as it is: to redact a text twice is the
// same as once, unless a mask cuts an escape sequence that is encoded. Then the
// second pass may mask what is next to it. If there is nothing to mask, Redact
// returns text itself.
func (r *Redactor) Redact(text string) string {
	if r.IsEmpty() || text == "" {
		return text
	}
	s := r.streams.Get().(*stream)
	s.reset(r, text)
	from := 0
	for len(text)-from > chunkBytes {
		s.write(text[from : from+chunkBytes])
		from += chunkBytes
	}
	s.add(text[from:])
	s.end()
	if s.out.source == "" && string(s.out.dst) != text {
		text = string(s.out.dst)
	}
	s.release()
	return text
}

// Finds reports whether text has something to mask. It may report true if that
// is only the mask that is there already.
func (r *Redactor) Finds(text []byte) bool {
	s := r.streams.Get().(*stream)
	defer s.release()
	s.scan.r = r
	s.scan.find(text, 0, false)
	masks, _ := s.scan.masks(0, false)
	return len(masks) > 0
}

// setFirsts notes the bytes with which a pattern may begin, as it is or escaped.
func (r *Redactor) setFirsts() {
	for b, state := range r.automaton.first {
		r.firsts[b] = state != 0
	}
	for _, u := range r.unescapers {
		for i := range len(u.leads) {
			r.firsts[u.leads[i]] = true
		}
	}
}

// mayBegin reports whether a pattern may begin, as it is or escaped, with a byte
// whose first n bits are given.
func (r *Redactor) mayBegin(bits byte, n int) bool {
	from := int(bits) << (8 - n)
	return slices.Contains(r.firsts[from:from+1<<(8-n)], true)
}

// maxHeld is the number of bytes that a Writer holds back at most.
// That is 40 × the longest secret + 256.
func (r *Redactor) maxHeld() int { return r.maxSpelling + r.maxSpelling/4 + 2*len(mask) }

// IsEmpty reports whether there is nothing to mask.
func (r *Redactor) IsEmpty() bool { return len(r.automaton.states) <= 1 }

// Size returns about how many bytes r takes.
func (r *Redactor) Size() int {
	size := 10<<10 + cap(r.automaton.states)*24
	for _, patterns := range r.long {
		for _, p := range patterns {
			size += 64 + 8*cap(p.sums)
		}
	}
	return size
}

// release gives the memory of s to the next text.
func (s *stream) release() {
	if cap(s.text) <= maxPooled && cap(s.out.dst) <= maxPooled {
		s.scan.r.streams.Put(s)
	}
}
