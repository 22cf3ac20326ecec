package tool

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestSameNameFoldsAllThatDecodersFold(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"user_id", "user_id", true},
		{"user_id", "User_ID", true},
		{"user_id", "u\u017fer_id", true},
		{"token", "to\u212aen", true},
		{"user_id", "userId", true},
		{"user_id", "user-id", true},
		{"user_id", "-User__ID-", true},
		{"user_id", "\u0131d", false},
		{"id", "\u0131D", true},
		{"id", "\u0130d", true},
		{"\u03c3", "\u03c2", true},
		{"user_id", "user_i", false},
		{"user_id", "user_idx", false},
		{"user_id", "user.id", false},
		{"user_id", "", false},
		{"_", "", true},
		{"\u00e5", "a\u030a", false},
	} {
		require.Equal(t, tt.want, sameName(tt.a, tt.b), "%q %q", tt.a, tt.b)
		require.Equal(t, tt.want, sameName(tt.b, tt.a), "%q %q", tt.b, tt.a)
	}
}

// TestFoldRuneJoinsWhatIsEqualInSomeCase visits all letters there are.
func TestFoldRuneJoinsWhatIsEqualInSomeCase(t *testing.T) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		folded := foldRune(c)
		if folded != foldRune(unicode.SimpleFold(c)) || folded != foldRune(unicode.ToLower(c)) || folded != foldRune(unicode.ToUpper(c)) ||
			folded != foldRune(unicode.ToTitle(c)) || folded != foldRune(folded) {
			t.Fatalf("%U", c)
		}
	}
}

// FuzzSameName compares with strings.EqualFold, by which encoding/json and
// mapstructure compare names.
func FuzzSameName(f *testing.F) {
	for _, seed := range [][2]string{{"user_id", "User_ID"}, {"k", "\u212a"}, {"s", "\u017f"}, {"a-b", "A_b"}, {"i", "\u0131"}, {"\xff", "\xfe"}, {"\u00df", "\u1e9e"}} {
		f.Add(seed[0], seed[1])
	}
	without := strings.NewReplacer("_", "", "-", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Skip("JSON has only valid UTF-8")
		}
		if strings.EqualFold(a, b) || strings.EqualFold(without.Replace(a), without.Replace(b)) {
			require.True(t, sameName(a, b))
		}
		require.Equal(t, sameName(a, b), sameName(b, a))
		require.True(t, sameName(a, strings.ToUpper(a)))
		require.Equal(t, sameName(a, b), sameName("_"+a, b+"-"))
	})
}

func TestCheckToolName(t *testing.T) {
	for _, name := range []string{"a", "search_documents", "Get-Weather2", "fs/read.file", "server:tool", "_", strings.Repeat("a", 128)} {
		require.Empty(t, checkToolName(name))
	}
	for _, name := range []string{"", "my tool!", "a b", "søg", "a\n", "tool?", "a@b", strings.Repeat("a", 129), "\xff"} {
		require.NotEmpty(t, checkToolName(name), name)
	}
}
