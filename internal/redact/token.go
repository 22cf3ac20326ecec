package redact

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A token is a place where a short secret is a part of a word. It is masked
// only if what it continues in is masked: a mask ends the word.
type token struct {
	span
	left, right int // places that must be masked, or none
}

// none is not a place.
const none = -1

// edges has the places in which text[from:to] continues on either side: those
// of word characters. The right one is unknown if it depends on text that may
// follow.
type edges struct {
	left, right int // or none
	unknown     bool
}

// edgesOf returns the edges of text[from:to]. A number goes on behind a decimal
// point as well.
func edgesOf(text []byte, from, to int, number, open bool) edges {
	e := edges{left: none, right: none}
	first, _ := utf8.DecodeRune(text[from:to])
	last, _ := utf8.DecodeLastRune(text[from:to])
	before, n := utf8.DecodeLastRune(text[:from])
	after, m := utf8.DecodeRune(text[to:])
	if isWord(first) && isWord(before) {
		e.left = from - 1
	}
	if isWord(last) && isWord(after) {
		e.right = to
	}
	if number && before == '.' {
		if digit, _ := utf8.DecodeLastRune(text[:from-n]); unicode.IsDigit(digit) {
			e.left = from - n - 1
		}
	}
	if number && after == '.' {
		if digit, _ := utf8.DecodeRune(text[to+m:]); unicode.IsDigit(digit) {
			e.right = to + m
		}
	}
	e.unknown = open && (!utf8.FullRune(text[to:]) || number && after == '.' && !utf8.FullRune(text[to+m:]))
	return e
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// maxTokenRounds bounds how often tokens are looked at again because others
// next to them were masked. Two rounds are usual.
const maxTokenRounds = 8

// maskTokens adds those tokens to what was found that are next to masks. A
// token that is masked so is a mask for the next one.
func (s *scan) maskTokens(masked int, open bool) {
	slices.SortFunc(s.tokens, func(a, b token) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for range maxTokenRounds {
		n := len(s.tokens)
		slices.Reverse(s.tokens) // from right to left
		s.maskTokensOnce(masked)
		slices.Reverse(s.tokens)
		s.maskTokensOnce(masked)
		if len(s.tokens) == n {
			break
		}
	}
	if !open {
		return
	}
	for _, t := range slices.Backward(s.tokens) {
		if t.right >= s.wholeStart(s.safe) && s.isMasked(t.left, masked) {
			s.holdFrom(t.from)
		}
	}
}

// maskTokensOnce masks the tokens that are next to masks, in their order.
func (s *scan) maskTokensOnce(masked int) {
	var last span // that was masked here
	found, rest := s.found, s.tokens[:0]
	for _, t := range s.tokens {
		left := s.isMasked(t.left, masked) || last.from <= t.left && t.left < last.to
		right := s.isMasked(t.right, masked) || last.from <= t.right && t.right < last.to
		if !left || !right {
			rest = append(rest, t)
			continue
		}
		s.holdUndecided(t.span)
		last = span{max(s.wholeStart(t.from), s.after), s.wholeEnd(t.to)}
		found = append(found, last)
	}
	s.tokens, s.found = rest, mergeSpans(found)
}

// isMasked reports whether a place is masked, by what was found or before.
// None counts as masked.
func (s *scan) isMasked(at, masked int) bool {
	i, covered := slices.BinarySearchFunc(s.found, at, func(f span, at int) int { return cmp.Compare(f.from, at) })
	return at == none || at < masked || covered || i > 0 && s.found[i-1].to > at
}
