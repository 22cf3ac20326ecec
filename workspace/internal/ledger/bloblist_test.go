package ledger

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/test/effort/property"
)

// A list of blobs is a queue: a model of it is a slice. Every list blob is
// dropped once, and not before its last entry.
func TestBlobListModel(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var (
			list  blobList
			model = []string{}
			blobs = map[string]string{}
			count int
		)
		list.First = rapid.Uint64Range(0, 1000).Draw(t, "first")
		list.Next = list.First
		write := func(data []byte) string {
			count++
			name := fmt.Sprint("list", count)
			blobs[name] = string(data)
			return name
		}
		read := func(_ context.Context, level int, names []string) ([][]byte, error) {
			require.Positive(t, level)
			var texts [][]byte
			for _, name := range names[:rapid.IntRange(1, len(names)).Draw(t, "at once")] {
				data, ok := blobs[name]
				require.True(t, ok, "%s is read after it was dropped", name)
				texts = append(texts, []byte(data))
			}
			return texts, nil
		}
		entries := func(from, to uint64) []string {
			texts := []string{}
			number := max(from, list.First)
			for n, err := range list.walk(t.Context(), from, to, read) {
				require.NoError(t, err)
				if n.level > 0 {
					continue
				}
				require.Equal(t, number, n.from)
				require.Equal(t, number+1, n.to)
				texts, number = append(texts, n.text), number+1
			}
			return texts
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					entry := fmt.Sprint("entry", list.Next)
					list.push(entry, write)
					model = append(model, entry)
				}
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(model)+1).Draw(t, "n")
				dropped := []string{}
				err := list.dropTo(t.Context(), list.First+uint64(n), read, func(n listNode) {
					if n.level == 0 {
						dropped = append(dropped, n.text)
						return
					}
					require.Contains(t, blobs, n.text)
					delete(blobs, n.text)
				})
				require.NoError(t, err)
				n = min(n, len(model))
				require.Equal(t, model[:n], dropped)
				model = model[n:]
			},
			"": func(t *rapid.T) {
				require.EqualValues(t, len(model), list.len())
				for _, names := range list.Levels {
					require.NotContains(t, names, ",,")
				}
				for level := range list.Levels {
					require.Less(t, len(list.names(level)), int(listFanout))
				}
				require.Equal(t, model, entries(0, list.Next))
				if len(model) > 0 {
					from := rapid.IntRange(0, len(model)-1).Draw(t, "from")
					to := rapid.IntRange(from, len(model)).Draw(t, "to")
					require.Equal(t, model[from:to], entries(list.First+uint64(from), list.First+uint64(to)))
				} else {
					require.Empty(t, list.Levels)
					require.Empty(t, blobs)
				}
			},
		})
	})
}
