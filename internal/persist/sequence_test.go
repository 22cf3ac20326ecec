package persist

import (
	"sync"
	"testing"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func elementsOf(s *Sequence[int]) []int {
	all := []int{}
	for i, e := range s.All() {
		if i != len(all) {
			panic("wrong index")
		}
		all = append(all, e)
	}
	return all
}

func TestSequencesThatShareChunksStayAsTheyWere(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		sequences, models := []Sequence[int]{{}}, [][]int{{}}
		next := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(sequences)-1).Draw(t, "sequence")
			s, model := sequences[i], models[i]
			if rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				n := rapid.IntRange(0, len(model)+1).Draw(t, "n")
				s, model = s.Take(n), model[:min(n, len(model))]
			} else {
				for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 7, 100, 255, 256, 257, 600}).Draw(t, "n") {
					s = s.Append(next)
					model = append(model[:len(model):len(model)], next)
					next++
				}
			}
			common := s.Common(&sequences[i])
			require.LessOrEqual(t, common, min(len(model), len(models[i])))
			require.Less(t, min(len(model), len(models[i]))-common, chunkLen, "more is shared")
			sequences, models = append(sequences, s), append(models, model)
		}
		for i := range sequences {
			s, want := &sequences[i], models[i]
			require.Equal(t, len(want), s.Len())
			require.Equal(t, append([]int{}, want...), elementsOf(s))
			for j, e := range want {
				require.Equal(t, e, s.At(j))
			}
			from := rapid.IntRange(0, len(want)).Draw(t, "from")
			to := rapid.IntRange(from, len(want)).Draw(t, "to")
			part := []int{}
			for run := range s.Runs(from, to) {
				part = append(part, run...)
			}
			require.Equal(t, append([]int{}, want[from:to]...), part)
			other := len(sequences) - 1 - i
			n := s.Common(&sequences[other])
			require.Equal(t, models[other][:n], want[:n])
		}
	})
}

func TestOnePlaceOfASequenceIsGivenToOneAppender(t *testing.T) {
	base := Sequence[int]{}.Append(1)
	var wg sync.WaitGroup
	got := make([]Sequence[int], 8)
	for i := range got {
		wg.Go(func() {
			s := base
			for j := range 500 {
				s = s.Append(i*1000 + j)
			}
			got[i] = s
		})
	}
	wg.Wait()
	for i := range got {
		all := elementsOf(&got[i])
		require.Len(t, all, 501)
		for j, e := range all[1:] {
			require.Equal(t, i*1000+j, e)
		}
	}
}
