package wordsearch_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/wordsearch"
)

func TestRank(t *testing.T) {
	texts := []string{
		"My dog is called Waldo.", // 0
		"How old is it?",          // 1
		"The dogs are hungry.",    // 2
		"Start with ART.",         // 3
		"",                        // 4
		"Müller wohnt in Köln.",   // 5
		"It is the dog.",          // 6
	}
	for query, want := range map[string][]int{
		"waldo":         {0},
		"DOG":           {6, 2, 0}, // the beginning of a word, the latest first
		"dog waldo":     {0},       // the others have less than half
		"is waldo":      {0},
		"art":           {3}, // not in Start
		"tart":          {},
		"müller, KÖLN!": {5},
		"og":            {},
		"":              {},
		"!?":            {},
		"cat":           {},
	} {
		require.Equal(t, want, wordsearch.Parse(query).Rank(texts), query)
	}
	require.Equal(t, []int{0}, wordsearch.Parse("art").Rank([]string{"start, art"}), "behind one that is no word's beginning")
}

func TestParseCountsEachWordOnce(t *testing.T) {
	require.Equal(t, wordsearch.Query{"a", "b2"}, wordsearch.Parse("A, b2 a"))
	many := strings.Join(strings.Split(strings.Repeat("ab", 50), ""), " x")
	require.LessOrEqual(t, len(wordsearch.Parse(many)), 32)
	var numbers strings.Builder
	for i := range 100 {
		numbers.WriteString(strings.Repeat("9", i+1) + " ")
	}
	require.Len(t, wordsearch.Parse(numbers.String()), 32)
}

func TestExcerpt(t *testing.T) {
	q := wordsearch.Parse("waldo")
	require.Equal(t, "Waldo is a dog", q.Excerpt("Waldo is a dog", 20))
	long := strings.Repeat("é ", 100) + "Waldo barks. " + strings.Repeat("é ", 100)
	for limit := 20; limit < 60; limit++ {
		excerpt := q.Excerpt(long, limit)
		require.Contains(t, excerpt, "Waldo bar", limit)
		require.True(t, utf8.ValidString(excerpt))
		require.LessOrEqual(t, len(excerpt), limit+len("……"))
		require.True(t, strings.HasPrefix(excerpt, "…") && strings.HasSuffix(excerpt, "…"))
	}
	require.Equal(t, "é é…", wordsearch.Parse("cat").Excerpt(long, 5))
	require.True(t, strings.HasSuffix(q.Excerpt(strings.Repeat("x ", 100)+"waldo", 40), "waldo"))
}
