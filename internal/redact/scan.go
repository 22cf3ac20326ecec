package redact

import (
	"cmp"
	"slices"
)

// A scan looks for the secrets in one text. views[0] is the text itself, and
// each other view comes from the one before it. There are most views if escaped
// text has a part in base64 on several lines, which says escaped text.
type scan struct {
	r     *Redactor
	size  int // of the text
	after int // secrets that begin before it were found before
	views [escapeLayers + 3]view
	sums  textSums

	found  []span  // what is masked
	tokens []token // what is masked if it is next to a mask
	inside bitset  // the places inside of escape sequences

	// If more text may follow:
	safe      int // no secret that is not found yet begins before it
	undecided int // from here on, there may be the beginning of a character

	steps int // the bytes that were looked at, for tests
}

// find finds the secrets in a text that begin at or after a place. If it is
// open, more text may follow.
func (s *scan) find(text []byte, after int, open bool) {
	s.size, s.after = len(text), after
	s.found, s.tokens = s.found[:0], s.tokens[:0]
	s.inside.reset(len(text) + 1)
	s.safe, s.undecided = len(text), len(text)
	s.views[0].text = text
	s.searchView(0, escapeLayers, open, false)
	s.views[0].text = nil
}

// searchView finds the secrets in the view at depth, and in what it decodes to
// in up to so many layers. binary is set for bytes that were base64 or
// hexadecimal: there, tokens are not secrets, and nothing is decoded again.
func (s *scan) searchView(depth, layers int, open, binary bool) {
	s.views[depth].binary = binary
	s.searchText(depth, open)
	if layers == 0 {
		return
	}
	v, next := &s.views[depth], &s.views[depth+1]
	for _, u := range s.r.unescapers {
		differs, end := next.setUnescaped(v.text, u, open)
		if end < len(v.text) {
			s.hold(depth, end)
			s.holdCut(depth, end-incompleteRune(v.text[:end]))
		}
		if !differs {
			continue
		}
		if !binary { // a mask in encoded text cuts its bytes, too
			for _, j := range next.jumps {
				s.markEscape(depth, j.source)
			}
		}
		s.searchView(depth+1, layers-1, open, binary)
	}
	if !binary && s.r.leastCertain > 0 {
		s.searchEncoded(depth, base64Text, open)
		s.searchEncoded(depth, hexText, open)
	}
}

// searchText finds the secrets in the view at depth, as it is.
func (s *scan) searchText(depth int, open bool) {
	v, r := &s.views[depth], s.r
	s.steps += len(v.text)
	summed := false
	cut := len(v.text) // the beginning of a character, whose end may follow
	if open {
		cut -= incompleteRune(v.text)
	}
	if cut < len(v.text) {
		s.holdCut(depth, cut)
		s.undecided = min(s.undecided, s.rawSpan(depth, span{cut, cut + 1}).from)
	}
	partial := r.automaton.eachMatch(v.text, func(at int32, from, to int) bool {
		kind := r.automaton.states[at].kind
		if kind&headKind != 0 {
			if !summed {
				s.sums.set(v.text)
				summed = true
			}
			s.searchLong(depth, r.long[at], from, open)
		}
		if kind&certainKind != 0 {
			s.addFound(depth, span{from, to})
			return true
		}
		if v.binary || kind&(tokenKind|numberKind) == 0 {
			return false
		}
		e := edgesOf(v.text, from, to, kind&tokenKind == 0, open)
		switch {
		case e.unknown || to > cut:
			s.hold(depth, from)
		case e.left != none || e.right != none:
			s.addToken(depth, span{from, to}, e)
		default:
			s.addFound(depth, span{from, to})
			return true
		}
		return false
	})
	if open && partial < len(v.text) {
		s.hold(depth, partial)
	}
}

// searchLong looks for the patterns whose head stands at a place of the view at
// depth.
func (s *scan) searchLong(depth int, patterns []longPattern, at int, open bool) {
	s.steps += len(patterns)
	for i := range patterns {
		switch p := &patterns[i]; {
		case p.matches(&s.sums, at):
			s.addFound(depth, span{at, at + p.length})
		case open && p.mayContinue(&s.sums, at):
			s.hold(depth, at)
		}
	}
}

// searchEncoded finds the secrets in what the view at depth encodes. A secret
// may begin inside a byte of the encoded text, in as many ways as the encoding
// has phases.
func (s *scan) searchEncoded(depth int, e *encoding, open bool) {
	v, joined, decoded := &s.views[depth], &s.views[depth+1], &s.views[depth+2]
	for run := range e.eachRun(v.text, e.encodedLen(s.r.leastCertain), open) {
		if depth > 0 && !run.open {
			if from := v.sourceOf(run.span); from.to-from.from == run.to-run.from {
				continue // without escapes: it was searched in the view before
			}
		}
		joined.setJoined(v.text, run)
		for skip := range min(e.phases, len(joined.text)) {
			rest, n := decoded.setDecoded(joined.text, skip, e)
			if run.open && n > 0 && s.r.mayBegin(rest, n) {
				at := skip + len(decoded.text)*8/e.bits
				s.hold(depth+1, at)
			}
			s.searchView(depth+2, 1, run.open, true)
		}
	}
}

