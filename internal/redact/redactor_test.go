package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/effort/property"
)

// texts returns a Redactor for secrets that are not numbers.
func texts(secrets []string) *Redactor {
	var all []Secret
	for _, text := range secrets {
		all = append(all, Secret{Text: text})
	}
	return New(all)
}

// inJSON returns s as it stands between the quotes of a JSON string. Test code has its own encoders so
// that a mistake in the package's does not hide itself.
func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

// inPlainJSON is inJSON without the escapes for HTML, and with "\/".
func inPlainJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String())[1:b.Len()-2], "/", `\/`)
}

// allUnicode writes each UTF-16 unit as an escape.
func allUnicode(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, format, u)
		}
		return b.String()
	}
}

// inASCIIJSON is inJSON with escapes for all but ASCII.
func inASCIIJSON(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(inJSON(s))) {
			if u < 0x80 {
				b.WriteByte(byte(u))
			} else {
				fmt.Fprintf(&b, format, u)
			}
		}
		return b.String()
	}
}

func allPercent(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

var percentEscape = regexp.MustCompile(`%..`)

// lowerPercent writes the digits of percent escapes in lower case.
func lowerPercent(escaped string) string {
	return percentEscape.ReplaceAllStringFunc(escaped, strings.ToLower)
}

func inGo(s string) string      { q := strconv.Quote(s); return q[1 : len(q)-1] }
func inASCIIGo(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] }

// escapers are applied to a secret by itself; what they write may be followed by anything.
var escapers = map[string]func(string) string{
	"raw":                 func(s string) string { return s },
	"json":                inJSON,
	"json plain":          inPlainJSON,
	"json ascii":          inASCIIJSON(`\u%04x`),
	"json ascii upper":    inASCIIJSON(`\u%04X`),
	"json all":            allUnicode(`\u%04x`),
	"json all upper":      allUnicode(`\u%04X`),
	"json twice":          func(s string) string { return inJSON(inJSON(s)) },
	"json twice plain":    func(s string) string { return inPlainJSON(inPlainJSON(s)) },
	"json mixed":          func(s string) string { return inPlainJSON(inJSON(s)) },
	"go":                  inGo,
	"go ascii":            inASCIIGo,
	"go json":             func(s string) string { return inGo(inJSON(s)) },
	"query":               url.QueryEscape,
	"query %20":           func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") },
	"query lower":         func(s string) string { return lowerPercent(url.QueryEscape(s)) },
	"path":                url.PathEscape,
	"path lower":          func(s string) string { return lowerPercent(url.PathEscape(s)) },
	"percent":             allPercent("%%%02X"),
	"percent lower":       allPercent("%%%02x"),
	"query json":          func(s string) string { return url.PathEscape(inJSON(s)) },
	"html":                html.EscapeString,
	"html in json":        func(s string) string { return inJSON(html.EscapeString(s)) },
	"html json":           func(s string) string { return html.EscapeString(inJSON(s)) },
	"crlf":                func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"json crlf":           func(s string) string { return inJSON(strings.ReplaceAll(s, "\n", "\r\n")) },
	"hex":                 func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hex upper":           func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"base64":              func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 raw":          func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 url":          func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 raw url":      func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in json":      func(s string) string { return inPlainJSON(base64.StdEncoding.EncodeToString([]byte(s))) },
	"base64 in url":       func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"json in base64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(inJSON(s))) },
	"base64 after prefix": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s + "!")) },
}

// unusual are the escapers whose forms are found by decoding alone, so that what is before matters.
var unusual = map[string]bool{
	"json plain": true, "json all": true, "json all upper": true, "json twice plain": true, "json mixed": true,
	"go": true, "go ascii": true, "go json": true, "query json": true, "html json": true, "html in json": true, "base64 in json": true, "base64 in url": true,
	"json ascii": true, "json ascii upper": true, "json twice": true, "query": true, "query %20": true, "query lower": true, "path": true, "path lower": true, "percent": true,
	"percent lower": true,
}

