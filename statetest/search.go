package statetest

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text, or what a step made of the text of another view: it undoes
// one layer of escapes, joins lines, or decodes all parts that it can, with a NUL
// after each. The search of NoLeak reads what the views of a text say. It shares
// no code with package internal/redact, which looks for the encoded values
// instead, so that each tests the other.
type view struct {
	text    string
	steps   []string // what the text was before each step, the last first
	depth   int
	decoded bool // from base64 and the like, not only unescaped
}

// A find is how much of a value a text tells, and how.
type find struct {
	bytes int    // of the value, 0 if there is none
	how   string // "base64 in escaped text"
}

const (
	maxDepth   = 9       // three encodings, each escaped and on several lines
	minWork    = 1 << 25 // bytes of views, for any text
	pieceBytes = 12      // of a long value that count
	longBytes  = 16
	shortBytes = 6 // a value below is part of other words by accident
	pieceKinds = 5 // different bytes of a piece at least: a line of dashes is none
)

// search returns what a text tells of each value. Not complete, it had too much
// to decode.
func search(text string, values []leaf) (finds []find, complete bool) {
	finds = make([]find, len(values))
	patterns := make([]pattern, len(values))
	for i, v := range values {
		patterns[i] = newPattern(v)
	}
	work := minWork + 32*len(text)
	seen := map[string]bool{}
	for queue := []view{{text: text}}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v.text == "" || seen[v.text] {
			continue
		}
		seen[v.text] = true
		if work -= len(v.text); work < 0 {
			return finds, false
		}
		folded := fold(v.text)
		short := unspread(folded)
		for i, p := range patterns {
			if n := p.told(v, folded, short); n > finds[i].bytes {
				finds[i] = find{n, strings.Join(v.steps, " in ")}
			}
		}
		if v.depth < maxDepth {
			queue = append(queue, v.next("escaped text", unescape(v.text), false))
			queue = append(queue, v.next("several lines", lineBreak.ReplaceAllString(v.text, ""), false))
			queue = append(queue, v.decode(work)...)
		}
	}
	return finds, true
}

func (v view) next(kind, text string, decoded bool) view {
	steps := v.steps
	if len(steps) == 0 || steps[0] != kind {
		steps = append([]string{kind}, steps...)
	}
	return view{text, steps, v.depth + 1, v.decoded || decoded}
}

