package redact

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An unescaper undoes one way to escape text, byte by byte. It takes everything
// else as it is, and so reads any mixture of escaped and plain characters.
type unescaper struct {
	leads string // the bytes with which an escape sequence begins
	// unit appends to dst the character of the escape sequence at the start of
	// src. It returns the length of the sequence, or 0 if it is not valid.
	unit func(dst, src []byte) ([]byte, int)
}

var (
	unescapeBackslash = unescaper{`\`, backslashUnit}
	unescapePercent   = unescaper{`%`, percentUnit}
	unescapeQuery     = unescaper{`+%`, percentUnit}
	unescapeHTML      = unescaper{`&`, entityUnit}
)

// nextLead returns the place of the next byte with which a sequence may begin,
// or
// -1.
func (u unescaper) nextLead(src []byte) int {
	if len(u.leads) == 1 {
		return bytes.IndexByte(src, u.leads[0])
	}
	return bytes.IndexAny(src, u.leads)
}

// maxEscape is the length of the longest sequence of backslashUnit, a surrogate
// pair.
const maxEscape = len(`\ud83d\ude00`)

// backslashUnit decodes the escape sequences of JSON and of Go.
func backslashUnit(dst, src []byte) ([]byte, int) {
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
		if b, ok := parseHex(src[2:], 2); ok {
			return append(dst, byte(b)), 4
		}
	case 'u':
		c, ok := parseHex(src[2:], 4)
		if !ok {
			return dst, 0
		}
		if utf16.IsSurrogate(c) && len(src) >= maxEscape && src[6] == '\\' && src[7] == 'u' {
			low, ok := parseHex(src[8:], 4)
			if pair := utf16.DecodeRune(c, low); ok && pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), maxEscape
			}
		}
		return utf8.AppendRune(dst, c), 6
	case 'U':
		if c, ok := parseHex(src[2:], 8); ok {
			return utf8.AppendRune(dst, c), 10
		}
	}
	return dst, 0
}

// percentUnit decodes the escape sequences of URLs. Its src begins with "+"
// only if that stands for a space.
func percentUnit(dst, src []byte) ([]byte, int) {
	if src[0] == '+' {
		return append(dst, ' '), 1
	}
	if b, ok := parseHex(src[1:], 2); ok {
		return append(dst, byte(b)), 3
	}
	return dst, 0
}

// entityUnit decodes the character references that encoders of HTML write.
func entityUnit(dst, src []byte) ([]byte, int) {
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

// parseHex returns the value of the first n bytes of src, if they are
// hexadecimal digits.
func parseHex(src []byte, n int) (value rune, ok bool) {
	if len(src) < n {
		return 0, false
	}
	for _, b := range src[:n] {
		switch lower := b | 0x20; {
		case b >= '0' && b <= '9':
			value = value<<4 | rune(b-'0')
		case lower >= 'a' && lower <= 'f':
			value = value<<4 | rune(lower-'a'+10)
		default:
			return 0, false
		}
	}
	return value, true
}

// escapeStart returns the start of the backslash escape that at is inside of,
// or at itself. A mask in place of half an escape would leave a backslash
// before the mask, which is not valid JSON.
func escapeStart(text string, at int) int {
	for start := max(0, at-maxEscape); start < at; start++ {
		if !beginsEscape(text, start) {
			continue
		}
		var buf [utf8.UTFMax]byte
		end := min(len(text), start+maxEscape)
		if _, n := backslashUnit(buf[:0], []byte(text[start:end])); start+n > at {
			return start
		}
	}
	return at
}

// beginsEscape reports whether the byte at i is a backslash that no backslash
// before it escapes: their number is even.
func beginsEscape(text string, i int) bool {
	before := text[:i]
	escaping := len(before) - len(strings.TrimRight(before, `\`))
	return text[i] == '\\' && escaping%2 == 0
}
