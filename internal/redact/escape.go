package redact

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"html"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An unescaper undoes one way to escape text. It takes everything else as it
// is, and so reads any mixture of escaped and plain characters.
type unescaper struct {
	lead    byte // with which an escape sequence begins
	longest int  // the length of the longest sequence
	// unit appends to dst the character of the sequence at the start of src. It
	// returns the length of the sequence, or 0 if it is not valid.
	unit func(dst, src []byte) ([]byte, int)
}

// maxEscape is the length of the longest sequence, a surrogate pair.
const maxEscape = len(`\ud83d\ude00`)

// unescapers have sequences that do not overlap: none contains the lead of
// another one.
var unescapers = [...]unescaper{
	{'\\', maxEscape, backslashUnit},
	{'%', len("%20"), percentUnit},
	{'&', maxEscape, entityUnit},
}

// backslashUnit decodes the escape sequences of JSON and of Go.
func backslashUnit(dst, src []byte) ([]byte, int) {
	if len(src) < 2 {
		return dst, 0
	}
	const letters, characters = `"\/'abfnrtv`, "\"\\/'\a\b\f\n\r\t\v"
	if i := strings.IndexByte(letters, src[1]); i >= 0 {
		return append(dst, characters[i]), 2
	}
	digits := hexDigits[src[1]]
	c, ok := parseHex(src[2:], digits)
	switch {
	case digits == 0 || !ok:
		return dst, 0
	case digits == 2:
		return append(dst, byte(c)), 4
	case utf16.IsSurrogate(c) && len(src) >= maxEscape && string(src[6:8]) == `\u`:
		low, _ := parseHex(src[8:], 4)
		if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), maxEscape
		}
	}
	return utf8.AppendRune(dst, c), 2 + digits
}

// hexDigits is how many digits follow "\x", "\u" and "\U".
var hexDigits = [256]int{'x': 2, 'u': 4, 'U': 8}

// percentUnit decodes the escape sequences of URLs.
func percentUnit(dst, src []byte) ([]byte, int) {
	if b, ok := parseHex(src[1:], 2); ok {
		return append(dst, byte(b)), 3
	}
	return dst, 0
}

// entityUnit decodes the character references of HTML.
func entityUnit(dst, src []byte) ([]byte, int) {
	for i, b := range src[1:min(len(src), maxEscape)] {
		switch {
		case b == ';':
			reference := string(src[:i+2])
			char := html.UnescapeString(reference)
			if char == reference {
				return dst, 0
			}
			return append(dst, char...), len(reference)
		case b == '#' && i == 0, b >= '0' && b <= '9', b|0x20 >= 'a' && b|0x20 <= 'z':
		default:
			return dst, 0
		}
	}
	return dst, 0
}

// parseHex returns the number that the first n bytes of src are.
func parseHex(src []byte, n int) (number rune, ok bool) {
	if len(src) < n {
		return 0, false
	}
	var b [4]byte
	_, err := hex.Decode(b[len(b)-n/2:], src[:n])
	return rune(binary.BigEndian.Uint32(b[:])), err == nil
}

// A view is a text that was read from another one, its source.
type view struct {
	text   []byte
	places []int // of each byte and of the end in the source, or empty if text is the source
}

// unescape makes v the text that u reads from src, or empty if that is src. If
// more text may follow, it stops where a sequence may be incomplete, and returns
// that place.
func (v *view) unescape(src []byte, u unescaper, open bool) (end int) {
	v.text, v.places = v.text[:0], v.places[:0]
	if bytes.IndexByte(src, u.lead) < 0 {
		return len(src)
	}
	differs := false
	for end < len(src) {
		n := 0
		if src[end] == u.lead {
			if open && len(src)-end < u.longest {
				differs = true
				break
			}
			v.text, n = u.unit(v.text, src[end:])
			differs = differs || n > 0
		}
		if n == 0 {
			v.text, n = append(v.text, src[end]), 1
		}
		for len(v.places) < len(v.text) {
			v.places = append(v.places, end)
		}
		end += n
	}
	v.places = append(v.places, end)
	if !differs {
		v.text, v.places = v.text[:0], v.places[:0]
	}
	return end
}

// sourceOf returns the part of the source that says a part of v.
func (v *view) sourceOf(from, to int) span {
	if len(v.places) == 0 {
		return span{from, to}
	}
	for v.places[to] == v.places[to-1] { // inside of a character
		to++
	}
	return span{v.places[from], v.places[to]}
}

// around returns the escape sequence that a place of the source is inside of,
// or the place itself.
func (v *view) around(at int) span {
	i, found := slices.BinarySearch(v.places, at)
	if found || i == 0 || i == len(v.places) {
		return span{at, at}
	}
	return span{v.places[i-1], v.places[i]}
}
