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

	"github.com/agentstate/state/internal/value"
	"github.com/agentstate/state/statetest/internal/kit"
)

// A view is a text, or what a step made of the text of another view: it undoes
// one layer of escapes, joins parts, or decodes all words that it can, with a NUL
// after each. The search of NoLeak reads what the views of a text say. It shares
// no code with package internal/redact, which looks for the encoded values
// instead, so that each tests the other.
type view struct {
	text    string
	how     string // "base64 in escaped text", or "" for the text itself
	depth   int
	decoded bool // from base64 and the like, not only unescaped
}

const (
	maxDepth = 9       // three encodings, each escaped and in several parts
	minWork  = 1 << 25 // bytes of views, for any text
)

// views yields what a text says. It returns false if that is too much to decode.
func views(text string, yield func(v view)) (complete bool) {
	work := minWork + 32*len(text)
	seen := map[string]bool{}
	for queue := []view{{text: text}}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v.text == "" || seen[v.text] {
			continue
		}
		seen[v.text] = true
		if work -= len(v.text); work < 0 {
			return false
		}
		yield(v)
		if v.depth < maxDepth {
			queue = append(queue, v.next("escaped text", unescape(v.text), v.decoded))
			queue = append(queue, v.next("several parts", breaks.ReplaceAllString(v.text, "$1"), v.decoded))
			queue = append(queue, v.decode(work)...)
		}
	}
	return true
}

func (v view) next(kind, text string, decoded bool) view {
	how := v.how
	switch {
	case how == "":
		how = kind
	case how != kind && !strings.HasPrefix(how, kind+" in "):
		how = kind + " in " + how
	}
	return view{text, how, v.depth + 1, decoded}
}

var (
	escapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\(?:U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|[abfnrtv\\"'/])`)
	// A % that begins no escape would make a URL invalid.
	percent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	// Lines, the elements of a list, and groups of digits.
	breaks = regexp.MustCompile(`(?:[\r\n]|\\[rn])+[ \t]*|"\s*,\s*"|[ ,](\d{3})`)
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
	{"base64", regexp.MustCompile(`[A-Za-z0-9+/_-]{6,}`), 4, func(word string) []byte {
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

var alphabet = strings.NewReplacer("-", "+", "_", "/")

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

// inflate returns what the gzip and zlib in a text say.
func inflate(text string, limit int) string {
	var said []byte
	for at, c := range []byte(text) {
		var r io.Reader
		var err error
		switch packed := text[at:]; {
		case c == 0x1f && strings.HasPrefix(packed, "\x1f\x8b\x08"):
			r, err = gzip.NewReader(strings.NewReader(packed))
		case c == 0x78 && len(packed) > 1 && strings.IndexByte("\x01\x5e\x9c\xda", packed[1]) >= 0:
			r, err = zlib.NewReader(strings.NewReader(packed))
		default:
			continue
		}
		if err == nil {
			more, _ := io.ReadAll(io.LimitReader(r, int64(max(0, limit-len(said)+1)))) // as far as it goes
			said = append(said, more...)
		}
	}
	return string(said)
}

const (
	shortBytes = 6 // a value below is part of other words by accident
	minDecoded = 4 // many words are base64 of a few bytes
)

// A pattern is a value as it is looked for.
type pattern struct {
	value.Leaf
	spelled []string       // folded: as it is, with its own escapes undone, and in UTF-16
	token   *regexp.Regexp // what a short value or a number has to be, or nil
	pieces  kit.Pieces
}

func newPattern(leaf value.Leaf) pattern {
	p := pattern{Leaf: leaf, spelled: []string{kit.Fold(leaf.Text)}, pieces: kit.PiecesOf(leaf)}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(leaf.Text)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	for _, spelled := range []string{unescape(unescape(unescape(leaf.Text))), string(little), string(big)} {
		if len(spelled) >= shortBytes {
			p.spelled = append(p.spelled, kit.Fold(spelled))
		}
	}
	word := ""
	switch {
	case len(leaf.Text) < shortBytes:
		word = `\pL\pN\x{FFFD}` // U+FFFD stands for bytes that are no text
	case leaf.Number:
		word = `0-9`
	default:
		return p
	}
	after := `(?:[^` + word + `]|$)`
	if leaf.Number && strings.Contains(leaf.Text, ".") {
		after = `0*` + after // zeros at the end of a fraction make no other number
	}
	var spelled []string
	for _, s := range p.spelled {
		spelled = append(spelled, regexp.QuoteMeta(strings.ToValidUTF8(s, "\x00")))
	}
	p.token = regexp.MustCompile(`(?:^|[^` + word + `])(?:` + strings.Join(spelled, "|") + `)` + after)
	return p
}

// told returns how many bytes of the value a view has, at least.
func (p pattern) told(v view, folded string) (bytes int) {
	for _, spelled := range p.spelled {
		if strings.Contains(folded, spelled) &&
			(p.token == nil || p.token.MatchString(folded) && (!v.decoded || len(p.Text) >= minDecoded)) {
			return len(p.Text)
		}
	}
	for _, span := range p.pieces.In(folded) {
		bytes = max(bytes, min(span[1]-span[0], len(p.Text)-1))
	}
	return bytes
}