func TestRedact(t *testing.T) {
	tests := []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"no secrets", nil, "anything", "anything"},
		{"empty and duplicate", []string{"", "hunter22", "hunter22"}, "a hunter22 b", "a [SECRET] b"},
		{"inside of a word", []string{"hunter22"}, "xhunter22y", "x[SECRET]y"},
		{"side by side", []string{"hunter22"}, "hunter22hunter22", "[SECRET][SECRET]"},
		{"nested", []string{"hunter22", "my-hunter22-key"}, "my-hunter22-key my-hunter22", "[SECRET] my-[SECRET]"},
		{"overlapping", []string{"abcdefgh", "ghijklmn"}, "-abcdefghijklmn-", "-[SECRET]-"},
		{"prefix of another", []string{"sk-12345", "sk-12345-long"}, "sk-12345-long sk-12345-lo", "[SECRET] [SECRET]-lo"},

		{"a short one is a token", []string{"1234"}, "1234 12345 x1234 _1234 (1234) pin=1234", "[SECRET] 12345 x1234 _1234 ([SECRET]) pin=[SECRET]"},
		{"next to a letter that is not ASCII", []string{"1234"}, "é1234 1234é «1234»", "é1234 1234é «[SECRET]»"},
		{"a short one after an escape", []string{"1234"}, `"a\n1234\t"`, `"a\n[SECRET]\t"`},
		{"a short one before an escaped letter", []string{"1234"}, `%201234%20`, `%20[SECRET]%20`},
		{"a short one in base64", []string{"1234", "hunter"}, "MTIzNA== MTIzNA MTIzNAx aHR0cDoxMjM0", "[SECRET] [SECRET] MTIzNAx aHR0cDoxMjM0"},
		{"a short one in hex", []string{"jkl"}, "6a6b6c 6A6B6C a6a6b6c", "[SECRET] [SECRET] a6a6b6c"},
		{"a token at the end of a longer word", []string{"a-b", "b"}, "xa-b", "xa-[SECRET]"},
		{"six bytes are not short", []string{"123456"}, "x1234567", "x[SECRET]7"},
		{"five bytes are", []string{"12345"}, "x123456", "x123456"},
		{"a long one that is hex of a short one", []string{"616161", "aaa"}, "x616161x", "x[SECRET]x"},
		{"a token beside a mask", []string{"1234", "hunter22"}, "hunter221234 hunter22-1234", "[SECRET]1234 [SECRET]-[SECRET]"},

		{"the mask itself", []string{"[SECRET]", "SECRET", "[", "]", "ECRET]"}, "[SECRET] SECRET [ x", "[SECRET] [SECRET] [SECRET] x"},
		{"a secret around a mask", []string{"my[SECRET]key"}, "my[SECRET]key my-key", "my[SECRET]key [SECRET]-[SECRET]"},
		{"a mask is no part of a secret", []string{"RET]abc", "SECRET"}, "[SECRET]abcd RET]abcd", "[SECRET]abcd [SECRET]d"},

		{"JSON stays JSON", []string{"nabcdef"}, `{"a":"\nabcdef"}`, `{"a":"[SECRET]"}`},
		{"numbers of JSON", []string{"123456"}, `{"n":123456.5,"m":[-1234567, true]} [123456]`, `{"n":"[SECRET]","m":["[SECRET]", true]} ["[SECRET]"]`},
		{"a secret that is punctuation", []string{`","`, `":"`}, `{"a":"b","c":1}`, `{"a":"b","c":1}`},
		{"not JSON", []string{"123456", `a","b`}, `[INFO] [123456, "a","b"]`, `[INFO] [[SECRET], "[SECRET]"]`},
		{"closed too often", []string{`a","b`}, `] [["a","b"]]`, `] [["[SECRET]"]]`},
		{"JSON only at first", []string{`a","b`}, `["a","b"] "a","b"`, `["[SECRET]","[SECRET]"] "[SECRET]"`},
		{"after a backslash that escapes nothing", []string{"secret-path"}, `C:\secret-path`, `C:\[SECRET]`},
		{"after half an escape", []string{`\nfoo"bar`}, `\` + inJSON(`\nfoo"bar`), `[SECRET]`},
		{"escapes are masked whole", []string{`pass"w/ö`}, `{"a":"\u0070ass\"w\/\u00F6"}`, `{"a":"[SECRET]"}`},
		{"not decoded to a secret", []string{"pass+word"}, "pass%20word pass word", "pass%20word pass word"},
		{"plus is a space", []string{"pass word+"}, "q=pass+word%2B&", "q=[SECRET]&"},
		{"plus is a plus", []string{"pass word+"}, "/pass%20word+/", "/[SECRET]/"},
		{"windows lines", []string{"line one\nline two"}, "line one\r\nline two", "[SECRET]"},
		{"unix lines", []string{"line one\r\nline two"}, "line one\nline two", "[SECRET]"},
		{"not UTF-8", []string{"\xff\xfe-password"}, `"\ufffd\ufffd-password" "\xff\xfe-password"` + " \ufffd\ufffd-password", `"[SECRET]" "[SECRET]" [SECRET]`},
		{"half a character", []string{"\xc3", "C3", "\xa9-password"}, "éC3 \xc3é-password x", "éC3 \xc3\xc3[SECRET] x"},
		{"half an escaped character at the end", []string{"abcde\xc3"}, `abcde\u00e9 abcde%C3%A9`, `[SECRET] [SECRET]%A9`},
		{"HTML in other spellings", []string{`p'&"<>q`}, `p&apos;&amp;&quot;&lt;&#x3E;q`, `[SECRET]`},
		{"basic auth", []string{"open sesame"}, "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Basic YWxhZGRpbjp[SECRET]=="},
		{"JSON in base64", []string{`pass"word`}, base64.StdEncoding.EncodeToString([]byte(`{"p":"pass\"word"}`)), "eyJwIjoi[SECRET]CJ9"},
		{"half escapes at the end", []string{"hunter22"}, `hunter22\ hunter22\u00 hunter22% hunter22%4 &amp`, `[SECRET]\ [SECRET]\u00 [SECRET]% [SECRET]%4 &amp`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := texts(test.secrets)
			got := r.Redact(test.text)
			require.Equal(t, test.want, got)
			require.Equal(t, got, r.Redact(got), "twice")
		})
	}
}

