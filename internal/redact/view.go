package redact

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A view is a text that was read from another one, its source, and knows the
// source of each of its bytes.
type view struct {
	text  []byte
	start int // the place in the source where the view begins

	// The places where the view is not a plain copy, in their order.
	jumps []jump

	encoding *encoding // of the source, or nil if it is not decoded
	binary   bool      // it says what was base64 or hexadecimal

	buffer []byte // the memory of text, which is not always used
}

// A jump is a unit of the view that stands for another text of the source: an
// escape sequence, or a line break, which stands for nothing.
type jump struct {
	at, n  int // the unit
	source span
}

// sourceOf returns the part of the source that says the given part of v, which
// is not empty.
func (v *view) sourceOf(at span) span {
	if v.encoding != nil {
		chars := v.encoding.sourceOf(at)
		return span{v.start + chars.from, v.start + chars.to}
	}
	return span{v.byteSource(at.from).from, v.byteSource(at.to - 1).to}
}

// byteSource returns the source of the byte at i: an escape sequence, or a byte
// that follows the last one before i.
func (v *view) byteSource(i int) span {
	k, found := slices.BinarySearchFunc(v.jumps, i, func(j jump, i int) int { return j.at - i })
	if !found {
		k--
	}
	if k < 0 {
		return span{v.start + i, v.start + i + 1}
	}
	j := v.jumps[k]
	if i < j.at+j.n {
		return j.source
	}
	from := j.source.to + i - (j.at + j.n)
	return span{from, from + 1}
}

// wholeRunes returns a part of v with the characters that it cuts. Bytes that
// were encoded have none.
func (v *view) wholeRunes(at span) span {
	if v.binary {
		return at
	}
	return span{v.runeAt(at.from).from, v.runeAt(at.to).to}
}

// runeAt returns the character that i is inside of, or nothing.
func (v *view) runeAt(i int) span {
	if i == len(v.text) || utf8.RuneStart(v.text[i]) {
		return span{i, i}
	}
	from := i - 1
	for from > 0 && !utf8.RuneStart(v.text[from]) && i-from < utf8.UTFMax {
		from--
	}
	if from >= 0 {
		if _, n := utf8.DecodeRune(v.text[from:]); from+n > i {
			return span{from, from + n}
		}
	}
	return span{i, i}
}

// incompleteRune returns the length of the beginning of a character at the end
// of text.
func incompleteRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				break
			}
			return n
		}
	}
	return 0
}

// setUnescaped makes v the text that u reads from src. It reports whether that
// differs from src. If more text may follow, it stops where an escape sequence
// may be incomplete, and returns that place.
func (v *view) setUnescaped(src []byte, u unescaper, open bool) (differs bool, end int) {
	v.text, v.start, v.jumps, v.encoding = v.buffer[:0], 0, v.jumps[:0], nil
	copied, i := 0, 0 // src is read up to i and copied up to copied
	end = len(src)
	for {
		lead := u.nextLead(src[i:])
		if lead < 0 {
			break
		}
		i += lead
		if open && u.isBeginning(src[i:]) {
			end = i
			break
		}
		v.text = append(v.text, src[copied:i]...)
		copied = i
		at, n := len(v.text), 0
		if v.text, n = u.unit(v.text, src[i:]); n == 0 {
			i++
			continue
		}
		i += n
		v.jumps = append(v.jumps, jump{at, len(v.text) - at, span{copied, i}})
		copied = i
	}
	differs = len(v.jumps) > 0 || end < len(src)
	if differs {
		v.text = append(v.text, src[copied:end]...)
	}
	v.buffer = v.text
	return differs, end
}

// setJoined makes v the characters of a run of src, without the line breaks.
func (v *view) setJoined(src []byte, r run) {
	v.start, v.jumps, v.encoding = r.from, v.jumps[:0], nil
	if !r.breaks {
		v.text = src[r.from:r.to]
		return
	}
	v.text = v.buffer[:0]
	for at := r.from; at < r.to; {
		n := bytes.IndexAny(src[at:r.to], " \t\r\n")
		if n < 0 {
			n = r.to - at
		}
		v.text = append(v.text, src[at:at+n]...)
		at += n
		if at == r.to {
			break
		}
		gap := span{at, at}
		for isBlank(src[gap.to]) {
			gap.to++
		}
		v.jumps = append(v.jumps, jump{at: len(v.text), source: gap})
		at = gap.to
	}
	v.buffer = v.text
}

// setDecoded makes v the bytes that the characters src[start:] say. It returns
// the bits of the last byte if that is not complete, and how many they are.
func (v *view) setDecoded(src []byte, start int, e *encoding) (rest byte, n int) {
	v.start, v.jumps, v.encoding = start, v.jumps[:0], e
	v.buffer, rest, n = e.appendDecoded(v.buffer[:0], src[start:])
	v.text = v.buffer
	return rest, n
}
