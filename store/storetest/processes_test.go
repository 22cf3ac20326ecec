//go:build unix

package storetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store/storetest"
)

func TestProcesses(t *testing.T) {
	storetest.Processes(t, ":"+filepath.Join(t.TempDir(), "toy"))
}

func TestProcessesUnknownOutcomes(t *testing.T) {
	storetest.Processes(t, "unsure:"+filepath.Join(t.TempDir(), "toy"))
}

func TestProcessesDetectFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"races": "the history is not linearizable",
		"stale": "the history is not linearizable",
		"lies":  "the history is not linearizable",
		"dies":  "a worker ended by itself",
		"reuse": "identifies two writes",
	} {
		t.Run(fault, func(t *testing.T) {
			requireDetected(t, fault, func(address string) { storetest.Processes(t, address) }, want, "STATE_SEED=")
		})
	}
}

// requireDetected runs a test of a faulty store in a separate process. The test
// must fail and print the wanted texts.
func requireDetected(t *testing.T, fault string, run func(address string), want ...string) {
	t.Helper()
	const variable = "STORETEST_FAULTY"
	if address := os.Getenv(variable); address != "" {
		run(address)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+filepath.ToSlash(t.Name())+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), variable+"="+fault+":"+filepath.Join(dir, "toy"), "TMPDIR="+dir)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "a store that %s passes: %s", fault, output)
	for _, text := range want {
		require.Contains(t, string(output), text)
	}
	_, picture, ok := strings.Cut(string(output), "the history is not linearizable: see ")
	if ok {
		require.FileExists(t, strings.Fields(picture)[0])
	}
}