// A text that is also a number is masked as a text.
func TestTextThatIsAlsoANumber(t *testing.T) {
	text, number := Secret{Text: "314"}, Secret{Text: "314", Number: true}
	for _, secrets := range [][]Secret{{text, number}, {number, text}, {text}} {
		require.Equal(t, "0.[SECRET]", New(secrets).Redact("0.314"))
	}
	require.Equal(t, "0.314 [SECRET]", New([]Secret{number, number}).Redact("0.314 314"))
}

func TestRedactFindsEachForm(t *testing.T) {
	secrets := []string{
		"hunter22", "sk-ant-api03-AbC_dEf/123+456==", `quo"ted\back'tick`, "<b>&amp;\"it's\"</b>", "line one\nline two\n",
		"пароль-секрет", "מַפְתֵּחַ סוֹדִי", "🔑🔐 emoji key 🇩🇪", "tab\tand\x00control\x7f", "  spaces + plus %20 ", "\u2028line\u2029sep",
	}
	for _, secret := range secrets {
		for name, escape := range escapers {
			t.Run(name+"/"+secret, func(t *testing.T) {
				form := escape(secret)
				for _, around := range [][2]string{{"", ""}, {`{"token":"`, `"}`}, {"https://h/?a=b&t=", "&c"}, {"x ", " y"}} {
					got := texts([]string{"another-secret", secret}).Redact(around[0] + form + around[1])
					require.NotContains(t, got, form)
					if around[1] == `"}` && strings.Contains(strings.ReplaceAll(form, `\"`, ""), `"`) {
						require.Contains(t, got, around[0]+mask) // the text looks like JSON up to the quote
						continue
					}
					if name == "base64 after prefix" {
						require.Contains(t, got, mask)
						continue
					}
					got = strings.TrimRight(strings.Replace(got, around[1], "", 1), "=")
					got = strings.ReplaceAll(strings.ReplaceAll(got, "%3D", ""), "%3d", "")
					require.Equal(t, around[0]+mask, got)
				}
			})
		}
	}
}

func TestRedactFindsShortForms(t *testing.T) {
	for _, secret := range []string{"a", "1234", `a"b\`, "é/ü", "x y+", "\n", "🔑"} {
		for _, name := range []string{
			"raw", "json", "json plain", "json ascii", "json all", "json twice", "go", "query", "query lower", "path", "percent",
			"html", "hex", "hex upper", "base64", "base64 raw", "base64 url", "base64 raw url",
		} {
			form := escapers[name](secret)
			require.Equal(t, "("+mask+")", texts([]string{secret}).Redact("("+form+")"), "%s of %q", name, secret)
			if isWord([]rune(form)[0]) {
				require.Equal(t, "(Q"+form+")", texts([]string{secret}).Redact("(Q"+form+")"), "%s of %q", name, secret)
			}
		}
	}
}

// Encoders of JSON differ in what they escape. A text that is escaped twice has
// the first in a string.
func TestRedactFindsEachStyleOfJSON(t *testing.T) {
	r := texts([]string{"a/\"b\"<c>&'d+é\u2028\x01\n\\🔑"})
	for name, once := range map[string]string{
		"Go":                   `a/\"b\"\u003cc\u003e\u0026'd+é\u2028\u0001\n\\🔑`,
		"Go, without HTML":     `a/\"b\"<c>&'d+é\u2028\u0001\n\\🔑`,
		"JavaScript":           "a/\\\"b\\\"<c>&'d+é\u2028\\u0001\\n\\\\🔑",
		"Python":               `a/\"b\"<c>&'d+\u00e9\u2028\u0001\n\\\ud83d\udd11`,
		"PHP":                  `a\/\"b\"<c>&'d+\u00e9\u2028\u0001\n\\\ud83d\udd11`,
		"PHP, not ASCII":       `a\/\"b\"<c>&'d+é\u2028\u0001\n\\🔑`,
		".NET":                 `a/\u0022b\u0022\u003Cc\u003E\u0026\u0027d\u002B\u00E9\u2028\u0001\n\\\uD83D\uDD11`,
		"Go, then ASCII upper": `a/\"b\"\u003Cc\u003E\u0026'd+\u00E9\u2028\u0001\n\\\uD83D\uDD11`,
	} {
		require.Equal(t, mask, r.Redact(once), name)
		require.Equal(t, mask, r.Redact(inJSON(once)), "%s, twice", name)
	}
}

func TestRedactConcurrently(t *testing.T) {
	r := texts([]string{"hunter22", "correct horse"})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				text := strings.Repeat("x", i) + `"correct\u0020horse" `
				assert.Equal(t, strings.Repeat("x", i)+`"[SECRET]" `, r.Redact(text))
			}
		})
	}
	all.Wait()
}

func TestRedactReturnsTextItself(t *testing.T) {
	r := texts([]string{"hunter22", "correct horse", "1234"})
	text := benchText()
	got := r.Redact(text)
	require.Equal(t, text, got)
	require.Same(t, unsafe.StringData(text), unsafe.StringData(got))
	text = `["hunter2","hunter2"]` // its punctuation is a secret, but has to stay
	got = texts([]string{`","`}).Redact(text)
	require.Same(t, unsafe.StringData(text), unsafe.StringData(got))
	text = benchText()
	// The race detector makes pools forget, so a few buffers may have to be made anew.
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { r.Redact(text) }), 100.0)
}

