package redact

import (
	"bytes"
	"iter"
)

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

// appendDecoded appends the bytes that the characters say. It returns the bits
// of the last byte if that is not complete, and how many they are.
func (e *encoding) appendDecoded(dst, chars []byte) (decoded []byte, rest byte, n int) {
	var bits uint
	have := 0
	for _, c := range chars {
		bits = bits<<e.bits | uint(e.values[c])
		if have += e.bits; have >= 8 {
			have -= 8
			dst = append(dst, byte(bits>>have))
		}
	}
	return dst, byte(bits & (1<<have - 1)), have
}

// maxBreak is the length of the longest line break inside of an encoded text,
// with the white space around it.
const maxBreak = 80

// A run is a part of a text that consists of the characters of an encoding and
// of line breaks between them.
type run struct {
	span
	breaks bool // there are line breaks
	open   bool // the text ends, and the run may go on behind it
}

// eachRun yields the runs of text that have at least a number of characters. If
// more text may follow, a shorter run at its end is yielded, too.
func (e *encoding) eachRun(text []byte, least int, open bool) iter.Seq[run] {
	return func(yield func(run) bool) {
		// A run that covers a window of that length has the window's last
		// character. The test begins there, and skips the whole window if it
		// fails, so that most of the text is not looked at.
		from := 0
		for from+least <= len(text) {
			if k := e.runStart(text, from, from+least); k > from {
				from = k
				continue
			}
			r := e.runAt(text, from, open)
			if r.to > r.from && !yield(r) {
				return
			}
			from = r.to + 1
		}
		if !open || from >= len(text) {
			return
		}
		r := e.runAt(text, e.runStart(text, from, len(text)), true)
		if r.to > r.from {
			yield(r)
		}
	}
}

// runStart returns the place in text[from:to] after which all characters may
// belong to one run.
func (e *encoding) runStart(text []byte, from, to int) int {
	for k := to - 1; k >= from; k-- {
		if e.values[text[k]] >= 0 {
			continue
		}
		gap, ok := breakAround(text, k)
		if !ok && (gap.to < len(text) || gap.to == gap.from) {
			return max(gap.to, k+1)
		}
		k = gap.from
	}
	return from
}

// runAt returns the run that begins at the first character at or after from, if
// there are only line breaks before it.
func (e *encoding) runAt(text []byte, from int, open bool) run {
	for from < len(text) && isBlank(text[from]) {
		from++
	}
	r := run{span: span{from, from}}
	for at := from; at < len(text); {
		if e.values[text[at]] >= 0 {
			r.breaks = r.breaks || at > r.to
			at++
			r.to = at
			continue
		}
		gap, ok := breakAround(text, at)
		if gap.to == len(text) && gap.to-gap.from <= maxBreak && gap.to > gap.from {
			break
		}
		if !ok {
			return r
		}
		at = gap.to
	}
	r.open = open
	return r
}

// breakAround returns the white space around a place, and whether it is a line
// break. It is empty if there is no white space, and cut off if it is too long.
func breakAround(text []byte, at int) (gap span, ok bool) {
	gap = span{at, at}
	for gap.from > 0 && isBlank(text[at]) && isBlank(text[gap.from-1]) && at-gap.from <= maxBreak {
		gap.from--
	}
	for gap.to < len(text) && isBlank(text[gap.to]) && gap.to-at <= maxBreak {
		gap.to++
	}
	blank := text[gap.from:gap.to]
	return gap, len(blank) <= maxBreak && bytes.IndexByte(blank, '\n') >= 0
}

func isBlank(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }
