package effort

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsAreMultipliedAndAtLeastOne(t *testing.T) {
	for text, want := range map[string]int{"": 25, "1": 100, "20": 2000, "0.05": 5, "0.001": 1, "0": 1} {
		t.Setenv("STATE_EFFORT", text)
		factor = readFactor()
		require.Equal(t, want, Runs(100), "STATE_EFFORT=%s", text)
	}
	for _, text := range []string{"much", "-1", "NaN", "Inf", "1e9"} {
		t.Setenv("STATE_EFFORT", text)
		require.Panics(t, func() { readFactor() }, "STATE_EFFORT=%s", text)
	}
	t.Setenv("STATE_EFFORT", "")
	factor = readFactor()
}

func TestSeedIsTheOneThatIsSet(t *testing.T) {
	t.Setenv("STATE_SEED", "")
	t.Setenv("STATE_DRAW", "5")
	require.Equal(t, uint64(7), Seed(7))
	require.Equal(t, uint64(5), Draw(7))
	t.Setenv("STATE_SEED", "18446744073709551615")
	require.Equal(t, ^uint64(0), Seed(7))
	require.Equal(t, ^uint64(0), Draw(7))
	t.Setenv("STATE_SEED", "-1")
	require.Panics(t, func() { Seed(7) })
}
