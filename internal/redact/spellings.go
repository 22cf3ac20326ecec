package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
	return sortedUnique(all)
}

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
