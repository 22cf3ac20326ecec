// Package redact masks secret values in text, also where they are escaped or encoded.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	mask = "[SECRET]"

	// Values below this many bytes are everywhere by accident. They are masked as whole tokens only.
	shortBytes = 6
)

// Redactor masks a fixed set of secrets. Its methods may be called concurrently.
type Redactor struct {
	automaton automaton
	decoders  []decoder
	longBytes int // length of the shortest pattern that is not a token, or 0
	scratches sync.Pool
}

// New returns a Redactor for secrets. Empty ones and duplicates are ignored.
func New(secrets []string) *Redactor {
	r := &Redactor{decoders: []decoder{unescapeBackslash, unescapePercent, unescapeHTML}}
	r.scratches.New = func() any { return new(scratch) }
	for _, secret := range secrets {
		short := len(secret) < shortBytes
		for _, form := range forms(secret, short) {
			r.automaton.add(form, short)
			if !short && (r.longBytes == 0 || len(form) < r.longBytes) {
				r.longBytes = len(form)
			}
		}
		// "+" stands for nothing else than a space.
		if strings.Contains(secret, " ") && len(r.decoders) == 3 {
			r.decoders = append(r.decoders, unescapeQuery)
		}
	}
	r.automaton.link()
	return r
}

// forms returns the texts to look for on account of secret. Most escaped forms are found by decoding
// the text instead. The usual ones are listed all the same, because they must be found even where
// they follow half an escape sequence, or something that happens to look like one.
func forms(secret string, short bool) []string {
	if secret == "" {
		return nil
	}
	unix := strings.ReplaceAll(secret, "\r\n", "\n")
	plain := []string{
		secret,
		unix,
		strings.ReplaceAll(unix, "\n", "\r\n"),
		strings.ReplaceAll(secret, "\n", "\r\n"),
		string([]rune(secret)), // as encoders of JSON write what is not UTF-8
	}
	slices.Sort(plain)
	plain = slices.Compact(plain)
	all := slices.Clone(plain)
	for _, s := range plain {
		all = append(all, strconv.Quote(s), strconv.QuoteToASCII(s))
		for _, escapeHTML := range []bool{true, false} {
			once := quoteJSON(s, escapeHTML)
			all = append(all, once, quoteJSON(once[1:len(once)-1], escapeHTML),
				asciiJSON(once, `\u%04x`), asciiJSON(once, `\u%04X`))
		}
	}
	for i := len(plain); i < len(all); i++ {
		all[i] = all[i][1 : len(all[i])-1] // without the quotes
	}
	for _, s := range plain {
		all = append(all, html.EscapeString(s))
		for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s)} {
			all = append(all, escaped, lowerPercent(escaped))
		}
	}
	if short {
		b := []byte(secret)
		all = append(all,
			base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b),
			base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
			hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func quoteJSON(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(s) // a string into a buffer: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// asciiJSON returns quoted with all that is not ASCII written in the given format.
func asciiJSON(quoted, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(quoted)) {
		if unit < utf8.RuneSelf {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

// lowerPercent returns escaped with the digits of its percent escapes in lower case.
func lowerPercent(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// Redact returns text with "[SECRET]" in place of each secret. It finds a secret as it is, escaped as
// in JSON (once or twice), in Go, in a URL or in HTML, and encoded in base64, at any place of a larger
// encoded text, or in hexadecimal. Line ends may be "\n" or "\r\n". Matches that overlap are masked
// together. Secrets of less than 6 bytes are masked where no letter, digit or underscore is next to
// them, and in base64 or hexadecimal only on their own.
//
// A mask that is already in text stays as it is, so that redacting twice is redacting once. If there
// is nothing to mask, Redact returns text itself.
func (r *Redactor) Redact(text string) string {
	if len(r.automaton.states) <= 1 {
		return text
	}
	s := r.scratches.Get().(*scratch)
	defer r.scratches.Put(s)
	// A mask ends the token that follows it, so there can be more to mask than before.
	for {
		s.found = s.found[:0]
		s.views[0].text = append(s.views[0].text[:0], text...)
		r.search(s, 0, 2, false)
		if len(s.found) == 0 {
			return text
		}
		masked := s.maskIn(text)
		if masked == text {
			return text
		}
		text = masked
	}
}

// span is the part of a text from one offset up to another.
type span struct{ from, to int }

// scratch is the memory of one search. A view is decoded from the one before it.
type scratch struct {
	views [4]view
	found []span // in the text that is searched, not in the view
}

// search records all secrets in the view at depth, and in what it decodes to in up to so many layers.
// In bytes that were decoded from base64 or hexadecimal, binary is set and tokens are not secrets.
func (r *Redactor) search(s *scratch, depth, layers int, binary bool) {
	v := &s.views[depth]
	r.automaton.each(v.text, func(from, to int, token bool) bool {
		if token && (binary || !isToken(v.text, from, to)) {
			return false
		}
		s.record(depth, span{from, to})
		return true
	})
	if layers == 0 {
		return
	}
	next := &s.views[depth+1]
	for _, d := range r.decoders {
		if next.unescape(v.text, d) {
			r.search(s, depth+1, layers-1, binary)
		}
	}
	if binary || r.longBytes == 0 {
		return
	}
	for _, e := range []*encoding{base64Text, hexText} {
		for run := range e.runs(v.text, e.chars(r.longBytes)) {
			if from := v.source(run, depth); depth > 0 && from.to-from.from == run.to-run.from {
				continue // not touched by an escape: was searched in the view before
			}
			for skip := range e.phases {
				next.decode(v.text[:run.to], run.from+skip, e)
				r.search(s, depth+1, 1, true)
			}
		}
	}
}

func (s *scratch) record(depth int, at span) {
	for ; depth > 0; depth-- {
		at = s.views[depth].source(at, depth)
	}
	s.found = append(s.found, at)
}

// maskIn returns text with a mask for each group of overlapping spans that were found.
func (s *scratch) maskIn(text string) string {
	for i := range s.found {
		s.found[i].from = escapeStart(text, s.found[i].from)
	}
	// The masks that are there already take part: what lies inside of one changes nothing, and what
	// overlaps with one becomes part of it.
	for from := 0; ; {
		i := strings.Index(text[from:], mask)
		if i < 0 {
			break
		}
		from += i + len(mask)
		s.found = append(s.found, span{from - len(mask), from})
	}
	slices.SortFunc(s.found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var b strings.Builder
	done := 0
	for i := 0; i < len(s.found); {
		group := s.found[i]
		for i++; i < len(s.found) && s.found[i].from < group.to; i++ {
			group.to = max(group.to, s.found[i].to)
		}
		b.WriteString(text[done:group.from])
		b.WriteString(mask)
		done = group.to
	}
	b.WriteString(text[done:])
	return b.String()
}

// escapeStart returns the start of the backslash escape that at is inside of, or else at. Masking
// half an escape would leave a backslash before the mask, which is not valid JSON.
func escapeStart(text string, at int) int {
	for start := max(0, at-maxEscape); start < at; start++ {
		if text[start] != '\\' {
			continue
		}
		before := len(text[:start]) - len(strings.TrimRight(text[:start], `\`))
		if before%2 != 0 {
			continue
		}
		var buf [utf8.UTFMax]byte
		end := min(len(text), start+maxEscape)
		if _, n := backslash(buf[:0], []byte(text[start:end])); start+n > at {
			return start
		}
	}
	return at
}

// isToken reports whether no letter, digit or underscore is next to text[from:to].
func isToken(text []byte, from, to int) bool {
	before, _ := utf8.DecodeLastRune(text[:from])
	after, _ := utf8.DecodeRune(text[to:])
	return !isWord(before) && !isWord(after)
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }
