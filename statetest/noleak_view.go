package statetest

import (
	"bytes"
	"slices"
	"strings"
)

// A view is a text, or what a decoder made of the text of another view: of all
// its parts that the decoder takes, with a NUL behind each.
type view struct {
	text     []byte
	from, to []int32 // where each byte comes from in the parent; nil for the text itself
	parent   *view
	kind     string // what the text was before it was decoded: "base64"

	decoded   int  // how many decoders made it
	unescaped int  // how many of the last passes unescaped it
	joined    bool // the last pass joined lines
	parts     bool // it consists of parts
}

// child returns a view for a decoder to fill.
func (v *view) child(kind string) *view {
	return &view{parent: v, kind: kind, decoded: v.decoded, unescaped: v.unescaped, parts: v.parts, joined: v.joined}
}

// decodedChild is child for a decoder that takes parts of the text.
func (v *view) decodedChild(kind string) *view {
	return &view{parent: v, kind: kind, decoded: v.decoded + 1, parts: true}
}

// add adds a byte that comes from a part of the parent.
func (v *view) add(c byte, from, to int) {
	v.text = append(v.text, c)
	v.from = append(v.from, int32(from))
	v.to = append(v.to, int32(to))
}

// grow makes room for n bytes.
func (v *view) grow(n int) {
	v.text = slices.Grow(v.text, n)
	v.from = slices.Grow(v.from, n)
	v.to = slices.Grow(v.to, n)
}

// place returns where a part comes from in the text itself.
func (v *view) place(from, to int) (int, int) {
	for ; v.parent != nil; v = v.parent {
		from, to = int(v.from[from]), int(v.to[to-1])
	}
	return from, to
}

// minDecodedToken is the length from which a token counts in what was decoded:
// many words of a text are base64 of a few bytes.
const minDecodedToken = 4

// showsTokens reports whether a token counts at a place: whether the part
// around it is a text.
func (v *view) showsTokens(from, to int) bool {
	if !v.parts {
		return true
	}
	if to-from < minDecodedToken {
		return false
	}
	first := bytes.LastIndexByte(v.text[:from], 0) + 1
	last := len(v.text)
	if i := bytes.IndexByte(v.text[to:], 0); i >= 0 {
		last = to + i
	}
	for _, c := range v.text[first:last] {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0x7f {
			return false
		}
	}
	return true
}

// What values stand in as they are.
const (
	inLines  = "several lines or elements"
	inString = "a JSON string"
)

// describe says how a part of the view is encoded: how the value is written, and
// what that is in, from the inside to the text.
func (v *view) describe(from, to int, value string, spread bool) string {
	var words []string
	written := string(v.text[from:to])
	switch {
	case spread:
		words = append(words, "spread text")
	case !strings.Contains(value, written) && strings.EqualFold(value, written):
		words = append(words, "text in other case")
	}
	for ; v.parent != nil; v = v.parent {
		from, to = int(v.from[from]), int(v.to[to-1])
		kind := v.kind
		switch kind {
		case kindEscaped:
			kind = escapesIn(v.parent.text[from:to])
		case kindJoined:
			if kind = ""; bytes.ContainsAny(v.parent.text[from:to], "\n,") {
				kind = inLines
			}
		}
		if kind != "" {
			words = append(words, kind)
		}
	}
	if inJSONString(v.text, from, to) {
		words = append(words, inString)
	}
	if len(words) == 0 || words[0] == inString || words[0] == inLines {
		words = append([]string{"it is"}, words...)
	}
	return "as " + strings.Join(words, " in ")
}

// inJSONString reports whether a part of a text is within a JSON string.
func inJSONString(text []byte, from, to int) bool {
	open := from - 1
	for ; open >= 0; open-- {
		if text[open] == '\n' {
			return false
		}
		if text[open] == '"' && !isEscapedAt(text, open) {
			break
		}
	}
	end := to
	for ; end < len(text); end++ {
		if text[end] == '\n' {
			return false
		}
		if text[end] == '"' && !isEscapedAt(text, end) {
			break
		}
	}
	if open < 0 || end >= len(text) {
		return false
	}
	before := bytes.TrimRight(text[max(0, open-8):open], " \t\r\n")
	after := bytes.TrimLeft(text[end+1:min(len(text), end+9)], " \t\r\n")
	return (len(before) == 0 || strings.IndexByte("{[,:", before[len(before)-1]) >= 0) &&
		(len(after) == 0 || strings.IndexByte("}],:", after[0]) >= 0)
}

// isEscapedAt reports whether an odd number of backslashes is before a place.
func isEscapedAt(text []byte, at int) bool {
	n := 0
	for at-n > 0 && text[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}