var (
	escapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\(?:U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|[abfnrtv\\"'/])`)
	// A % that begins no escape would make a URL invalid.
	percent   = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	lineBreak = regexp.MustCompile(`(?:[\r\n]|\\[rn])+[ \t]*`)
)

// unescape undoes one layer of the escapes of JSON, Go, URLs and HTML.
func unescape(text string) string {
	text = escapes.ReplaceAllStringFunc(text, func(e string) string {
		var plain string
		if json.Unmarshal([]byte(`"`+e+`"`), &plain) == nil {
			return plain
		}
		if plain, err := strconv.Unquote(`"` + e + `"`); err == nil {
			return plain
		}
		return strings.TrimPrefix(e, `\`)
	})
	return html.UnescapeString(percent.ReplaceAllStringFunc(text, func(e string) string {
		plain, _ := url.PathUnescape(e)
		return plain
	}))
}

// decoders are the encodings of bytes as text. Where base64 and hex begin in a
// word is not known.
var decoders = []struct {
	kind   string
	words  *regexp.Regexp
	starts int
	decode func(word string) []byte
}{
	{"base64", regexp.MustCompile(`[A-Za-z0-9+/_-]{6,}={0,2}`), 4, func(word string) []byte {
		word = alphabet.Replace(word)
		if len(word)%4 == 1 {
			word = word[:len(word)-1]
		}
		said, _ := base64.RawStdEncoding.DecodeString(word)
		return said
	}},
	{"hex", regexp.MustCompile(`[0-9a-fA-F]{8,}`), 2, func(word string) []byte {
		said, _ := hex.DecodeString(word) // without half a byte at the end
		return said
	}},
	{"a list of bytes", regexp.MustCompile(`\b\d{1,3}(?:[,\s]+\d{1,3}){3,}`), 1, func(list string) []byte {
		var said []byte
		for _, number := range strings.FieldsFunc(list, func(r rune) bool { return !unicode.IsDigit(r) }) {
			if n, err := strconv.ParseUint(number, 10, 8); err == nil {
				said = append(said, byte(n))
			}
		}
		return said
	}},
}

var alphabet = strings.NewReplacer("-", "+", "_", "/", "=", "")

// decode returns what the words of a view say that are encoded, and what is
// compressed in them.
func (v view) decode(limit int) []view {
	var views []view
	for _, d := range decoders {
		words := d.words.FindAllString(v.text, -1)
		for start := range d.starts {
			var b strings.Builder
			for _, word := range words {
				if said := d.decode(word[start:]); len(said) > 2 {
					b.Write(said)
					b.WriteByte(0)
				}
			}
			decoded := v.next(d.kind, b.String(), true)
			views = append(views, decoded, decoded.next("compressed text", inflate(decoded.text, limit), true))
		}
	}
	return views
}

// headers are those of gzip and zlib.
var headers = []string{"\x1f\x8b\x08", "\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"}

// inflate returns what the gzip and zlib in a text say.
func inflate(text string, limit int) string {
	var said []byte
	for _, header := range headers {
		for at := range places(text, header) {
			var r io.Reader
			var err error
			if packed := strings.NewReader(text[at:]); header == headers[0] {
				r, err = gzip.NewReader(packed)
			} else {
				r, err = zlib.NewReader(packed)
			}
			if err == nil {
				more, _ := io.ReadAll(io.LimitReader(r, int64(max(0, limit-len(said)+1)))) // as far as it goes
				said = append(said, more...)
			}
		}
	}
	return string(said)
}

// A pattern is a value as it is looked for.
type pattern struct {
	leaf
	plain []string // folded: as it is, and with its own escapes undone
	wide  []string // in UTF-16
	short string   // without what stands between elements and lines
}

func newPattern(v leaf) pattern {
	p := pattern{leaf: v, plain: []string{fold(v.text)}}
	if plain := fold(unescape(unescape(unescape(v.text)))); plain != p.plain[0] && len(plain) >= shortBytes {
		p.plain = append(p.plain, plain)
	}
	if short := unspread(p.plain[0]); len(short) >= shortBytes && !v.number {
		p.short = short
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(v.text)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	p.wide = []string{string(little), string(big)}
	return p
}

// told returns how many bytes of the value a view has.
func (p pattern) told(v view, folded, short string) int {
	for _, plain := range p.plain {
		for at := range places(folded, plain) {
			if p.counts(v, folded, at, at+len(plain)) {
				return len(p.text)
			}
		}
	}
	for _, wide := range p.wide {
		if strings.Contains(v.text, wide) {
			return len(p.text)
		}
	}
	if p.short != "" && strings.Contains(short, p.short) && p.isSpread(folded) {
		return len(p.text)
	}
	longest := 0
	if !p.number {
		for _, span := range pieces(folded, p.plain[0]) {
			longest = max(longest, span[1]-span[0])
		}
	}
	return longest
}

const betweenElements = " \t\r\n\"," // and between lines

var unspread = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", `"`, "", ",", "").Replace

// isSpread reports whether a text has the value over some elements or lines. A
// list of single characters says nothing.
func (p pattern) isSpread(text string) bool {
	for at := range places(text, p.short[:1]) {
		found, breaks := 0, 0
		for i := at; i < len(text) && found < len(p.short); i++ {
			switch {
			case text[i] == p.short[found]:
				found++
			case strings.IndexByte(betweenElements, text[i]) < 0:
				i = len(text)
			case text[i-1] == p.short[found-1]:
				breaks++
			}
		}
		if found == len(p.short) && breaks <= strings.Count(p.text, " ")+found/3 {
			return true
		}
	}
	return false
}

// places yields where a text has a part.
func places(text, part string) func(yield func(at int) bool) {
	return func(yield func(at int) bool) {
		for from := 0; part != ""; {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at) {
				return
			}
			from += at + 1
		}
	}
}

// counts reports whether a value at a place is no part of something else by
// accident. Zeros at the end of a fraction make no other number.
func (p pattern) counts(v view, text string, from, to int) bool {
	isShort := len(p.text) < shortBytes
	if isShort && v.decoded && (len(p.text) < 4 || !utf8.ValidString(text[max(0, from-4):min(len(text), to+4)])) {
		return false // many words are base64 of a few bytes
	}
	for p.number && strings.Contains(p.text, ".") && to < len(text) && text[to] == '0' {
		to++
	}
	if isShort {
		return !isWord(text, from-1) && !isWord(text, to)
	}
	return !p.number || !isDigit(text, from-1) && !isDigit(text, to)
}

func isDigit(text string, at int) bool {
	return at >= 0 && at < len(text) && '0' <= text[at] && text[at] <= '9'
}

func isWord(text string, at int) bool {
	return isDigit(text, at) || at >= 0 && at < len(text) &&
		('a' <= text[at]|0x20 && text[at]|0x20 <= 'z' || text[at] >= utf8.RuneSelf)
}

// pieces returns where a text has pieces of a long value: from and to. Each piece
// has a block of half its least size.
func pieces(text, value string) (spans [][2]int) {
	const block = pieceBytes / 2
	if len(value) < longBytes {
		return nil
	}
	for i := 0; i+block <= len(value); i += block {
		for at := range places(text, value[i:i+block]) {
			from, to := at, at+block
			for j := i; j > 0 && from > 0 && text[from-1] == value[j-1]; j-- {
				from--
			}
			for j := i + block; j < len(value) && to < len(text) && text[to] == value[j]; j++ {
				to++
			}
			kinds := map[byte]bool{}
			for _, c := range []byte(text[from:to]) {
				kinds[c] = true
			}
			if to-from >= pieceBytes && len(kinds) >= pieceKinds {
				spans = append(spans, [2]int{from, to})
			}
		}
	}
	return spans
}

// fold returns text in lower case, with spaces for the + that stand for them in
// URLs. Every byte stays at its place.
func fold(text string) string {
	folded := []byte(text)
	for i, r := range text {
		low := unicode.ToLower(r)
		if r == '+' {
			low = ' '
		}
		if low != r && utf8.RuneLen(low) == utf8.RuneLen(r) {
			utf8.EncodeRune(folded[i:], low)
		}
	}
	return string(folded)
}
