package statetest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/value"
)

// A codec writes bytes in another form. Text ones need a text.
type codec struct {
	name   string
	text   bool // the input has to be UTF-8
	encode func(s string) string
}

var encodings = []codec{
	{"upper", true, strings.ToUpper},
	{"json", true, func(s string) string { b, _ := json.Marshal(s); return string(b) }},
	{"url", false, url.QueryEscape},
	{"path", false, url.PathEscape},
	{"html", true, html.EscapeString},
	{"go", false, strconv.Quote},
	{"go ascii", false, strconv.QuoteToASCII},
	{"base64", false, func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
	{"raw url base64", false, func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
	{"shifted base64", false, func(s string) string { return base64.URLEncoding.EncodeToString([]byte("x" + s + "yz")) }},
	{"shifted base64 2", false, func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s)) }},
	{"wrapped base64", false, func(s string) string {
		return wrapped(base64.StdEncoding.EncodeToString([]byte(s)), 16, "\n")
	}},
	{"hex", false, func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"HEX", false, func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
	{"gzip base64", false, func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}},
	{"zlib hex", false, func(s string) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return hex.EncodeToString(b.Bytes())
	}},
	{"bytes", false, func(s string) string { return fmt.Sprint([]byte(s)) }},
}

// innerEncodings are those that
// only a value itself has here.
var innerEncodings = []codec{
	{"utf16le", true, func(s string) string { return utf16Text(s, false) }},
	{"utf16be", true, func(s string) string { return utf16Text(s, true) }},
	{"lines", true, func(s string) string { return wrapped(s, 4, "\n") }},
	{"list", true, func(s string) string { return `["` + wrapped(s, 5, `","`) + `"]` }},
}

func wrapped(s string, n int, sep string) string {
	var parts []string
	for len(s) > n {
		parts, s = append(parts, s[:n]), s[n:]
	}
	return strings.Join(append(parts, s), sep)
}

