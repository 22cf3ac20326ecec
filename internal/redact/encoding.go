package redact

import "iter"

// A span is the part of a text from one offset up to another.
type span struct{ from, to int }

// An encoding writes bytes as characters of so many bits each.
type encoding struct {
	bits   int
	phases int       // the number of characters after which a byte begins with a character again
	values [256]int8 // of the characters, -1 for others
}

var (
	base64Text = newEncoding(6, 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_")
	hexText    = newEncoding(4, 2, "0123456789abcdef", "ABCDEF")
)

// newEncoding returns the encoding with the characters of alphabet for the
// values from 0 up. The characters in last stand for the last values as well.
func newEncoding(bits, phases int, alphabet, last string) *encoding {
	e := &encoding{bits: bits, phases: phases}
	for i := range e.values {
		e.values[i] = -1
	}
	for i := range len(alphabet) {
		e.values[alphabet[i]] = int8(i)
	}
	for i := range len(last) {
		e.values[last[i]] = int8(len(alphabet) - len(last) + i)
	}
	return e
}

// encodedLen returns the least number of characters that n bytes take.
func (e *encoding) encodedLen(n int) int { return (n*8 + e.bits - 1) / e.bits }

// sourceOf returns the characters of an encoded text that say the given bytes.
func (e *encoding) sourceOf(at span) span {
	return span{at.from * 8 / e.bits, (at.to*8 + e.bits - 1) / e.bits}
}

// appendDecoded appends the bytes that the characters say.
func (e *encoding) appendDecoded(dst, chars []byte) []byte {
	var bits uint
	have := 0
	for _, c := range chars {
		bits = bits<<e.bits | uint(e.values[c])
		if have += e.bits; have >= 8 {
			have -= 8
			dst = append(dst, byte(bits>>have))
		}
	}
	return dst
}

// eachRun yields the parts of text that consist of the encoding's characters
// and have at least so many.
func (e *encoding) eachRun(text []byte, least int) iter.Seq[span] {
	return func(yield func(span) bool) {
		// A run that covers a window of that length has the window's last
		// character. The test begins there, and skips the whole window if it
		// fails, so that most of the text is not looked at.
		for from := 0; from+least <= len(text); {
			to := from + least
			k := to - 1
			for k >= from && e.values[text[k]] >= 0 {
				k--
			}
			if k >= from {
				from = k + 1
				continue
			}
			for to < len(text) && e.values[text[to]] >= 0 {
				to++
			}
			if !yield(span{from, to}) {
				return
			}
			from = to + 1
		}
	}
}
