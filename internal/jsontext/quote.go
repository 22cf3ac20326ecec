package jsontext

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// plainBytes marks the ASCII bytes that stand for themselves inside a string.
// Most text consists of them, and a table is the fastest test.
var plainBytes = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// Unquote returns what a checked JSON string with its quotes stands for.
func Unquote(raw []byte) string {
	return unquoteRaw(raw, bytes.IndexByte(raw, '\\') >= 0)
}

// AppendUnquoted appends what [Unquote] returns.
func AppendUnquoted(dst, raw []byte) []byte { return appendUnquoted(dst, raw[1:len(raw)-1]) }

// IsText reports whether a checked value is a string with that content.
func IsText(value []byte, content string) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		return Unquote(value) == content
	}
	return string(value[1:len(value)-1]) == content
}

// appendUnquoted appends the content of a checked string without its quotes.
func appendUnquoted(dst, content []byte) []byte {
	for {
		i := bytes.IndexByte(content, '\\')
		if i < 0 {
			return append(dst, content...)
		}
		dst = append(dst, content[:i]...)
		content = content[i:]
		n := escapeLen(content)
		switch n {
		case 0:
			half := halfAt(content)
			if half < 0 { // the text was not checked: keep it
				return append(dst, content...)
			}
			dst, n = appendHalf(dst, half), halfLen
		case 2:
			dst = append(dst, unescapeByte(content[1]))
		case 6:
			dst = utf8.AppendRune(dst, parseHex4(content[2:]))
		case 12:
			dst = utf8.AppendRune(dst, utf16.DecodeRune(parseHex4(content[2:]), parseHex4(content[8:])))
		}
		content = content[n:]
	}
}

const hexDigits = "0123456789abcdef"

// AppendQuote appends s as a JSON string. It escapes only what JSON requires,
// and replaces invalid UTF-8 by U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+len(`""`)), '"')
	done := 0
	for i := 0; ; {
		for i < len(s) && plainBytes[s[i]] {
			i++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[done:i]...)
				dst = append(dst, "\uFFFD"...)
				done = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[done:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// unquoteRaw is Unquote for a caller that knows whether there are escapes.
func unquoteRaw(raw []byte, escaped bool) string {
	raw = raw[1 : len(raw)-1]
	if !escaped {
		return string(raw)
	}
	return string(appendUnquoted(make([]byte, 0, len(raw)), raw))
}

// escapeLen returns the length of the escape at the start of b, or 0 if it is
// not valid. A surrogate pair is one escape.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if unescapeByte(b[1]) == 0 {
			return 0
		}
		return 2
	}
	switch u := parseHex4(b[2:]); {
	case u < 0, u >= 0xDC00 && u <= 0xDFFF:
		return 0
	case u >= 0xD800 && u < 0xDC00:
		if len(b) < 8 || b[6] != '\\' || b[7] != 'u' {
			return 0
		}
		if low := parseHex4(b[8:]); low < 0xDC00 || low > 0xDFFF {
			return 0
		}
		return 12
	}
	return 6
}

// unescapeByte returns the character of an escape of one letter, or 0.
func unescapeByte(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// parseHex4 returns the value of four hexadecimal digits, or -1.
func parseHex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Marshal returns the JSON of v as encoding/json writes it, but leaves <, > and
// & as they are: the texts are for models and stores, not for HTML pages.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
