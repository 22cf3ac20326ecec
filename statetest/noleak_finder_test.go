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
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
	found, complete := newFinder([]leaf{{text: value}}).find(text)
	return complete && len(found) > 0
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
		{"123456", "1, 2, 3, 4, 5, 6", false},
		{"日本語の秘密です", utf16Text("日本語の秘密です", true), true},
	}
	for _, test := range tests {
		require.Equal(t, test.found, finds(test.value, test.text), "%q in %q", test.value, test.text)
	}
	for text, found := range map[string]bool{"129.90 EUR": true, "129.95": false, "1129.9": false, "129.9": true} {
		got, _ := newFinder([]leaf{{"129.9", true}}).find(text)
		require.Equal(t, found, len(got) > 0, text)
	}
}

var secretText = rapid.StringMatching(`[A-Za-z0-9_/+"&<%\\ -]{4,30}[A-Za-z0-9]{6}`)

// noise is text around a value, which ends and begins with a space.
var noise = rapid.Custom(func(t *rapid.T) string {
	return " " + rapid.StringMatching(`[ -~\n]{0,60}`).Draw(t, "noise") + " "
})

func TestNestedEncodingsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := secretText.Draw(t, "value")
		text := value
		var names []string
		// What looks like an escape is no longer one if a line ends within it.
		if !strings.ContainsAny(value, `%\&`) && rapid.IntRange(0, 4).Draw(t, "inner") == 0 {
			e := rapid.SampledFrom(innerEncodings).Draw(t, "innermost")
			text, names = e.encode(text), append(names, e.name)
		}
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			e := rapid.SampledFrom(encodings).Draw(t, "encoding")
			if e.name == "upper" && len(names) > 0 {
				continue // it would break base64
			}
			text, names = e.encode(text), append(names, e.name)
		}
		text = noise.Draw(t, "before") + text + noise.Draw(t, "after")
		require.True(t, finds(value, text), "%q as %v in %q", value, names, text)
		masked := newSecrets()
		masked.addValue(value)
		require.NotContains(t, masked.mask(text), value)
	})
}

func TestOtherTextsAreNotFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-z0-9]{8,20}`).Draw(t, "value")
		text := noise.Draw(t, "text")
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			text = noise.Draw(t, "before") + rapid.SampledFrom(encodings).Draw(t, "encoding").encode(text) + noise.Draw(t, "after")
		}
		require.False(t, finds(value, text), "%q in %q", value, text)
	})
}

func TestLongTextsAreSearchedWholly(t *testing.T) {
	value := "4242-4242-4242-4242"
	words := strings.Repeat(`{"role":"user","content":"The keyboard is \"broken\", please & hurry.\n"}`+"\n", 14_000)
	digits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(words[:7919], 96)))
	for _, text := range []string{words, digits} {
		found, complete := newFinder([]leaf{{text: value}}).find(text + value)
		require.True(t, complete)
		require.NotEmpty(t, found)
	}
}

func BenchmarkFind(b *testing.B) {
	words := strings.Repeat(`{"role":"user","content":"The keyboard is \"broken\", please & hurry.\n"}`+"\n", 14_000)
	f := newFinder([]leaf{{text: "4242-4242-4242-4242"}, {text: "pin7"}})
	for _, test := range []struct{ name, text string }{
		{"words", words},
		{"base64", base64.StdEncoding.EncodeToString([]byte(words))[:1<<20]},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(len(test.text)))
			for b.Loop() {
				f.find(test.text)
			}
		})
	}
}
