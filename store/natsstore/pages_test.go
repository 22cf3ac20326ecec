package natsstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listing misses no subject that is there all the time, whatever is added and
// removed between the pages, and ends.
func TestPagesMissNothing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		there := map[string]bool{}
		name := func() string { return fmt.Sprintf("%06d", rng.IntN(20_000)) }
		for range 3000 + rng.IntN(2000) {
			there[name()] = true
		}
		stay, pages := maps.Clone(there), 0
		var got []string
		for subject, err := range allSubjects(func(offset int) (map[string]uint64, int, error) {
			pages++
			sorted := slices.Sorted(maps.Keys(there))
			page := map[string]uint64{}
			for _, subject := range sorted[min(offset, len(sorted)):min(offset+1500, len(sorted))] {
				page[subject] = 1
			}
			for _, subject := range sorted {
				if rng.IntN(10) == 0 {
					delete(there, subject)
					delete(stay, subject)
				}
			}
			for range rng.IntN(300) {
				there[name()] = true
			}
			return page, len(sorted), nil
		}) {
			require.NoError(t, err)
			got = append(got, subject)
		}
		slices.Sort(got)
		for subject := range stay {
			_, found := slices.BinarySearch(got, subject)
			require.True(t, found, "seed %d: %s", seed, subject)
		}
		require.Less(t, pages, 30)
	}
}
