// Package wordsearch finds texts by plain words.
package wordsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// maxWords is the number of words of a query that count.
const maxWords = 32

// Query is the words to search for, each once.
type Query []string

// Parse returns the words of a text, in lower case.
func Parse(text string) Query {
	var q Query
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !inWord(r) }) {
		if len(q) < maxWords && !slices.Contains(q, word) {
			q = append(q, word)
		}
	}
	return q
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// Rank returns the indexes of the texts in which words begin with words of the
// query, best first, and the later one of equals. A word counts more the fewer
// texts have it. Texts that score less than half of the best are left out.
func (q Query) Rank(texts []string) []int {
	found, weights := make([][]int, len(texts)), make([]float64, len(q))
	for i, text := range texts {
		lower := strings.ToLower(text)
		for k, word := range q {
			if index(lower, word) >= 0 {
				found[i] = append(found[i], k)
				weights[k]++
			}
		}
	}
	for k, having := range weights {
		weights[k] = math.Log1p(float64(len(texts)) / max(having, 1))
	}
	scores, best, ranked := make([]float64, len(texts)), 0.0, []int{}
	for i, words := range found {
		for _, k := range words {
			scores[i] += weights[k]
		}
		best = max(best, scores[i])
	}
	for i, score := range scores {
		if score > 0 && 2*score >= best {
			ranked = append(ranked, i)
		}
	}
	slices.SortFunc(ranked, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), b-a) })
	return ranked
}

// Excerpt returns at most about limit bytes of a text, from a little before the
// first word of the query on.
func (q Query) Excerpt(text string, limit int) string {
	first, lower := len(text), strings.ToLower(text)
	for _, word := range q {
		if at := index(lower, word); at >= 0 {
			first = min(first, at)
		}
	}
	if len(text) <= limit || first <= limit/2 || first == len(text) || len(lower) != len(text) {
		return fault.ClipTo(text, limit)
	}
	begin := min(first-limit/4, len(text)-limit)
	for !utf8.RuneStart(text[begin]) {
		begin--
	}
	return "…" + fault.ClipTo(text[begin:], limit)
}

// index returns where a word of a text begins with a word, -1 if none does.
func index(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return -1
		}
		at += from
		if before, _ := utf8.DecodeLastRuneInString(text[:at]); at == 0 || !inWord(before) {
			return at
		}
		from = at + len(word)
	}
}
