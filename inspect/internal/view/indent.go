package view

import (
	"strings"
)

// indent returns JSON text with line breaks, at most limit bytes and nodes
// values of it, and whether that is all. A text that is not JSON is returned as
// it is.
func indent(s string, limit, nodes int) (out string, all bool) {
	var b strings.Builder
	depth := 0
	newline := func() {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat("  ", min(depth, 64)))
	}
	for i := 0; i < len(s); i++ {
		if b.Len() >= limit || nodes < 0 {
			clipped, _ := clip(b.String(), limit)
			return clipped, false
		}
		switch c := s[i]; c {
		case '{', '[':
			b.WriteByte(c)
			nodes--
			if i+1 < len(s) && (s[i+1] == '}' || s[i+1] == ']') {
				i++
				b.WriteByte(s[i])
				continue
			}
			depth++
			newline()
		case '}', ']':
			depth = max(0, depth-1)
			newline()
			b.WriteByte(c)
		case ',':
			b.WriteByte(c)
			nodes--
			newline()
		case ':':
			b.WriteString(": ")
		case '"':
			end := endOfString(s, i)
			b.WriteString(s[i:end])
			i = end - 1
		default:
			b.WriteByte(c)
		}
	}
	out, clipped := clip(b.String(), limit)
	return out, !clipped
}

// endOfString returns the place behind the JSON string that begins at i.
func endOfString(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return len(s)
}
