package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// docs/comparison.md and docs/memory.md say what is lost and aliased.
func TestWhatContendersKeep(t *testing.T) {
	for i, want := range []struct {
		lost    int
		aliased bool
	}{{0, false}, {rounds, true}, {rounds, true}, {rounds, false}} {
		c := contenders[i]
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, want.lost, lost(c))
			require.Equal(t, want.aliased, aliased(c))
			c.with(func(v values) {
				require.Equal(t, 7, v.SetGet(7))
				v.Fill([]string{"a"})
				v.Add("b", func() {})
				require.Equal(t, []string{"a", "b"}, v.Notes())
				require.Equal(t, 7, v.SetGet(7))
			})
		})
	}
}

func TestTheDrawingIsXML(t *testing.T) {
	result := testing.BenchmarkResult{N: 1, T: time.Microsecond}
	text := draw([]row{{name: "a", number: result, add: result, read: result}})
	require.Equal(t, 3, strings.Count(text, "<rect "))
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}
