package redact

import (
	"bytes"
	"slices"
)

// A view is a decoded text that knows the source of each of its bytes.
type view struct {
	text []byte

	// For a text that was escaped: the places where it is not a plain copy, in
	// their order.
	jumps []jump

	// For a text that was encoded: how, and where it begins in the source.
	// Otherwise encoding is nil.
	encoding *encoding
	start    int
}

// A jump is a unit of the view that stands for an escape sequence of the
// source.
type jump struct {
	at, n  int // the unit
	source span
}

// sourceOf returns the part of the source that says the given part of v.
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
		return span{i, i + 1}
	}
	j := v.jumps[k]
	if i < j.at+j.n {
		return j.source
	}
	from := j.source.to + i - (j.at + j.n)
	return span{from, from + 1}
}

// setUnescaped makes v the text that u reads from src. It reports whether that
// differs from src.
func (v *view) setUnescaped(src []byte, u unescaper) bool {
	if bytes.IndexByte(src, u.leads[0]) < 0 {
		return false
	}
	v.text, v.jumps, v.encoding = v.text[:0], v.jumps[:0], nil
	copied, i := 0, 0 // src is read up to i and copied up to copied
	for {
		lead := u.nextLead(src[i:])
		if lead < 0 {
			break
		}
		i += lead
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
	v.text = append(v.text, src[copied:]...)
	return len(v.jumps) > 0
}

// setDecoded makes v the bytes that src[start:] says.
func (v *view) setDecoded(src []byte, start int, e *encoding) {
	v.jumps, v.encoding, v.start = v.jumps[:0], e, start
	v.text = e.appendDecoded(v.text[:0], src[start:])
}
