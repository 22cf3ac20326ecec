package statetest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text, or what a step made of the text of another view: it undoes
// one layer of escapes, or decodes all parts that it can, with a NUL after each.
// The search of NoLeak reads what the views of a text say. It shares no code
// with package internal/redact, which looks for the encoded values instead, so
// that each tests the other.
type view struct {
	text   string
	parent *view  // nil for a text
	parts  []part // of the parent that were decoded
	kind   string // what the text was before the step: "base64"
	depth  int
}

// A part is the place in the text of a view where what a part of the parent
// says begins, and that part.
type part struct{ at, from, to int }

// A find is a part of the text of a view that no step has decoded.
type find struct {
	view     *view
	from, to int
	value    int
	bytes    int    // of the value that were found
	how      string // "base64 in escaped text"
}

const (
	maxDepth   = 9       // three encodings, each escaped and on several lines
	minWork    = 1 << 25 // bytes of views, for any text
	pieceBytes = 12      // of a long value that count
	longBytes  = 16
	shortBytes = 6 // a value below is part of other words by accident
	pieceKinds = 5 // different bytes of a piece at least: a line of dashes is none
)

// search finds values in a text. Not complete, it had too much to decode.
func search(text string, values []leaf) (finds []find, complete bool) {
	patterns := make([]pattern, len(values))
	least := longBytes
	for i, v := range values {
		patterns[i] = newPattern(v)
		least = min(least, max(4, len(v.text)))
	}
	least = min(least, pieceBytes)
	work := minWork + 32*len(text)
	seen := map[string]bool{}
	for queue := []*view{{text: text}}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v.text == "" || seen[v.text] {
			continue
		}
		seen[v.text] = true
		if work -= len(v.text); work < 0 {
			return finds, false
		}
		folded := fold(v.text)
		short := squeeze(folded)
		for i, p := range patterns {
			for _, span := range p.find(v, folded, short) {
				finds = append(finds, v.base(span, i))
			}
		}
		if v.depth < maxDepth {
			queue = append(queue, v.unescaped(), v.joined())
			queue = append(queue, v.decoded(least, work)...)
		}
	}
	return finds, true
}

// base returns the find of a value whose place is in the view before its first
// step of decoding.
func (v *view) base(span [3]int, value int) find {
	f := find{from: span[0], to: span[1], value: value, bytes: span[2]}
	var steps []string
	for ; v.parts != nil; v = v.parent {
		first := v.partAt(f.from)
		last := v.partAt(max(f.from, f.to-1))
		f.from, f.to = first.from, last.to
		if len(steps) == 0 || steps[len(steps)-1] != v.kind {
			steps = append(steps, v.kind)
		}
	}
	if v.parent != nil {
		steps = append(steps, v.kind)
	}
	f.view, f.how = v, strings.Join(steps, " in ")
	return f
}

// partAt returns the part with a place.
func (v *view) partAt(at int) part {
	i, found := slices.BinarySearchFunc(v.parts, at, func(p part, at int) int { return p.at - at })
	if !found {
		i--
	}
	return v.parts[max(0, i)]
}

// change returns the view that a function makes of the text, or of each part.
func (v *view) change(kind string, fn func(string) string) *view {
	next := &view{parent: v, kind: kind, depth: v.depth + 1}
	if v.parts == nil {
		next.text = fn(v.text)
		return next
	}
	var b strings.Builder
	for i, p := range v.parts {
		end := len(v.text)
		if i+1 < len(v.parts) {
			end = v.parts[i+1].at
		}
		next.parts = append(next.parts, part{b.Len(), p.at, end})
		b.WriteString(fn(v.text[p.at:end]))
	}
	next.text = b.String()
	return next
}

