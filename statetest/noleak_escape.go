package statetest

import (
	"bytes"
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	kindEscaped = "escaped"
	kindJoined  = "joined"
)

// unescape returns the text with one level of all that looks like an escape of
// JSON, Go, URLs or HTML undone, or nil if nothing does. One pass undoes all
// kinds: a value in which something looks like an escape is undone likewise.
func unescape(v *view) *view {
	src := v.text
	if !bytes.ContainsAny(src, `\%&`) {
		return nil
	}
	d := v.child(kindEscaped)
	d.unescaped++
	d.grow(len(src))
	changed := false
	for i := 0; i < len(src); {
		var room [utf8.UTFMax]byte
		out, n := escapeAt(src[i:], room[:0])
		if n == 0 {
			d.add(src[i], i, i+1)
			i++
			continue
		}
		changed = true
		for _, c := range out {
			d.add(c, i, i+n)
		}
		i += n
	}
	if !changed {
		return nil
	}
	return d
}

// escapeAt returns what the escape at the beginning of src stands for and its
// length, which is 0 if there is none. It appends to out.
func escapeAt(src, out []byte) ([]byte, int) {
	switch src[0] {
	case '%':
		if r, ok := hexNumber(src[1:], 2); ok {
			return append(out, byte(r)), 3
		}
	case '&':
		end := bytes.IndexByte(src[:min(len(src), 40)], ';')
		if end < 2 {
			return out, 0
		}
		entity := string(src[:end+1])
		if text := html.UnescapeString(entity); text != entity {
			return append(out, text...), end + 1
		}
	case '\\':
		return backslashAt(src, out)
	}
	return out, 0
}

func backslashAt(src, out []byte) ([]byte, int) {
	if len(src) < 2 {
		return out, 0
	}
	const short, meaning = `"\/'` + "`" + `nrtbfav`, "\"\\/'`\n\r\t\b\f\a\v"
	c := src[1]
	if i := strings.IndexByte(short, c); i >= 0 {
		return append(out, meaning[i]), 2
	}
	switch {
	case c == 'x':
		if r, ok := hexNumber(src[2:], 2); ok {
			return append(out, byte(r)), 4
		}
	case c == 'u':
		r, ok := hexNumber(src[2:], 4)
		if !ok {
			return out, 0
		}
		if utf16.IsSurrogate(r) && len(src) >= 12 && src[6] == '\\' && src[7] == 'u' {
			if low, ok := hexNumber(src[8:], 4); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return utf8.AppendRune(out, pair), 12
				}
			}
		}
		return utf8.AppendRune(out, r), 6
	case c == 'U':
		if r, ok := hexNumber(src[2:], 8); ok {
			return utf8.AppendRune(out, r), 10
		}
	case '0' <= c && c <= '3' && len(src) >= 4 && isOctal(src[2]) && isOctal(src[3]):
		return append(out, (c-'0')<<6|(src[2]-'0')<<3|(src[3]-'0')), 4
	}
	return out, 0
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }

// hexNumber returns the number of the first n digits.
func hexNumber(src []byte, n int) (rune, bool) {
	if len(src) < n {
		return 0, false
	}
	var r rune
	for _, c := range src[:n] {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// escapesIn names the kinds of escapes in a text.
func escapesIn(text []byte) string {
	var url, entity, inGo, json bool
	for i := 0; i < len(text); {
		_, n := escapeAt(text[i:], nil)
		if n == 0 {
			i++
			continue
		}
		switch {
		case text[i] == '%':
			url = true
		case text[i] == '&':
			entity = true
		case strings.IndexByte("xUav'`0123", text[i+1]) >= 0:
			inGo = true
		default:
			json = true
		}
		i += n
	}
	var kinds []string
	if json && !inGo {
		kinds = append(kinds, "JSON")
	}
	if inGo {
		kinds = append(kinds, "Go")
	}
	if url {
		kinds = append(kinds, "a URL")
	}
	if entity {
		kinds = append(kinds, "HTML")
	}
	if len(kinds) == 0 {
		return ""
	}
	return "the escapes of " + strings.Join(kinds, " and ")
}

// joinLines returns the text without what is between lines and between the
// elements of lists, or nil if there is nothing of that kind: base64 and hex
// are wrapped.
func joinLines(v *view) *view {
	src := v.text
	if v.joined || !bytes.ContainsAny(src, "\n,") {
		return nil
	}
	d := v.child(kindJoined)
	d.joined = true
	d.grow(len(src))
	for i := 0; i < len(src); {
		end, breaks := i, false
		for end < len(src) && strings.IndexByte(" \t\r\n\"'`,[]\\", src[end]) >= 0 {
			breaks = breaks || src[end] == '\n' || src[end] == ','
			end++
		}
		if breaks {
			i = end
			continue
		}
		end = max(end, i+1)
		for ; i < end; i++ {
			d.add(src[i], i, i+1)
		}
	}
	return d
}

// squeeze returns the letters and digits of a text, and where each of their
// bytes is. Nothing that stands between the parts of a value hides it so.
func squeeze(text []byte) (kept []byte, from, to []int32) {
	kept = make([]byte, 0, len(text))
	from = make([]int32, 0, len(text))
	to = make([]int32, 0, len(text))
	for i, c := range text {
		if isWordByte(c) {
			kept = append(kept, c)
			from = append(from, int32(i))
			to = append(to, int32(i+1))
		}
	}
	return kept, from, to
}
