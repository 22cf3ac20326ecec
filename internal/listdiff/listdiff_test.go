package listdiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// apply does edits one by one.
func apply(t require.TestingT, edits []Edit, from, to []int) []int {
	list := slices.Clone(from)
	for _, e := range edits {
		with := to[e.From:e.To]
		switch e.Kind {
		case "set":
			list = slices.Clone(with)
		case "append":
			require.NotEmpty(t, with)
			list = append(list, with...)
		case "insert":
			require.NotEmpty(t, with)
			require.Less(t, e.N, len(list), "this is an append")
			list = slices.Insert(list, e.N, with...)
		case "drop_first":
			require.Positive(t, e.N)
			list = list[e.N:]
		case "truncate":
			require.Less(t, e.N, len(list))
			list = list[:e.N]
		case "remove_at":
			list = slices.Delete(list, e.N, e.N+1)
		default:
			require.Fail(t, "unknown edit", e.Kind)
		}
	}
	return list
}

func TestEditsTurnOneListIntoAnother(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 12)
		from, to := list.Draw(t, "from"), list.Draw(t, "to")
		if rapid.Bool().Draw(t, "related") {
			at := rapid.IntRange(0, len(from)).Draw(t, "at")
			end := rapid.IntRange(at, len(from)).Draw(t, "end")
			to = slices.Replace(slices.Clone(from), at, end, to...)
			to = to[rapid.IntRange(0, len(to)).Draw(t, "dropped"):]
		}
		edits := Between(from, to)
		require.Equal(t, append([]int{}, to...), append([]int{}, apply(t, edits, from, to)...))
		require.Equal(t, slices.Equal(from, to), len(edits) == 0)

		// Known equal elements do not change the result.
		kept := 0
		for kept < min(len(from), len(to)) && from[kept] == to[kept] && rapid.Bool().Draw(t, "known") {
			kept++
		}
		known := Change{Kept: kept, Removed: len(from) - kept, Added: len(to) - kept}
		require.Equal(t, edits, Narrow(known, from[kept:], to[kept:]).Edits())
	})
}

// A list to which elements were added, or that lost some in one place, is not
// set as a whole, and nothing that stays is written again.
func TestEditsOfOneChangeWriteWhatWasAdded(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		from := rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 1, 20, rapid.ID).Draw(t, "from")
		added := make([]int, rapid.IntRange(0, 5).Draw(t, "added"))
		for i := range added {
			added[i] = 100 + i
		}
		at := rapid.IntRange(0, len(from)).Draw(t, "at")
		gone := rapid.IntRange(0, (len(from)-at)/2).Draw(t, "gone")
		if gone == len(from) {
			return // nothing stays
		}
		to := slices.Replace(slices.Clone(from), at, at+gone, added...)
		written := 0
		for _, e := range Between(from, to) {
			if e.Kind == "set" {
				require.Greater(t, gone, len(from)-gone, "more goes than stays")
				return
			}
			written += e.To - e.From
		}
		require.Equal(t, len(added), written)
	})
}

func TestEditsOfKnownCases(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{"ab", "ab", ""},
		{"", "a", "append a"},
		{"a", "ab", "append b"},
		{"ab", "a", "truncate 1"},
		{"ab", "", "truncate 0"},
		{"abab", "ab", "truncate 2"},
		{"abc", "c", "drop_first 2"},
		{"abc", "ad", "truncate 1, append d"},
		{"abc", "bcd", "drop_first 1, append d"},
		{"abab", "babaa", "drop_first 1, append aa"},
		{"xaay", "aabc", "set aabc"},
		{"sabc", "sbcd", "remove_at 1, append d"},
		{"ac", "abc", "insert 1 b"},
		{"b", "ab", "insert 0 a"},
		{"ab", "cb", "drop_first 1, insert 0 c"},
		{"abc", "axc", "remove_at 1, insert 1 x"},
		{"abcd", "ad", "remove_at 1, remove_at 1"},
		{"abcde", "ae", "set ae"},
		{"ab", "cd", "set cd"},
	} {
		var got []string
		for _, e := range Between([]byte(c.from), []byte(c.to)) {
			text := e.Kind
			if e.Kind != "set" && e.Kind != "append" {
				text += fmt.Sprint(" ", e.N)
			}
			if e.To > e.From {
				text += " " + c.to[e.From:e.To]
			}
			got = append(got, text)
		}
		require.Equal(t, c.want, strings.Join(got, ", "), "%q to %q", c.from, c.to)
	}
}

// Elements that are all equal take linear time: this would not end otherwise.
func TestOverlapOfEqualElements(t *testing.T) {
	const n = 1 << 20
	a, b := make([]byte, n), make([]byte, n+1)
	a[0], b[n] = 1, 1
	require.Equal(t, n-1, overlap(a, b))
}