// aSecret draws long and short secrets, many of which are awkward for some encoding.
var aSecret = rapid.OneOf(
	rapid.String(),
	rapid.StringN(1, 5, -1),
	rapid.StringMatching(`[A-Za-z0-9_-]{6,40}`),
	rapid.StringMatching(`[ab\n"\\/<&'+% u0nx\[\]]{1,12}`),
	rapid.StringOf(rapid.SampledFrom([]rune("aZ9 \"\\/\n\r\t<>&'+%=é\u2028ש\u0590🔑\U0001F1E9"))),
	rapid.SampledFrom([]string{"[SECRET]", "SECRET", "[", "]x", "RET]", `\u0041bcd`, "%41bcdef"}),
)

func isLong(secret string) bool { return len(secret) >= 6 }

func TestRedactHidesEverySecret(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(aSecret, 1, 4).Draw(t, "secrets")
		r := texts(secrets)
		var long []string
		for _, s := range secrets {
			if isLong(s) && !strings.Contains(mask, s) {
				long = append(long, s)
			}
		}
		var text strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			filler := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ab\\"%&+/ u04{}\[\]=]{0,6}`), rapid.Just(mask)).Draw(t, "filler")
			if len(long) == 0 {
				text.WriteString(filler)
				continue
			}
			name := rapid.SampledFrom(names).Draw(t, "escaper")
			if unusual[name] {
				filler += " " // else its end and the first character could make an escape together
			}
			text.WriteString(filler + escapers[name](rapid.SampledFrom(long).Draw(t, "secret")))
		}
		whole := text.String()
		switch rapid.IntRange(0, 5).Draw(t, "whole") {
		case 0:
			whole = base64.StdEncoding.EncodeToString([]byte(whole))
		case 1:
			whole = base64.RawURLEncoding.EncodeToString([]byte(whole))
		case 2:
			whole = hex.EncodeToString([]byte(whole))
		}
		got := r.Redact(whole)
		require.Equal(t, got, r.Redact(got), "twice")
		rest := strings.Split(got, mask)
		for _, s := range long {
			for name, escape := range escapers {
				if form := escape(s); !strings.ContainsAny(form, "[]") && !unusual[name] && name != "base64 after prefix" {
					for _, part := range rest {
						require.NotContains(t, part, form, "%s of %q", name, s)
					}
				}
			}
			for _, part := range rest {
				require.NotContains(t, decodeAll(part), s, "inside of base64 or hex")
			}
		}
	})
}

// names are sorted, so that a seed makes the same cases each time.
var names = slices.Sorted(maps.Keys(escapers))

// decodeAll returns what text says if it is base64, hexadecimal, from any character on.
func decodeAll(text string) string {
	var all strings.Builder
	for _, field := range strings.FieldsFunc(text, func(c rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", c)
	}) {
		field = strings.NewReplacer("-", "+", "_", "/").Replace(field)
		for skip := range min(4, len(field)) {
			part := field[skip:]
			part = part[:len(part)-len(part)%4]
			b, err := base64.StdEncoding.DecodeString(part)
			if err == nil {
				all.Write(b)
				all.WriteString("\x00\x01\x00")
			}
			if b, err := hex.DecodeString(field[skip&1 : len(field)-(len(field)-skip&1)%2]); err == nil {
				all.Write(b)
				all.WriteString("\x00\x01\x00")
			}
		}
	}
	return all.String()
}

func TestRedactLeavesOtherText(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		// No text below decodes to a letter q, and every secret has one.
		secrets := rapid.SliceOf(rapid.StringMatching(`[a-z]{3,5}q[a-z]{3,9}`)).Draw(t, "secrets")
		text := rapid.StringMatching(`([a-p "{}:,é]|\\n|\\"|%20|&amp;|\[SECRET\]){0,60}`).Draw(t, "text")
		require.Equal(t, text, texts(secrets).Redact(text))
	})
}

