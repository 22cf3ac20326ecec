package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/mutation"
)

func TestEachMutantIsDrawnByOneOfNCommits(t *testing.T) {
	mutants := []string{"a", "b", "c", "d", "e", "f", "g"}
	t.Setenv("STATE_SEED", "")
	t.Setenv("STATE_DRAW", "")
	t.Setenv("STATE_MUTANTS", "1")
	require.Equal(t, mutants, mutation.Drawn(t, mutants))

	t.Setenv("STATE_MUTANTS", "3")
	var all []string
	for _, draw := range []string{"18446744073709551615", "1", "2"} { // the first is a multiple of 3
		t.Setenv("STATE_DRAW", draw)
		all = append(all, mutation.Drawn(t, mutants)...)
	}
	require.Equal(t, []string{"a", "d", "g", "b", "e", "c", "f"}, all)
}

func TestMutantsAreDrawnOnRequest(t *testing.T) {
	t.Setenv("STATE_MUTANTS", "")
	var skipped bool
	t.Run("", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		mutation.Drawn(t, []string{"a"})
	})
	require.True(t, skipped)
}