var (
	escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|[abfnrtv\\"'/])`)
	halves = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	// A % that begins no escape would make a URL invalid.
	percent = regexp.MustCompile(`%([0-9a-fA-F]{2})?`)
)

// unescaped undoes one layer of the escapes of JSON, Go, URLs and HTML.
func (v *view) unescaped() *view { return v.change("escaped text", unescape) }

func unescape(text string) string {
	text = halves.ReplaceAllStringFunc(text, func(e string) string {
		high, _ := strconv.ParseUint(e[2:6], 16, 32)
		low, _ := strconv.ParseUint(e[8:], 16, 32)
		return string(utf16.DecodeRune(rune(high), rune(low)))
	})
	text = escape.ReplaceAllStringFunc(text, func(e string) string {
		if e == `\/` || e == `\'` {
			return e[1:]
		}
		plain, err := strconv.Unquote(`"` + e + `"`)
		if err != nil {
			return e
		}
		return plain
	})
	text = percent.ReplaceAllStringFunc(text, func(e string) string {
		plain, err := url.PathUnescape(e)
		if err != nil {
			return e
		}
		return plain
	})
	return html.UnescapeString(text)
}

var lineBreak = regexp.MustCompile(`(?:[\r\n]|\\[rn])+[ \t]*`)

// joined joins the lines, as those of wrapped base64.
func (v *view) joined() *view {
	return v.change("several lines", func(text string) string { return lineBreak.ReplaceAllString(text, "") })
}

var (
	base64Text = regexp.MustCompile(`[A-Za-z0-9+/_-]{6,}={0,2}`)
	hexText    = regexp.MustCompile(`[0-9a-fA-F]{8,}`)
	byteList   = regexp.MustCompile(`\b\d{1,3}(?:[,\s]+\d{1,3}){3,}`)
	alphabet   = strings.NewReplacer("-", "+", "_", "/", "=", "")
)

// decoded returns what the parts of a text say that are base64, hex and lists of
// bytes, and the compressed ones inflated. Where base64 and hex begin in a word
// is not known. What says fewer bytes than least is left out.
func (v *view) decoded(least, limit int) []*view {
	var views []*view
	add := func(kind string, format *regexp.Regexp, decode func(string) []byte) {
		next := &view{parent: v, kind: kind, depth: v.depth + 1, parts: []part{}}
		var b strings.Builder
		for _, at := range format.FindAllStringIndex(v.text, -1) {
			if said := decode(v.text[at[0]:at[1]]); len(said) >= least {
				next.parts = append(next.parts, part{b.Len(), at[0], at[1]})
				b.Write(said)
				b.WriteByte(0)
			}
		}
		next.text = b.String()
		views = append(views, next)
		if slices.ContainsFunc(headers, func(h string) bool { return strings.Contains(next.text, h) }) {
			packed := next.change("compressed text", func(text string) string { return inflate(text, limit) })
			views = append(views, packed)
		}
	}
	for skip := range 4 {
		add("base64", base64Text, func(word string) []byte {
			word = alphabet.Replace(word[skip:])
			if len(word)%4 == 1 {
				word = word[:len(word)-1]
			}
			said, _ := base64.RawStdEncoding.DecodeString(word)
			return said
		})
	}
	for skip := range 2 {
		add("hex", hexText, func(word string) []byte {
			said, _ := hex.DecodeString(word[skip:]) // without half a byte at the end
			return said
		})
	}
	add("a list of bytes", byteList, func(list string) []byte {
		var said []byte
		for _, number := range strings.FieldsFunc(list, func(r rune) bool { return !unicode.IsDigit(r) }) {
			if n, err := strconv.ParseUint(number, 10, 8); err == nil {
				said = append(said, byte(n))
			}
		}
		return said
	})
	return views
}

// headers are those of gzip and zlib.
var headers = []string{"\x1f\x8b\x08", "\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"}

// inflate returns what the gzip and zlib in a text say.
func inflate(text string, limit int) string {
	var said []byte
	for at := range text {
		i := slices.IndexFunc(headers, func(h string) bool { return strings.HasPrefix(text[at:], h) })
		if i < 0 || len(said) >= limit {
			continue
		}
		var r io.Reader
		var err error
		if packed := strings.NewReader(text[at:]); i == 0 {
			r, err = gzip.NewReader(packed)
		} else {
			r, err = zlib.NewReader(packed)
		}
		if err == nil {
			more, _ := io.ReadAll(io.LimitReader(r, int64(limit-len(said)+1))) // as far as it goes
			said = append(said, more...)
		}
	}
	return string(said)
}

// A pattern is a value as it is looked for.
type pattern struct {
	leaf
	plain  []string // folded: as it is, and with its own escapes undone
	wide   []string // in UTF-16
	short  string   // without what stands between elements and lines
	breaks int      // in the value itself
}

func newPattern(v leaf) pattern {
	p := pattern{leaf: v, plain: []string{fold(v.text)}}
	if plain := fold(unescape(unescape(unescape(v.text)))); plain != p.plain[0] && len(plain) >= shortBytes {
		p.plain = append(p.plain, plain)
	}
	if s := squeeze(p.plain[0]); len(s.text) >= shortBytes && !v.number {
		p.short, p.breaks = s.text, s.breaks(0, len(s.text))
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(v.text)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	p.wide = []string{string(little), string(big)}
	return p
}

// find returns where a view has the value or a piece of it: from, to and the
// number of bytes of the value.
func (p pattern) find(v *view, folded string, short squeezed) (spans [][3]int) {
	for _, plain := range p.plain {
		for at := range places(folded, plain) {
			if p.counts(v, folded, at, at+len(plain)) {
				spans = append(spans, [3]int{at, at + len(plain), len(p.text)})
			}
		}
	}
	for _, wide := range p.wide {
		for at := range places(v.text, wide) {
			spans = append(spans, [3]int{at, at + len(wide), len(p.text)})
		}
	}
	if spans != nil {
		return spans
	}
	for at := range places(short.text, p.short) {
		if end := at + len(p.short); short.breaks(at, end) <= p.breaks+len(p.short)/3 {
			spans = append(spans, [3]int{short.at[at], short.at[end-1] + 1, len(p.text)})
		}
	}
	if spans == nil && !p.number {
		spans = pieces(folded, p.plain[0])
	}
	return spans
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
func (p pattern) counts(v *view, text string, from, to int) bool {
	if len(p.text) < shortBytes {
		if v.parts != nil && (len(p.text) < 4 || !utf8.ValidString(text[max(0, from-4):min(len(text), to+4)])) {
			return false // many words are base64 of a few bytes
		}
		for p.number && strings.Contains(p.text, ".") && to < len(text) && text[to] == '0' {
			to++
		}
		return !isWord(text, from-1) && !isWord(text, to)
	}
	if !p.number {
		return true
	}
	for strings.Contains(p.text, ".") && to < len(text) && text[to] == '0' {
		to++
	}
	return !isDigit(text, from-1) && !isDigit(text, to)
}

func isDigit(text string, at int) bool {
	return at >= 0 && at < len(text) && '0' <= text[at] && text[at] <= '9'
}

func isWord(text string, at int) bool {
	return isDigit(text, at) || at >= 0 && at < len(text) &&
		('a' <= text[at]|0x20 && text[at]|0x20 <= 'z' || text[at] >= utf8.RuneSelf)
}

// pieces returns where a text has pieces of a long value. Each piece has a block
// of half its least size.
func pieces(text, value string) (spans [][3]int) {
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
			if to-from >= pieceBytes && kindsOf(text[from:to]) >= pieceKinds {
				spans = append(spans, [3]int{from, to, to - from})
			}
		}
	}
	return spans
}

func kindsOf(text string) int {
	kinds := map[byte]bool{}
	for _, c := range []byte(text) {
		kinds[c] = true
	}
	return len(kinds)
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

// squeezed is a text without what stands between lines and the elements of a
// list, and where each byte was.
type squeezed struct {
	text string
	at   []int
}

func squeeze(text string) squeezed {
	s := squeezed{at: make([]int, 0, len(text))}
	var b bytes.Buffer
	for i := range len(text) {
		if strings.IndexByte(" \t\r\n\",", text[i]) < 0 {
			b.WriteByte(text[i])
			s.at = append(s.at, i)
		}
	}
	s.text = b.String()
	return s
}

// breaks returns how often something was left out of a part.
func (s squeezed) breaks(from, to int) int {
	n := 0
	for i := from + 1; i < to; i++ {
		if s.at[i] > s.at[i-1]+1 {
			n++
		}
	}
	return n
}
