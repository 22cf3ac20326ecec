package statetest

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"unicode/utf16"
)

// A finder looks for values in texts, also if they are encoded. It decodes the
// text in all ways that apply, one after the other, and looks at each result.
// It shares no code with package internal/redact, which looks for the encoded
// values instead, so that each tests the other.
type finder struct {
	values   []leaf
	plain    matcher // in the decoded texts
	squeezed matcher // in these without what is no letter or digit
}

// A find is a value, or a piece of one, in a text.
type find struct {
	from, to int // in the text
	value    int
	bytes    int    // of the value
	whole    bool   // it is all of the value
	spread   bool   // with something between its parts
	how      string // how it is encoded: "base64 in a JSON string"
}

// The ranks of finds, by how plain it is that they are no accident.
const (
	pieceFind = iota
	spreadFind
	wholeFind
)

func (f find) rank() int {
	switch {
	case f.whole && !f.spread:
		return wholeFind
	case f.whole:
		return spreadFind
	}
	return pieceFind
}

// maxDecoded bounds how deep encodings are nested, and maxUnescaped how often
// what is escaped is escaped again. One more pass than there are levels finds
// that nothing is left.
const (
	maxDecoded   = 7 // base64 of gzip is two
	maxUnescaped = 7
)

func newFinder(values []leaf) *finder {
	f := &finder{values: values}
	for i, v := range values {
		text := []byte(v.text)
		plain := unescapedWholly(text)
		f.add(i, text)
		f.add(i, plain)
		for _, t := range [][]byte{text, plain} {
			if t, from, _ := squeeze(fold(t)); len(t) >= tokenBytes {
				p := newPattern(i, v, t)
				p.gaps = gaps(from)
				f.squeezed.add(p)
			}
		}
		if needsWideUnits(v.text) {
			units := utf16.Encode([]rune(v.text))
			f.add(i, utf16Bytes(units, binary.LittleEndian))
			f.add(i, utf16Bytes(units, binary.BigEndian))
		}
	}
	return f
}

func newPattern(i int, v leaf, folded []byte) pattern {
	p := pattern{text: folded, value: i, least: len(folded), token: len(folded) < tokenBytes, number: v.number}
	if len(folded) >= longBytes {
		p.least = pieceBytes
	}
	return p
}

func (f *finder) add(i int, text []byte) {
	if len(text) > 0 {
		f.plain.add(newPattern(i, f.values[i], fold(text)))
	}
}

// unescapedWholly returns text without anything that looks like an escape.
func unescapedWholly(text []byte) []byte {
	v := &view{text: text}
	for range maxUnescaped {
		next := unescape(v)
		if next == nil {
			break
		}
		v = next
	}
	return v.text
}

// find returns what a text has of the values, in the order of how simply it is
// encoded. It returns false if the text decodes to so much that it was searched
// only in part.
func (f *finder) find(text string) (finds []find, complete bool) {
	s := search{finder: f, seen: map[uint64]bool{}, noted: map[findPlace]bool{}, room: 256*len(text) + 64<<20}
	s.push(&view{text: []byte(text)})
	for len(s.queue) > 0 && s.room >= 0 {
		v := s.queue[0]
		s.queue = s.queue[1:]
		s.look(v)
		s.decode(v)
	}
	return s.finds, s.room >= 0
}

// search is one search in a text.
type search struct {
	*finder
	queue []*view
	seen  map[uint64]bool // the hashes of the texts of the views
	room  int             // for bytes of views
	finds []find
	noted map[findPlace]bool
}

// A findPlace is where a value was found, and how plainly.
type findPlace struct{ value, from, to, rank int }

var viewSeed = maphash.MakeSeed()

// push adds a view to those that are searched, unless one with the same text
// was. v may be nil.
func (s *search) push(v *view) {
	if v == nil || len(v.text) == 0 {
		return
	}
	sum := maphash.Bytes(viewSeed, v.text)
	if !s.seen[sum] {
		s.seen[sum] = true
		s.room -= len(v.text)
		s.queue = append(s.queue, v)
	}
}

// look adds what is found in a view.
func (s *search) look(v *view) {
	folded := fold(v.text)
	s.plain.each(folded, func(p *pattern, from, to int) {
		switch {
		case p.token && !v.showsTokens(from, to):
		case v.kind == kindJoined && to-from < pieceBytes && gaps(v.from[from:to]) > (to-from)/3:
		case p.number && !isNumber(folded, from, to, p.token):
		case !p.number && p.token && !isToken(folded, from, to):
		default:
			s.note(v, p, from, to, false)
		}
	})
	if v.joined {
		return // its parent was squeezed
	}
	text, from, to := squeeze(folded)
	s.squeezed.each(text, func(p *pattern, a, b int) {
		if p.number && !isNumber(text, a, b, false) || b-a < pieceBytes && gaps(from[a:b]) > p.gaps+(b-a)/3 {
			return
		}
		s.note(v, p, int(from[a]), int(to[b-1]), true)
	})
}

// gaps returns how often places do not follow each other. A short value with
// many of them is an accident: a list of numbers has many digits.
func gaps(places []int32) int {
	n := 0
	for i := 1; i < len(places); i++ {
		if places[i] != places[i-1]+1 {
			n++
		}
	}
	return n
}

// note adds a find. It was found before if it is at the same place in the text.
func (s *search) note(v *view, p *pattern, from, to int, squeezed bool) {
	found := find{value: p.value, spread: squeezed, bytes: min(to-from, len(s.values[p.value].text)), whole: !squeezed && to-from == len(p.text)}
	if squeezed {
		kept, _, _ := squeeze(v.text[from:to])
		found.bytes, found.whole = len(kept), len(kept) == len(p.text)
	}
	found.from, found.to = v.place(from, to)
	for rank := found.rank(); rank <= wholeFind; rank++ {
		if s.noted[findPlace{found.value, found.from, found.to, rank}] {
			return
		}
	}
	s.noted[findPlace{found.value, found.from, found.to, found.rank()}] = true
	found.how = v.describe(from, to, s.values[p.value].text, squeezed && found.whole)
	s.finds = append(s.finds, found)
}

// decode adds the views that the decoders make of one.
func (s *search) decode(v *view) {
	if v.unescaped < maxUnescaped {
		s.push(unescape(v))
	}
	s.push(joinLines(v))
	if v.decoded == maxDecoded {
		return
	}
	least := 8 // digits for 6 bytes: shorter values are tokens
	if s.hasTokens() {
		least = 6
	}
	for k := range 4 {
		s.push(decodeBase64(v, k, least))
	}
	wide := bytes.ContainsAny(v.text, highBytes)
	for k := range 2 {
		s.push(decodeHex(v, k))
		if wide {
			s.push(decodeUTF16(v, k, binary.LittleEndian))
			s.push(decodeUTF16(v, k, binary.BigEndian))
		}
	}
	s.push(decodeNumbers(v))
	if bytes.IndexByte(v.text, 0x78) >= 0 || bytes.IndexByte(v.text, 0x1f) >= 0 {
		inflate(v, s.push, func() bool { return s.room >= 0 })
	}
}

func (s *search) hasTokens() bool {
	for i := range s.plain.patterns {
		if s.plain.patterns[i].token {
			return true
		}
	}
	return false
}

// needsWideUnits reports whether UTF-16 of text has code units that
// decodeUTF16 does not take for text.
func needsWideUnits(text string) bool {
	for _, r := range text {
		if r > maxNarrow {
			return true
		}
	}
	return false
}

func utf16Bytes(units []uint16, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, u := range units {
		b = order.AppendUint16(b, u)
	}
	return b
}
