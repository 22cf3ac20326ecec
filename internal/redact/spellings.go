package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxStates bounds the memory of an automaton. Further secrets are looked
	// for by fewer spellings with shorter heads.
	maxStates = 1 << 20
	shortHead = 16
	maxListed = 64 << 10 // the length up to which all spellings are listed
)

// addSecrets adds the patterns of secrets. The shortest come first, because
// they need the automaton most.
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
	r.maxSpelling = 32*longest + 190
	texts := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	hasSpace := false
	for _, text := range texts {
		r.addSecret(text, numbers[text])
		hasSpace = hasSpace || strings.Contains(text, " ")
	}
	if hasSpace { // "+" stands only for a space
		r.unescapers = append(r.unescapers, unescapeQuery)
	}
}

func (r *Redactor) addSecret(text string, number bool) {
	short, k := len(text) < shortBytes, certainKind
	switch {
	case short && number:
		k = numberKind
	case short:
		k = tokenKind
	}
	head := longBytes
	if len(r.automaton.states) > maxStates {
		head = shortHead
	}
	patterns := plainSpellings(text)
	if len(text) <= maxListed && head == longBytes && k != numberKind { // 33 is not 3 in hexadecimal
		patterns = spellings(text, short)
	}
	for _, pattern := range patterns {
		if !short && (r.leastCertain == 0 || len(pattern) < r.leastCertain) {
			r.leastCertain = len(pattern)
		}
		if len(pattern) <= head {
			r.automaton.addPattern(pattern, k)
			continue
		}
		at := r.automaton.addPattern(pattern[:head], headKind)
		r.long[at] = append(r.long[at], newLongPattern(pattern))
	}
}

// spellings returns the texts to look for because of a secret. Most escaped
// spellings are found by unescaping the text instead. The usual ones are listed
// all the same: they must be found even after half an escape sequence, or after
// something that looks like one. A short secret is not searched for in decoded
// bytes, so that its encoded spellings are listed as well.
func spellings(secret string, short bool) []string {
	if secret == "" {
		return nil
	}
	plain := plainSpellings(secret)
	all := append(make([]string, 0, 16*len(plain)+6), plain...)
	for _, s := range plain {
		all = append(appendQuoted(all, s), html.EscapeString(s))
		query := url.QueryEscape(s)
		component := strings.ReplaceAll(query, "+", "%20")
		for _, escaped := range []string{query, component, componentMarks.Replace(component), url.PathEscape(s)} {
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
	return sortedUnique(all)
}

// componentMarks undoes what encodeURIComponent does not escape.
var componentMarks = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

func sortedUnique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// plainSpellings returns the secret with either kind of line ends, and as
// encoders of JSON write invalid UTF-8.
func plainSpellings(secret string) []string {
	unix := strings.ReplaceAll(secret, "\r\n", "\n")
	return sortedUnique([]string{
		secret,
		unix,
		strings.ReplaceAll(unix, "\n", "\r\n"),
		strings.ReplaceAll(secret, "\n", "\r\n"),
		string([]rune(secret)),
	})
}

// appendQuoted appends what encoders of Go and of JSON write for s, without the
// quotes around it.
func appendQuoted(all []string, s string) []string {
	first := len(all)
	all = append(all, strconv.Quote(s), strconv.QuoteToASCII(s))
	for _, escapeHTML := range []bool{true, false} {
		once := quoteJSON(s, escapeHTML)
		twice := quoteJSON(trimQuotes(once), escapeHTML)
		all = append(all, once, twice, asciiJSON(once, `\u%04x`), asciiJSON(once, `\u%04X`))
	}
	for i := first; i < len(all); i++ {
		all[i] = trimQuotes(all[i])
	}
	return all
}

func trimQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

func quoteJSON(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(s) // a string into a buffer: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// asciiJSON returns quoted with all that is not ASCII in the given format.
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

// lowerPercent returns escaped with the digits of its percent escapes in lower
// case.
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