func utf16Text(s string, big bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func finds(value, text string) bool {
	return search(value, false, text)
}

func search(text string, number bool, in string) (found bool) {
	leaks, complete := leaksOf(in, []hiddenValue{{pattern: newPattern(value.Leaf{Text: text, Number: number})}})
	return complete && len(leaks) > 0
}

func TestEachEncodingIsFound(t *testing.T) {
	for _, value := range []string{"4242-4242-4242", `pass"w<o>rd&1`, "sk-live/9+8=7_x", "Grüße an Zoë", "пароль-12345"} {
		for _, e := range append(encodings, innerEncodings...) {
			if e.name == "upper" && strings.Contains(value, "ß") {
				continue
			}
			text := "before it " + e.encode(value) + " and after it"
			if strings.HasPrefix(e.name, "utf16") {
				text = e.encode("before " + value + " after")
			}
			if (e.name == "lines" || e.name == "list") && value[0] > 0x7f {
				continue // it would be cut within a character
			}
			require.True(t, finds(value, text), "%s: %q", e.name, text)
			if e.name != "upper" && utf8.ValidString(text) {
				twice, _ := json.Marshal(map[string]string{"a": text})
				require.True(t, finds(value, string(twice)), "%s in JSON: %s", e.name, twice)
			}
		}
	}
}

func TestPiecesAndTokens(t *testing.T) {
	tests := []struct {
		value, text string
		found       bool
	}{
		{"sk-live-0123456789abcdef", "it ends with 456789abcdef", true},
		{"sk-live-0123456789abcdef", "it ends with 56789abcdef", false},
		{"4242-4242-424", "it begins with 4242-4242-42", false},
		{"pin7", "the pin7 is it", true},
		{"pin7", "the pin77 is it", false},
		{"pin7", `{"pin":"pin7"}`, true},
		{"pin7", "auth " + base64.StdEncoding.EncodeToString([]byte("ann:pin7")), true},
		{"----------------------------", "a line ------------------ of dashes", false},
		{`C:\new%41path`, `"C:\\new%41path"`, true},
		{"4242424242", "4,242,424,242", true},
		{"0 0 0 %0 000000", `["0 0 0"," %0 0","00000"]`, true},
		{"4242424242424242", "card 4242 4242 4242 4242", true},
		{"123456", "1, 2, 3, 4, 5, 6", false},
		{"日本語の秘密です", utf16Text("日本語の秘密です", true), true},
	}
	for _, test := range tests {
		require.Equal(t, test.found, finds(test.value, test.text), "%q in %q", test.value, test.text)
	}
	for text, found := range map[string]bool{"129.90 EUR": true, "129.95": false, "1129.9": false, "129.9": true} {
		require.Equal(t, found, search("129.9", true, text), text)
	}
	require.True(t, search("123456", true, "n=123456,"))
	require.False(t, search("123456", true, "n=1234567"), "it is another number")
}

const (
	secretBytes = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/+"&<%\ -`
	wordBytes   = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// drawText returns a random text of some of the bytes.
func drawText(r *rand.Rand, bytes string, least, more int) string {
	text := make([]byte, least+r.IntN(more))
	for i := range text {
		text[i] = bytes[r.IntN(len(bytes))]
	}
	return string(text)
}

// Each value in up to two encodings is found but for one of a hundred, and in
// three but for two.
func TestNestedEncodingsAreFound(t *testing.T) {
	effort.SkipShort(t)
	for depth, missed := range []int{0, 2, 10, 20} {
		r := rand.New(rand.NewPCG(1, uint64(depth)))
		var misses []string
		for range 1000 {
			value := drawText(r, secretBytes, 4, 26) + drawText(r, wordBytes, 6, 1)
			text := value
			var names []string
			// What looks like an escape is no longer one if a line ends within it.
			if depth > 0 && !strings.ContainsAny(value, `%\&`) && r.IntN(5) == 0 {
				e := innerEncodings[r.IntN(len(innerEncodings))]
				text, names = e.encode(text), append(names, e.name)
			}
			for range depth {
				e := encodings[1+r.IntN(len(encodings)-1)]
				text, names = e.encode(text), append(names, e.name)
			}
			text = drawText(r, wordBytes+" \n", 0, 60) + " " + text + " " + drawText(r, wordBytes+" \n", 0, 60)
			if !finds(value, text) {
				misses = append(misses, fmt.Sprintf("%q as %v", value, names))
			}
		}
		require.LessOrEqual(t, len(misses), missed, "depth %d:\n%s", depth, strings.Join(misses, "\n"))
	}
}

func TestOtherTextsAreNotFound(t *testing.T) {
	effort.SkipShort(t)
	r := rand.New(rand.NewPCG(2, 0))
	for range 2000 {
		value := drawText(r, wordBytes, 8, 12)
		text := drawText(r, secretBytes, 0, 60)
		for range r.IntN(4) {
			text = " " + encodings[r.IntN(len(encodings))].encode(text) + " " + drawText(r, secretBytes, 0, 60)
		}
		require.False(t, finds(value, text), "%q in %q", value, text)
	}
}

func TestLongTextsAreSearchedWholly(t *testing.T) {
	effort.SkipShort(t)
	card := "4242-4242-4242-4242"
	words := strings.Repeat(`{"role":"user","content":"The keyboard is \"broken\", please & hurry.\n"}`+"\n", 3_000)
	digits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(words[:7919], 24)))
	for _, text := range []string{words, digits} {
		require.True(t, finds(card, text+card))
		require.True(t, views(text, func(view) {}))
		require.False(t, finds(card, text))
	}
}

// A text that inflates to more than NoLeak decodes is no text without a leak.
func TestABombIsNotSearchedWholly(t *testing.T) {
	effort.SkipShort(t)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for range 100 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	require.NoError(t, w.Close())
	require.False(t, views(base64.StdEncoding.EncodeToString(b.Bytes()), func(view) {}))
}
