package redact

import (
	"bytes"
	"strconv"
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
	// isBeginning reports whether src may be the beginning of one sequence, so
	// that the text behind src matters. It may be wrong about src that cannot.
	isBeginning func(src []byte) bool
}

var (
	unescapeBackslash = unescaper{`\`, backslashUnit, beginsBackslash}
	unescapePercent   = unescaper{`%`, percentUnit, beginsPercent}
	unescapeQuery     = unescaper{`+%`, percentUnit, beginsPercent}
	unescapeHTML      = unescaper{`&`, entityUnit, beginsEntity}
)

// nextLead returns the place of the next byte with which a sequence may begin,
// or -1.
func (u unescaper) nextLead(src []byte) int {
	if len(u.leads) == 1 {
		return bytes.IndexByte(src, u.leads[0])
	}
	return bytes.IndexAny(src, u.leads)
}

// maxEscape is the length of the longest sequence, a surrogate pair.
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
	end := bytes.IndexByte(src[:min(len(src), maxEscape)], ';')
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

// beginsBackslash is isBeginning of backslashUnit.
func beginsBackslash(src []byte) bool {
	if len(src) < 2 {
		return true
	}
	digits, rest := 0, src[2:]
	switch src[1] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if len(rest) < digits {
		return isHex(rest)
	}
	if src[1] != 'u' || len(src) >= maxEscape {
		return false
	}
	c, ok := parseHex(rest, 4) // perhaps the first half of a surrogate pair
	rest = rest[4:]
	return ok && utf16.IsSurrogate(c) && bytes.HasPrefix([]byte(`\u`), rest[:min(2, len(rest))]) &&
		(len(rest) < 2 || isHex(rest[2:]))
}

// beginsPercent is isBeginning of percentUnit.
func beginsPercent(src []byte) bool { return src[0] == '%' && len(src) < 3 && isHex(src[1:]) }

// beginsEntity is isBeginning of entityUnit.
func beginsEntity(src []byte) bool {
	if len(src) >= maxEscape {
		return false
	}
	for i, b := range src[1:] {
		lower := b | 0x20
		if !(b >= '0' && b <= '9' || lower >= 'a' && lower <= 'z' || b == '#' && i == 0) {
			return false
		}
	}
	return true
}

func isHex(src []byte) bool {
	_, ok := parseHex(src, len(src))
	return ok
}
