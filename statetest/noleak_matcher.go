package statetest

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

const (
	tokenBytes = 6  // a shorter value counts only as a whole token
	longBytes  = 16 // of a value of this length, a piece counts, too
	pieceBytes = 12
	pieceKinds = 4 // a piece with fewer different bytes, such as a line of dashes, tells nothing
)

// A pattern is one spelling of a value, folded.
type pattern struct {
	text   []byte
	value  int // its index
	least  int // how many consecutive bytes of the text count
	token  bool
	number bool
	gaps   int // in the value, of a squeezed text
}

// A matcher finds patterns in a text, and pieces of long ones. It looks up each
// four bytes of the text, so that the cost hardly depends on how many patterns
// there are.
type matcher struct {
	patterns []pattern
	anchors  map[uint32][]anchor
	filter   [1 << 10]uint64 // bits for the hashes of the anchors
	short    []int           // the patterns of less than four bytes
}

// An anchor is a place in a pattern.
type anchor struct{ pattern, at int }

// maxAnchors bounds the places of the same four bytes, as in a value that
// repeats itself.
const maxAnchors = 256

func hashAnchor(key uint32) uint32 { return key * 0x9E3779B1 >> 16 }

func (m *matcher) add(p pattern) {
	for _, o := range m.patterns {
		if o.value == p.value && o.token == p.token && bytes.Equal(o.text, p.text) {
			return
		}
	}
	k := len(m.patterns)
	m.patterns = append(m.patterns, p)
	if len(p.text) < 4 {
		m.short = append(m.short, k)
		return
	}
	if m.anchors == nil {
		m.anchors = map[uint32][]anchor{}
	}
	// Each run of p.least bytes contains four bytes at one of these places.
	for at := 0; at+4 <= len(p.text); at += p.least - 3 {
		key := binary.LittleEndian.Uint32(p.text[at:])
		if len(m.anchors[key]) < maxAnchors {
			m.anchors[key] = append(m.anchors[key], anchor{k, at})
			h := hashAnchor(key)
			m.filter[h>>6] |= 1 << (h & 63)
		}
	}
}

// each calls yield for what a folded text has of the patterns.
func (m *matcher) each(text []byte, yield func(p *pattern, from, to int)) {
	for _, k := range m.short {
		p := &m.patterns[k]
		for from := 0; ; {
			i := bytes.Index(text[from:], p.text)
			if i < 0 {
				break
			}
			yield(p, from+i, from+i+len(p.text))
			from += i + 1
		}
	}
	if len(m.anchors) == 0 {
		return
	}
	ends := make([]int, len(m.patterns)) // of what was found last
	for i := 0; i+4 <= len(text); i++ {
		key := binary.LittleEndian.Uint32(text[i:])
		h := hashAnchor(key)
		if m.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, a := range m.anchors[key] {
			p := &m.patterns[a.pattern]
			if i+4 <= ends[a.pattern] {
				continue
			}
			from, to := i, i+4
			for at := a.at; at > 0 && from > 0 && text[from-1] == p.text[at-1]; at-- {
				from--
			}
			for at := a.at + 4; at < len(p.text) && to < len(text) && text[to] == p.text[at]; at++ {
				to++
			}
			if n := to - from; n >= p.least && (n == len(p.text) || differentBytes(text[from:to]) >= pieceKinds) {
				yield(p, from, to)
				ends[a.pattern] = to
			}
		}
	}
}

func differentBytes(text []byte) int {
	var seen [256]bool
	n := 0
	for _, c := range text {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// fold returns text in lower case, with spaces for the + that stand for them in
// URLs. Every byte stays at its place.
func fold(text []byte) []byte {
	folded := make([]byte, len(text))
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			switch {
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
			case c == '+':
				c = ' '
			}
			folded[i] = c
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if low := unicode.ToLower(r); n > 1 && low != r && utf8.RuneLen(low) == n {
			utf8.EncodeRune(folded[i:], low)
		} else {
			copy(folded[i:], text[i:i+n])
		}
		i += n
	}
	return folded
}

// isToken reports whether a part of a text is no part of a word.
func isToken(text []byte, from, to int) bool {
	return (from == 0 || !isWordByte(text[from-1])) && (to == len(text) || !isWordByte(text[to]))
}

// isNumber reports whether a part of a text is no part of a longer number, or
// of a word if it has to be a token. Zeros at the end of a fraction make no
// other number.
func isNumber(text []byte, from, to int, token bool) bool {
	if bytes.IndexByte(text[from:to], '.') >= 0 {
		for to < len(text) && text[to] == '0' {
			to++
		}
	}
	if token {
		return isToken(text, from, to)
	}
	return (from == 0 || !isDigit(text[from-1])) && (to == len(text) || !isDigit(text[to]))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isWordByte(c byte) bool { return isDigit(c) || isLetter(c) || c >= utf8.RuneSelf }
