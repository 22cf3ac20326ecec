// Package excerpt finds where the middle of a long text may be cut out.
package excerpt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Member is the member of a result of a tool with how many bytes of its text a
	// model is shown.
	Member = "shown"
	// Recall is the tool of package loop that finds what is left out.
	Recall = "recall"

	noteBytes    = 120        // that are left for a note
	clusterBytes = 64         // up to which characters are kept together
	mask         = "[SECRET]" // as in package redact
)

// Ends returns where the beginning of a text ends, and where its end begins, that
// have together no more than a number of bytes, with a note between them. They cut no
// character, and no mask of a secret.
func Ends(text string, limit int) (head, tail int) {
	room := max(limit-noteBytes, 0)
	begin := room * 2 / 3
	return border(text, begin, -1), border(text, len(text)-(room-begin), 1)
}

// border returns the first place from another one on, in a direction, at which a text
// may be cut.
func border(text string, place, step int) int {
	for far := 0; place > 0 && place < len(text) && (!utf8.RuneStart(text[place]) || far < clusterBytes && isInside(text, place)); far++ {
		place += step
	}
	return place
}

// isInside reports whether a place between two runes is inside of a mask, or of a
// sequence that shows as one character.
func isInside(text string, place int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:place])
	after, _ := utf8.DecodeRuneInString(text[place:])
	const joiner = '\u200d'
	// a tone of skin
	return unicode.Is(unicode.M, after) || before == joiner || after == joiner || 0x1f3fb <= after && after <= 0x1f3ff ||
		min(before, after) >= 0x1f1e6 && max(before, after) <= 0x1f1ff || // the letters of a flag
		strings.Contains(text[max(place-len(mask)+1, 0):min(place+len(mask)-1, len(text))], mask)
}
