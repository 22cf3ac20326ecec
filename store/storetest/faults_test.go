package storetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
	"github.com/stretchr/testify/require"
)

// faultVariable names the fault of the store that a child process tests.
const faultVariable = "STORETEST_FAULT"

// fault is what a broken store does, and the test that has to notice.
type fault struct {
	name    string
	noticed string
	seed    func(b *broken)
}

var failed = regexp.MustCompile(`--- FAIL: TestFaulty/(\S+)`)

// The test that has to notice is run on each of the broken stores, in a process of
// its own, because there it has to fail.
func TestFaultsAreNoticed(t *testing.T) {
	for _, fault := range faults() {
		t.Run(strings.ReplaceAll(fault.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			pattern := "^" + strings.ReplaceAll("TestFaulty/"+fault.noticed, "/", "$/^") + "$"
			child := exec.Command(os.Args[0], "-test.run="+pattern, "-test.timeout=10m")
			child.Env = append(os.Environ(), faultVariable+"="+fault.name)
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the suite passes:\n%s", output)
			var tests []string
			for _, match := range failed.FindAllStringSubmatch(string(output), -1) {
				tests = append(tests, match[1])
			}
			require.Contains(t, tests, fault.noticed, "%s", output)
		})
	}
}

// TestFaulty is what runs in the child process.
func TestFaulty(t *testing.T) {
	name := os.Getenv(faultVariable)
	for _, fault := range faults() {
		if fault.name == name {
			storetest.Run(t, func(*testing.T) func() store.Store {
				memory := store.NewMemory()
				return func() store.Store { return newBroken(memory.Open(), fault.seed) }
			})
			return
		}
	}
	require.Empty(t, name, "no such fault")
}

// The wrappers themselves change nothing.
func TestBrokenWithoutFault(t *testing.T) {
	storetest.Run(t, func(*testing.T) func() store.Store {
		memory := store.NewMemory()
		return func() store.Store { return newBroken(memory.Open(), func(*broken) {}) }
	})
}

func faults() []fault {
	return append(writeFaults(), readFaults()...)
}
