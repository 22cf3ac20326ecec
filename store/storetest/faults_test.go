package storetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

// faultVariable names the fault of the store that a child process tests.
const faultVariable = "STORETEST_FAULT"

var failed = regexp.MustCompile(`--- FAIL: TestFaulty/(\S+)`)

// The tests of hanging wait for what never happens if their store has the fault.
// hung names the test that runs when the time is over.
var (
	hanging = regexp.MustCompile(`^Watch/|^List/CallsInsideLoop$`)
	hung    = regexp.MustCompile(`(?s)test timed out.*TestFaulty/(\S+)`)
)

// TestFaultsAreDetected runs the detecting test on each broken store. The test
// must fail, and therefore runs in a separate process.
func TestFaultsAreDetected(t *testing.T) {
	for _, fault := range faults {
		t.Run(strings.ReplaceAll(fault.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			pattern := "^" + strings.ReplaceAll("TestFaulty/"+fault.detector, "/", "$/^") + "$"
			timeout := "10m"
			if hanging.MatchString(fault.detector) {
				timeout = "2s"
			}
			child := exec.Command(os.Args[0], "-test.run="+pattern, "-test.timeout="+timeout)
			child.Env = append(os.Environ(), faultVariable+"="+fault.name)
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the suite passes:\n%s", output)
			var tests []string
			for _, match := range append(failed.FindAllStringSubmatch(string(output), -1), hung.FindAllStringSubmatch(string(output), -1)...) {
				tests = append(tests, match[1])
			}
			require.Contains(t, tests, fault.detector, "%s", output)
		})
	}
}

// TestFaulty runs in the child process.
func TestFaulty(t *testing.T) {
	name := os.Getenv(faultVariable)
	for _, fault := range faults {
		if fault.name == name {
			storetest.Run(t, func(*testing.T) func() store.Store {
				memory := store.NewMemory()
				return func() store.Store { return newBroken(memory.Open(), fault.inject) }
			})
			return
		}
	}
	require.Empty(t, name, "unknown fault")
}

// TestMemory tests the store in memory, through what faults are put into.
func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) func() store.Store {
		memory := store.NewMemory()
		return func() store.Store { return newBroken(memory.Open(), func(*broken) {}) }
	})
}
