package redact

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A span is the part of a text from one offset up to another.
type span struct{ from, to int }

// A scan looks for the secrets in one text, piece by piece. What stands between
// two masks is a piece: a mask that is in the text already is never a part of a
// secret.
type scan struct {
	r     *Redactor
	after int    // secrets that begin before it were found before
	found []span // what is to be masked
	safe  int    // no secret that is not found yet begins before it

	begin       int                       // where the piece begins in the text
	left, right rune                      // what stands beside it
	open        bool                      // more text may follow
	end         int                       // all escape sequences that begin before it are complete
	views       [1 + len(unescapers)]view // the piece itself, and what the unescapers read
	sums        textSums

	steps int // the bytes that were looked at, for tests
}

// maskRune stands for a mask beside a piece. A mask is like a digit: what is a
// part of a word or of a number stays one if its other part is masked. noRune
// stands for an end of the text.
const (
	maskRune = '0'
	noRune   = 0
)

// find returns the parts of a text to mask that begin at or after a place, in
// their order. left stands beside the text. If more text may follow, there are
// no others before safe.
func (s *scan) find(text []byte, after int, left rune, open bool) (masks []span, safe int) {
	s.after, s.found, s.safe = after, s.found[:0], len(text)
	s.begin, s.left, s.right, s.open = 0, left, maskRune, false
	for {
		n := bytes.Index(text[s.begin:], []byte(mask))
		if n < 0 {
			break
		}
		s.findIn(text[s.begin : s.begin+n])
		s.begin, s.left = s.begin+n+len(mask), maskRune
	}
	s.right, s.open = noRune, open
	s.findIn(text[s.begin:])
	safe = len(text)
	if open { // what is longer is not found
		safe = s.widen(span{max(s.safe, len(text)-s.r.maxSpelling-maxEscape), safe}).from
	}
	return mergeSpans(s.found), safe
}

// findIn finds the secrets in a piece. A mask covers escape sequences whole:
// half of one would not be valid JSON, and the other half could make another
// text with what follows.
func (s *scan) findIn(piece []byte) {
	first := len(s.found)
	s.views[0].text, s.end = piece, s.begin+len(piece)
	for i, u := range unescapers {
		s.end = min(s.end, s.begin+s.views[1+i].unescape(piece, u, s.open))
	}
	if s.open {
		s.safe = s.end
	}
	for i := range s.views {
		s.search(&s.views[i])
	}
	s.views[0].text = nil
	for i, f := range s.found[first:] {
		s.found[first+i] = s.widen(f)
	}
}

// search finds the secrets in a view of the piece.
func (s *scan) search(v *view) {
	s.steps += len(v.text)
	s.sums.set(v.text)
	partial := s.r.automaton.eachMatch(v.text, func(at int32, from, to int) bool {
		kind := s.r.automaton.states[at].kind
		if kind&headKind != 0 {
			s.searchLong(v, at, from)
		}
		if kind&(certainKind|tokenKind|numberKind) == 0 {
			return false
		}
		if kind&certainKind == 0 {
			part, known := s.isPart(v.text, from, to, kind&tokenKind == 0)
			if !known {
				s.hold(v, from)
			}
			if part || !known {
				return false
			}
		}
		s.add(v, from, to)
		return true
	})
	if s.open && partial < len(v.text) {
		s.hold(v, partial)
	}
}

// searchLong looks for the long patterns whose head stands at a place of v.
func (s *scan) searchLong(v *view, head int32, from int) {
	for _, n := range s.r.long.lengths[head] {
		s.steps++
		if from+n > len(v.text) {
			if s.open && s.r.long.mayGoOn(&s.sums, from) {
				s.hold(v, from)
			}
		} else if s.r.long.whole[longKey{n, s.sums.of(from, from+n)}] {
			s.add(v, from, from+n)
		}
	}
}

// hold notes that a secret may begin at a place of v.
func (s *scan) hold(v *view, from int) {
	s.safe = min(s.safe, s.begin+v.sourceOf(from, from+1).from)
}

// add adds a part of v to what was found.
func (s *scan) add(v *view, from, to int) {
	at := v.sourceOf(from, to)
	at = span{s.begin + at.from, s.begin + at.to}
	if at.from < s.after || at.to-at.from > s.r.maxSpelling {
		return
	}
	if at.to > s.end { // it may end inside an escape sequence
		s.safe = min(s.safe, at.from)
	}
	if n := len(s.found); n > 0 { // repetitive secrets are found at every place
		if last := &s.found[n-1]; last.from <= at.from && at.from < last.to {
			last.to = max(last.to, at.to)
			return
		}
	}
	s.found = append(s.found, at)
}

// widen returns a part of the text with the escape sequences that it cuts.
func (s *scan) widen(at span) span {
	for i := range s.views {
		at.from = s.begin + s.views[i].around(at.from-s.begin).from
		at.to = s.begin + s.views[i].around(at.to-s.begin).to
	}
	return at
}

// mergeSpans sorts spans and joins those that overlap.
func mergeSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	merged := spans[:0]
	for _, next := range spans {
		if n := len(merged); n > 0 && next.from < merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, next.to)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

// isPart reports whether a part of the text of a view is a part of a word. A
// number goes on behind a decimal point as well. It is not known if it depends
// on text that may follow.
func (s *scan) isPart(text []byte, from, to int, number bool) (part, known bool) {
	first, _ := utf8.DecodeRune(text[from:to])
	last, _ := utf8.DecodeLastRune(text[from:to])
	before, left := s.runeBefore(text, from)
	beyond, _ := s.runeBefore(text, left)
	after, right := s.runeAfter(text, to)
	behind, _ := s.runeAfter(text, right)
	part = isWord(first) && isWord(before) || isWord(last) && isWord(after) ||
		number && (before == '.' && isDigit(beyond) || after == '.' && isDigit(behind))
	known = !s.open || utf8.FullRune(text[to:]) && (!number || after != '.' || utf8.FullRune(text[right:]))
	return part, known
}

// runeBefore returns the character before a place of a text, and its place.
func (s *scan) runeBefore(text []byte, at int) (c rune, from int) {
	if at == 0 {
		return s.left, 0
	}
	c, n := utf8.DecodeLastRune(text[:at])
	return c, at - n
}

// runeAfter returns the character at a place of a text, and the place behind it.
func (s *scan) runeAfter(text []byte, at int) (c rune, to int) {
	if at == len(text) {
		return s.right, at
	}
	c, n := utf8.DecodeRune(text[at:])
	return c, at + n
}

// isWord reports whether a word may contain c. A byte that is not UTF-8 counts:
// it may be half of a letter whose other half is masked.
func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || isDigit(c) }

func isDigit(c rune) bool { return c == utf8.RuneError || unicode.IsDigit(c) }