// rawSpan returns the part of the text itself that encodes a part of the view
// at depth.
func (s *scan) rawSpan(depth int, at span) span {
	for ; depth > 0; depth-- {
		at = s.views[depth].sourceOf(at)
	}
	return at
}

// hold notes that a secret may begin at a place of the view at depth. The
// characters that it cuts are masked with it.
func (s *scan) hold(depth, at int) {
	at = s.views[depth].wholeRunes(span{at, at + 1}).from
	s.holdFrom(s.rawSpan(depth, span{at, at + 1}).from)
}

// holdCut notes that a secret may begin inside the character that begins at a
// place of the view at depth, and whose end may follow.
func (s *scan) holdCut(depth, at int) {
	if !s.views[depth].binary {
		s.hold(depth, at)
	}
}

// holdFrom is hold for a place of the text itself.
func (s *scan) holdFrom(at int) { s.safe = min(s.safe, at) }

// holdUndecided notes that a part of the text that is masked may end inside a
// character whose end may follow.
func (s *scan) holdUndecided(at span) {
	if at.to > s.undecided {
		s.holdFrom(at.from)
	}
}

// addFound adds a part of the view at depth, as the part of the text itself.
func (s *scan) addFound(depth int, at span) {
	raw := s.rawSpan(depth, at)
	if raw.from < s.after || raw.to-raw.from > s.r.maxSpelling {
		return
	}
	at = s.wholeRunes(depth, at)
	if n := len(s.found); n > 0 { // repetitive secrets are found at every place
		if last := &s.found[n-1]; last.from <= at.from && at.from < last.to {
			last.to = max(last.to, at.to)
			return
		}
	}
	s.found = append(s.found, at)
}

// addToken adds a part of the view at depth that has edges.
func (s *scan) addToken(depth int, at span, e edges) {
	if s.rawSpan(depth, at).from < s.after {
		return
	}
	t := token{s.wholeRunes(depth, at), none, none}
	if e.left != none {
		t.left = s.rawSpan(depth, span{e.left, e.left + 1}).to - 1
	}
	if e.right != none {
		t.right = s.rawSpan(depth, span{e.right, e.right + 1}).from
	}
	s.tokens = append(s.tokens, t)
}

// wholeRunes returns the part of the text itself that encodes a part of the
// view at depth and the characters that it cuts: half a character would end a
// word that the character is a part of.
func (s *scan) wholeRunes(depth int, at span) span {
	at = s.rawSpan(depth, s.views[depth].wholeRunes(at))
	return span{max(at.from, s.after), at.to}
}

// markEscape notes where the inside of an escape sequence is, which is a part
// of the view at depth.
func (s *scan) markEscape(depth int, at span) {
	if at.to-at.from == 1 && depth == 0 {
		return
	}
	at = s.rawSpan(depth, at)
	for i := at.from + 1; i < at.to; i++ {
		s.inside.set(i)
	}
}

// wholeStart returns the start of the escape sequences that at is inside of.
func (s *scan) wholeStart(at int) int {
	for s.inside.has(at) {
		at--
	}
	return at
}

// wholeEnd is wholeStart for the end.
func (s *scan) wholeEnd(at int) int {
	for s.inside.has(at) {
		at++
	}
	return at
}

// masks returns the parts of the text to mask, in their order, and the place
// before which there are no others. The text before masked is masked already.
//
// A mask covers escape sequences whole: half of one would not be valid JSON,
// and the other half could make another text with what follows. The last mask
// may have ended inside a sequence whose end has come since. It goes on there.
func (s *scan) masks(masked int, open bool) (all []span, safe int) {
	for i, f := range s.found {
		s.holdUndecided(f)
		s.found[i] = span{max(s.wholeStart(f.from), s.after), s.wholeEnd(f.to)}
	}
	if masked > s.after && s.inside.has(masked) {
		s.found = append(s.found, span{masked - 1, s.wholeEnd(masked)})
	}
	s.found = mergeSpans(s.found)
	s.maskTokens(masked, open)
	safe = s.wholeStart(s.safe)
	if open {
		safe = max(safe, s.size-s.r.maxSpelling)
	}
	return s.found, safe
}

// mergeSpans sorts spans and joins those that overlap.
func mergeSpans(spans []span) []span {
	if len(spans) == 0 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	merged := spans[:1]
	for _, next := range spans[1:] {
		if last := &merged[len(merged)-1]; next.from < last.to {
			last.to = max(last.to, next.to)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

// A bitset is a set of places in a text.
type bitset []uint64

func (b *bitset) reset(n int) {
	words := (n + 63) / 64
	*b = slices.Grow((*b)[:0], words)[:words]
	clear(*b)
}

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
