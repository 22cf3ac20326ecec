package jsontext

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// halfLen is the length of the escape of a half of a surrogate pair.
const halfLen = len(`\ud83d`)

// halfAt returns the half of a surrogate pair whose escape b begins with, -1 if
// there is none.
func halfAt(b []byte) rune {
	if len(b) < halfLen || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	if r := parseHex4(b[2:]); utf16.IsSurrogate(r) {
		return r
	}
	return -1
}

// appendHalf appends a half as UTF-8 would have it, if it were allowed there.
// See https://simonsapin.github.io/wtf-8/.
func appendHalf(dst []byte, half rune) []byte {
	return append(dst, 0xed, 0x80|byte(half>>6)&0x3f, 0x80|byte(half)&0x3f)
}

// halfIn returns the half that appendHalf has put at the beginning of a text, -1
// if there is none.
func halfIn(text string) rune {
	if len(text) < 3 || text[0] != 0xed || text[1] < 0xa0 || text[1] > 0xbf || text[2]&0xc0 != 0x80 {
		return -1
	}
	return 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
}

// Whole returns a text that was put together of pieces which may have halves, see
// [Limits]. The halves of a pair that stand together are its character. A half
// that is alone, and a byte that is not UTF-8, is U+FFFD, as encoding/json has it.
func Whole(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if half := halfIn(text[i:]); half >= 0 {
			n = 3
			if pair := utf16.DecodeRune(half, halfIn(text[i+n:])); pair != utf8.RuneError {
				r, n = pair, 6
			}
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

// CutHalf returns a text without the beginning of a character at its end, of
// which the next piece may have the rest, and that beginning.
func CutHalf(text string) (whole, half string) {
	end := len(text)
	if n := end - 3; n >= 0 && halfIn(text[n:]) >= 0 && text[n+1] < 0xb0 {
		return text[:n], text[n:]
	}
	for i := end - 1; i >= 0 && i >= end-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				end = i
			}
			break
		}
	}
	return text[:end], text[end:]
}

// Mended returns a text in which U+FFFD stands for each half of a surrogate pair
// that is alone in a string, and for each byte that is not UTF-8.
func Mended(text []byte) []byte {
	mended := make([]byte, 0, len(text))
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			n = len(text)
		}
		if mended, text = append(mended, text[:n]...), text[n:]; len(text) == 0 {
			break
		}
		if n = escapeLen(text); n == 0 && halfAt(text) >= 0 {
			mended, text = append(mended, `\ufffd`...), text[halfLen:]
			continue
		}
		n = min(max(n, 1), len(text))
		mended, text = append(mended, text[:n]...), text[n:]
	}
	return []byte(Whole(string(mended)))
}
