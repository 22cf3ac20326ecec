package redact

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a decoded text that knows where each of its bytes comes from.
type view struct {
	text []byte

	// For escaped text: where it is not a plain copy, in order.
	jumps []jump

	// For encoded text: how, and where it starts. Otherwise encoding is nil.
	encoding *encoding
	start    int
}

// jump says that a unit of the view stands for an escape sequence of the source.
type jump struct {
	at, n  int // the unit
	source span
}

// source returns the part of the text that a view at this depth was decoded from which says what is
// at the given part of v. At depth 0 they are the same.
func (v *view) source(at span, depth int) span {
	switch {
	case depth == 0:
		return at
	case v.encoding != nil:
		width := v.encoding.bits
		return span{v.start + at.from*8/width, v.start + (at.to*8+width-1)/width}
	default:
		return span{v.unit(at.from).from, v.unit(at.to - 1).to}
	}
}

// unit returns the source of the byte at i.
func (v *view) unit(i int) span {
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

// decoder undoes one way to escape text, byte by byte. It takes what is not an escape sequence as it
// is, and so finds any mixture of escaped and plain characters.
type decoder struct {
	leads string // the bytes with which an escape sequence begins
	// unit appends to dst what the escape sequence at the start of src stands for, and returns the
	// length of the sequence, or 0 if there is none.
	unit func(dst, src []byte) ([]byte, int)
}

var (
	unescapeBackslash = decoder{`\`, backslash}
	unescapePercent   = decoder{`%`, percent}
	unescapeQuery     = decoder{`+%`, percent}
	unescapeHTML      = decoder{`&`, entity}
)

// unescape makes v the text that d decodes src to. It reports whether that differs from src.
func (v *view) unescape(src []byte, d decoder) bool {
	if bytes.IndexByte(src, d.leads[0]) < 0 {
		return false
	}
	v.text, v.jumps, v.encoding = v.text[:0], v.jumps[:0], nil
	done, i := 0, 0
	for {
		var k int
		if len(d.leads) == 1 {
			k = bytes.IndexByte(src[i:], d.leads[0])
		} else {
			k = bytes.IndexAny(src[i:], d.leads)
		}
		if k < 0 {
			break
		}
		i += k
		v.text = append(v.text, src[done:i]...)
		done = i
		at, n := len(v.text), 0
		if v.text, n = d.unit(v.text, src[i:]); n == 0 {
			i++
			continue
		}
		i += n
		v.jumps = append(v.jumps, jump{at, len(v.text) - at, span{done, i}})
		done = i
	}
	v.text = append(v.text, src[done:]...)
	return len(v.jumps) > 0
}

// maxEscape is the length of the longest sequence that backslash knows, a surrogate pair.
const maxEscape = len(`\ud83d\ude00`)

// backslash decodes the escape sequences of JSON and of Go.
func backslash(dst, src []byte) ([]byte, int) {
	if len(src) < 2 {
		return dst, 0
	}
	switch c := src[1]; c {
	case '"', '\\', '/', '\'':
		return append(dst, c), 2
	case 'a':
		return append(dst, '\a'), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'v':
		return append(dst, '\v'), 2
	case 'x':
		if b, ok := hexDigits(src[2:], 2); ok {
			return append(dst, byte(b)), 4
		}
	case 'u':
		c, ok := hexDigits(src[2:], 4)
		if !ok {
			return dst, 0
		}
		if utf16.IsSurrogate(c) && len(src) >= maxEscape && src[6] == '\\' && src[7] == 'u' {
			low, ok := hexDigits(src[8:], 4)
			if pair := utf16.DecodeRune(c, low); ok && pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), maxEscape
			}
		}
		return utf8.AppendRune(dst, c), 6
	case 'U':
		if c, ok := hexDigits(src[2:], 8); ok {
			return utf8.AppendRune(dst, c), 10
		}
	}
	return dst, 0
}

// percent decodes the escape sequences of URLs. It is given a "+" only if that is a space.
func percent(dst, src []byte) ([]byte, int) {
	if src[0] == '+' {
		return append(dst, ' '), 1
	}
	if b, ok := hexDigits(src[1:], 2); ok {
		return append(dst, byte(b)), 3
	}
	return dst, 0
}

// entity decodes the character references that encoders of HTML write.
func entity(dst, src []byte) ([]byte, int) {
	end := bytes.IndexByte(src[:min(len(src), 12)], ';')
	if end < 3 {
		return dst, 0
	}
	n := end + 1
	switch name := src[1:end]; string(name) {
	case "amp":
		return append(dst, '&'), n
	case "lt":
		return append(dst, '<'), n
	case "gt":
		return append(dst, '>'), n
	case "quot":
		return append(dst, '"'), n
	case "apos":
		return append(dst, '\''), n
	default:
		if name[0] != '#' {
			return dst, 0
		}
		digits, base := name[1:], 10
		if digits[0] == 'x' || digits[0] == 'X' {
			digits, base = digits[1:], 16
		}
		c, err := strconv.ParseInt(string(digits), base, 32)
		if err != nil || c < 0 {
			return dst, 0
		}
		return utf8.AppendRune(dst, rune(c)), n
	}
}

// hexDigits returns the value of the first n bytes of src, if they are hexadecimal digits.
func hexDigits(src []byte, n int) (value rune, ok bool) {
	if len(src) < n {
		return 0, false
	}
	for _, b := range src[:n] {
		digit := hexText.values[b]
		if digit < 0 {
			return 0, false
		}
		value = value<<4 | rune(digit)
	}
	return value, true
}

// encoding is a way to write bytes as characters of so many bits each.
type encoding struct {
	bits   int
	phases int // the number of characters after which a byte may start anew
	values [256]int8
}

var (
	base64Text = newEncoding(6, 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_")
	hexText    = newEncoding(4, 2, "0123456789abcdef", "ABCDEF")
)

// newEncoding takes the characters for the values from 0 up, and other ones for the last values.
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

// chars returns the least number of characters that n bytes take.
func (e *encoding) chars(n int) int { return (n*8 + e.bits - 1) / e.bits }

// runs yields the parts of text that could be encoded and have at least so many characters.
func (e *encoding) runs(text []byte, least int) iter.Seq[span] {
	return func(yield func(span) bool) {
		// The last character of a run of that length is in every stretch of that length, so most of
		// the text need not be looked at.
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

// decode makes v the bytes that src[start:] says.
func (v *view) decode(src []byte, start int, e *encoding) {
	v.text, v.jumps, v.encoding, v.start = v.text[:0], v.jumps[:0], e, start
	var bits uint
	have := 0
	for _, c := range src[start:] {
		bits = bits<<e.bits | uint(e.values[c])
		if have += e.bits; have >= 8 {
			have -= 8
			v.text = append(v.text, byte(bits>>have))
		}
	}
}
