// Package redact masks secret values in text, even where they are escaped or
// encoded.
//
// An automaton finds the spellings of all secrets in one pass. It runs over the
// text itself, and over views of it: the text unescaped in each known way, once
// and twice, and what its parts say if they are base64 or hexadecimal. A view
// knows where its bytes come from, so that the mask goes into the text itself.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	mask = "[SECRET]"

	// shortBytes is the length below which a secret is part of other words by
	// accident. It is masked only as a whole token.
	shortBytes = 6

	// escapeLayers is the number of ways to escape that are undone one after
	// the other: JSON inside a string of JSON is usual.
	escapeLayers = 2
)

// A Redactor masks a fixed set of secrets. It is safe for concurrent use.
type Redactor struct {
	automaton  automaton
	unescapers []unescaper
	longBytes  int       // length of the shortest pattern that is not a token, or 0
	searches   sync.Pool // of *search, for their memory
}

// A Secret is a text to mask.
type Secret struct {
	Text   string
	Number bool // the text is a number
}

// New returns a Redactor for secrets. It ignores empty secrets and duplicates.
func New(secrets []Secret) *Redactor {
	r := &Redactor{unescapers: []unescaper{unescapeBackslash, unescapePercent, unescapeHTML}}
	r.searches.New = func() any { return new(search) }
	hasSpace := false
	for _, s := range secrets {
		secret := s.Text
		short := len(secret) < shortBytes
		for _, pattern := range spellings(secret, short) {
			r.automaton.addPattern(pattern, short)
			if !short && (r.longBytes == 0 || len(pattern) < r.longBytes) {
				r.longBytes = len(pattern)
			}
		}
		hasSpace = hasSpace || strings.Contains(secret, " ")
	}
	if hasSpace { // "+" stands only for a space
		r.unescapers = append(r.unescapers, unescapeQuery)
	}
	r.automaton.linkStates()
	return r
}

// Redact returns text with "[SECRET]" in place of each secret. It finds a
// secret as it is, escaped as in JSON (once or twice), in Go, in a URL or in
// HTML, and encoded in hexadecimal or in base64, at any place of a larger
// encoded text. Line ends may be "\n" or "\r\n". It masks matches that overlap
// together. It masks secrets of less than 6 bytes where no letter, digit or
// underscore is next to them, and in base64 or hexadecimal only on their own.
//
// A mask that is already in text stays as it is: to redact a text twice is the
// same as once. If there is nothing to mask, Redact returns text itself.
func (r *Redactor) Redact(text string) string {
	if len(r.automaton.states) <= 1 {
		return text
	}
	s := r.searches.Get().(*search)
	defer r.searches.Put(s)
	// A mask ends the token after it, so that there can be more to mask than
	// before.
	for {
		s.found = s.found[:0]
		s.views[0].text = append(s.views[0].text[:0], text...)
		r.searchView(s, 0, escapeLayers, false)
		if len(s.found) == 0 {
			return text
		}
		masked := s.maskFound(text)
		if masked == text {
			return text
		}
		text = masked
	}
}

// A search is one pass over a text. views[0] is the text itself, and each other
// view comes from the one before it. The last one is in use if an escaped text
// has a part in base64, which says an escaped text.
type search struct {
	views [escapeLayers + 2]view
	found []span // in the text itself
}

// searchView finds the secrets in the view at depth, and in what it decodes to
// in up to so many layers. binary is set for bytes that were base64 or
// hexadecimal: there, tokens are not secrets, and nothing is decoded again.
func (r *Redactor) searchView(s *search, depth, layers int, binary bool) {
	v := &s.views[depth]
	r.automaton.eachMatch(v.text, func(from, to int, token bool) bool {
		if token && (binary || !isToken(v.text, from, to)) {
			return false
		}
		s.addFound(depth, span{from, to})
		return true
	})
	if layers == 0 {
		return
	}
	next := &s.views[depth+1]
	for _, u := range r.unescapers {
		if next.setUnescaped(v.text, u) {
			r.searchView(s, depth+1, layers-1, binary)
		}
	}
	if !binary && r.longBytes > 0 {
		r.searchEncoded(s, depth, base64Text)
		r.searchEncoded(s, depth, hexText)
	}
}

// searchEncoded finds the secrets in what the view at depth says in an
// encoding. A secret may begin inside a byte of the encoded text, in as many
// ways as the encoding has phases.
func (r *Redactor) searchEncoded(s *search, depth int, e *encoding) {
	v := &s.views[depth]
	for run := range e.eachRun(v.text, e.encodedLen(r.longBytes)) {
		if depth > 0 {
			if from := v.sourceOf(run); from.to-from.from == run.to-run.from {
				continue // without escapes: it was searched in the view before
			}
		}
		for skip := range e.phases {
			s.views[depth+1].setDecoded(v.text[:run.to], run.from+skip, e)
			r.searchView(s, depth+1, 1, true)
		}
	}
}

// addFound adds a part of the view at depth, as the part of the text itself.
func (s *search) addFound(depth int, at span) {
	for ; depth > 0; depth-- {
		at = s.views[depth].sourceOf(at)
	}
	s.found = append(s.found, at)
}

// maskFound returns text with a mask for each group of overlapping spans that
// were found. The masks that are there already take part: a span inside one
// changes nothing, and a span that overlaps with one makes it part of its
// group.
func (s *search) maskFound(text string) string {
	for i := range s.found {
		s.found[i].from = escapeStart(text, s.found[i].from)
	}
	for from := 0; ; {
		i := strings.Index(text[from:], mask)
		if i < 0 {
			break
		}
		from += i + len(mask)
		s.found = append(s.found, span{from - len(mask), from})
	}
	slices.SortFunc(s.found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s.found); {
		group := s.found[i]
		for i++; i < len(s.found) && s.found[i].from < group.to; i++ {
			group.to = max(group.to, s.found[i].to)
		}
		b.WriteString(text[copied:group.from])
		b.WriteString(mask)
		copied = group.to
	}
	b.WriteString(text[copied:])
	return b.String()
}

// isToken reports whether no letter, digit or underscore is next to
// text[from:to].
func isToken(text []byte, from, to int) bool {
	before, _ := utf8.DecodeLastRune(text[:from])
	after, _ := utf8.DecodeRune(text[to:])
	return !isWord(before) && !isWord(after)
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }
