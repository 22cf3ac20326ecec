package view

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// Clip returns the first limit bytes of s without the half of a character.
func clip(s string, limit int) (prefix string, clipped bool) {
	return fault.Prefix(s, limit), len(s) > limit
}

// Visible returns s with the characters that do not show, or that change the
// order of others, as escapes. With lines, line feeds and tabs stay.
func visible(s string, lines bool) string {
	var out []byte // nil as long as nothing is escaped
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		if Shows(r, size) || lines && (r == '\n' || r == '\t') {
			if out != nil {
				out = append(out, s[i:i+size]...)
			}
			continue
		}
		if out == nil {
			out = append(make([]byte, 0, len(s)+8), s[:i]...)
		}
		switch {
		case r == utf8.RuneError && size == 1:
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[s[i]>>4], digits[s[i]&15])
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case unicode.Is(unicode.Variation_Selector, r):
			out = AppendEscape(out, r)
		default:
			out = fault.AppendVisible(out, s[i:i+size])
		}
	}
	if out == nil {
		return s
	}
	return string(out)
}

// Shows reports whether a character shows as something.
func Shows(r rune, size int) bool {
	if r == utf8.RuneError && size == 1 {
		return false
	}
	return fault.IsVisible(r) && !unicode.Is(unicode.Variation_Selector, r)
}

// AppendEscape appends a character as JSON escapes it.
func AppendEscape(dst []byte, r rune) []byte {
	if r < 0x10000 {
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	r -= 0x10000
	return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}
