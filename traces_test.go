package state_test

import (
	"errors"
	"os"
	"testing"

	"github.com/agentstate/state/internal/traces"
	"github.com/stretchr/testify/require"
)

// TestTraces plays every recorded run in the folder, or file, that STATE_TRACES
// names through a State, and checks the State at every step.
func TestTraces(t *testing.T) {
	root := os.Getenv("STATE_TRACES")
	if root == "" {
		t.Skip("set STATE_TRACES to a folder with recorded runs (τ-bench, SWE-agent, ADK sessions) to play them")
	}
	played := 0
	for _, file := range traces.Find([]string{root}) {
		if file.Skip != "" {
			continue
		}
		t.Run(file.Path, func(t *testing.T) {
			require.NoError(t, file.Err)
			data, err := os.ReadFile(file.Path)
			require.NoError(t, err)
			stats, err := traces.File(data, traces.Options{Verify: true})
			var other *traces.OtherError
			if errors.As(err, &other) && stats.Runs == 0 && !file.Given {
				t.Skip(err)
			}
			played++
			require.NoError(t, err)
			require.GreaterOrEqual(t, stats.Messages, stats.Entries)
		})
	}
	require.Positive(t, played, "no trace in %q", root)
}
