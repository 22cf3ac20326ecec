package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// headBytes is the length up to which the automaton has a whole pattern.
	headBytes = 16

	// maxEscaped is the length up to which the escaped spellings of a secret are
	// listed.
	maxEscaped = 64 << 10
)

// addSecrets adds the patterns of secrets.
func (r *Redactor) addSecrets(secrets []Secret) {
	numbers := map[string]bool{}
	longest := 0
	for _, s := range secrets {
		for _, text := range strings.Split(s.Text, mask) {
			known, ok := numbers[text]
			numbers[text] = s.Number && (known || !ok)
			longest = max(longest, len(text))
		}
	}
	delete(numbers, "")
	r.maxSpelling = 32*longest + 64
	for _, text := range slices.Sorted(maps.Keys(numbers)) {
		r.addSecret(text, numbers[text])
	}
}

func (r *Redactor) addSecret(text string, number bool) {
	short, k := len(text) < shortBytes, certainKind
	patterns := slices.Compact(plainSpellings(text))
	switch {
	case short && number:
		k = numberKind // and not looked for in hexadecimal, where 33 is 3
	case short:
		k = tokenKind
		patterns = spellings(patterns, true)
	default:
		patterns = spellings(patterns, false)
	}
	slices.Sort(patterns)
	for _, pattern := range slices.Compact(patterns) {
		if len(pattern) <= headBytes || short {
			r.automaton.addPattern(pattern, k)
		} else {
			r.long.addPattern(r.automaton.addPattern(pattern[:headBytes], headKind), pattern)
		}
	}
}

// spellings returns the texts to look for because of a secret. An escaped one
// that is not listed is found by a view. Those that views find are listed, too,
// because a text may have them escaped once more. Encoded ones are a part of a
// larger text, or whole.
func spellings(plain []string, whole bool) []string {
	all := slices.Clone(plain)
	for _, s := range plain {
		all = append(all, encodings(s, whole)...)
		if len(s) > maxEscaped || isPlain(s) {
			continue
		}
		all = append(all, html.EscapeString(s), strings.ReplaceAll(s, " ", "+"))
		for i, style := range jsonStyles {
			escaped := style.escape(s)
			all = append(all, escaped)
			if i < usualStyles {
				all = append(all, encodings(escaped, whole)...)
			}
		}
	}
	return all
}

// plainSpellings returns the secret with either kind of line ends.
func plainSpellings(secret string) []string {
	unix := strings.ReplaceAll(secret, "\r\n", "\n")
	return []string{secret, unix, strings.ReplaceAll(unix, "\n", "\r\n")}
}

// isPlain reports whether no encoder escapes s.
func isPlain(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// encodings returns what is written for s in hexadecimal and in base64, as a
// whole or in a larger text. That depends in base64 on where s begins in a group
// of three bytes, and on whether the text ends with it.
func encodings(s string, whole bool) []string {
	inHex := hex.EncodeToString([]byte(s))
	all := []string{inHex, strings.ToUpper(inHex)}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if whole {
			all = append(all, e.EncodeToString([]byte(s)), e.WithPadding(base64.StdPadding).EncodeToString([]byte(s)))
			continue
		}
		for before := range 3 {
			from, to := (before*8+5)/6, (before+len(s))*8/6
			encoded := e.EncodeToString(append(make([]byte, before), s...))
			all = append(all, encoded[from:], encoded[from:to])
		}
	}
	return all
}

// A jsonStyle is how an encoder of JSON writes what it need not escape.
type jsonStyle struct {
	escaped string // characters that are written as \u
	ascii   bool   // so are all that are not ASCII
	slash   bool   // "/" is written as "\/"
	format  string // of \u
}

// usualStyles is the number of styles that are looked for in encoded text.
const usualStyles = 2

var jsonStyles = []jsonStyle{
	{"<>&\u2028\u2029", false, false, `\u%04x`}, // Go, Rails
	{"\u2028\u2029", false, false, `\u%04x`},    // Go without SetEscapeHTML
	{"\u2028\u2029", false, true, `\u%04x`},     // PHP with JSON_UNESCAPED_UNICODE
	{"", false, false, `\u%04x`},                // JavaScript
	{"", false, false, `\u%04X`},                // Java
	{"", true, false, `\u%04x`},                 // Python
	{"", true, true, `\u%04x`},                  // PHP
	{"<>&", true, false, `\u%04X`},              // Go, then ASCII only
	{"\"&'+<>`\x7f", true, false, `\u%04X`},     // .NET
}

// escape returns s as it stands between the quotes of a string. As encoders do,
// it replaces bytes that are not UTF-8.
func (j jsonStyle) escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		i := strings.IndexRune("\"\\\b\f\n\r\t", c)
		switch {
		case c < ' ' && i < 0, c >= utf8.RuneSelf && j.ascii, strings.ContainsRune(j.escaped, c):
			for _, unit := range utf16.AppendRune(nil, c) {
				fmt.Fprintf(&b, j.format, unit)
			}
		case i >= 0:
			b.WriteString(`\` + `"\bfnrt`[i:i+1])
		case c == '/' && j.slash:
			b.WriteString(`\/`)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