func FuzzRedact(f *testing.F) {
	f.Add("hunter22", "1234", `{"a":"hunter22 1234 \u0068unter22"}`)
	f.Add("[SECRET", "]", "[SECRET][SECRET]]")
	f.Add(`a\"b\\c`, "é", `"a\\\"b\\\\c é \u00e9 %c3%a9"`)
	f.Add("\xff\xfe\xfd\xfc\xfb\xfa", "+", `\xff\xfe\xfd\xfc\xfb\xfa + //79/Pv6`)
	f.Add("pass word", "a", "pass+word pass%20word cGFzcyB3b3Jk 7061737320776f7264 &#112;ass word &#x;")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		r := texts([]string{one, two})
		got := r.Redact(text)
		require.Equal(t, got, r.Redact(got), "twice")
		require.GreaterOrEqual(t, strings.Count(got, mask), min(1, strings.Count(text, mask)))
		for _, secret := range []string{one, two} {
			if !isLong(secret) {
				continue
			}
			require.Equal(t, mask, r.Redact(secret))
			for _, part := range strings.Split(got, mask) {
				require.NotContains(t, part, secret)
				require.NotContains(t, part, inGo(secret))
				require.NotContains(t, part, hex.EncodeToString([]byte(secret)))
				require.NotContains(t, part, base64.StdEncoding.EncodeToString([]byte(secret)))
			}
		}
	})
}

// benchText returns 100 KB that look like the messages of an agent.
func benchText() string {
	const line = `{"role":"tool","call_id":"call_9f8e7d6c5b4a","content":"{\"path\":\"\/srv\/data\/report.txt\",\"lines\":[\"first line\\n\",\"caf\u00e9 costs 3 & more\"]}","url":"https://example.com/a%20b?q=x+y"}` + "\n"
	return strings.Repeat(line, 100_000/len(line)+1)
}

// strayBeginnings look like the beginning of an escape sequence, or end in the
// middle of an encoded text.
var strayBeginnings = []string{"", "", "x ", "%", "%4", "&", `\`, `\u00`, "&am", `"`, "=", "\n", "é", "\xc3", "A", "["}

// TestEveryEncodingIsFound writes random secrets in every encoding.
func TestEveryEncodingIsFound(t *testing.T) {
	effort.SkipShort(t)
	seed := effort.LogSeed(t)
	for i := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		secret := longSecret(rng)
		r := texts([]string{"another secret", secret})
		for _, name := range names {
			requireHidden(t, r, escapers[name](secret), secret, rng, name)
		}
	}
}

func longSecret(rng *rand.Rand) string {
	letters := []rune([]string{
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", "0123456789abcdef",
		"aZ9 \"\\/<>&'+%=é日🔑~\t", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\n",
	}[rng.IntN(4)])
	var b strings.Builder
	b.WriteRune(letters[rng.IntN(10)])
	for range 12 + rng.IntN(300) {
		b.WriteRune(letters[rng.IntN(len(letters))])
	}
	b.WriteString("z")
	return b.String()
}

// requireHidden requires that of an encoded secret nothing but the edges of
// base64 remains, in a text with other things around it.
func requireHidden(t *testing.T, r *Redactor, form, secret string, rng *rand.Rand, name string) {
	before := strayBeginnings[rng.IntN(len(strayBeginnings))]
	if unusual[name] {
		before = "x "
	}
	got := r.Redact("before" + before + form + " after")
	require.Contains(t, got, mask, "%s of %q after %q: %q", name, secret, before, got)
	require.LessOrEqual(t, len(got), len("before"+before+mask+" after")+80, "%s of %q after %q: %q", name, secret, before, got)
	require.Equal(t, got, r.Redact(got), "%s of %q after %q twice", name, secret, before)
}

func TestTextThatOnlyLooksEncodedStays(t *testing.T) {
	secret := "correct horse battery"
	form := base64.StdEncoding.EncodeToString([]byte(secret))
	r := texts([]string{secret})
	for name, text := range map[string]string{
		"words between": form[:10] + " and " + form[10:],
		"spaced hex":    strings.Join(strings.SplitAfterN(hex.EncodeToString([]byte(secret)), "", 5), " "),
		"lines":         form[:10] + "\n" + form[10:],
	} {
		require.Equal(t, text, r.Redact(text), name)
	}

	var quoted bytes.Buffer
	w := quotedprintable.NewWriter(&quoted)
	_, err := w.Write([]byte(secret))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, mask, r.Redact(quoted.String()))
}
