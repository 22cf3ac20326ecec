package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
)

// opener is the argument of Main.
var opener func(address string) (store.Store, error)

// Main must be called by the TestMain of a package that uses [Processes] or
// [Kill]:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m, open)) }
//
// These tests start the test binary again, several times, and Main is where
// such a process becomes a worker instead of running the tests. It returns the
// exit code. open opens a handle on the data set at an address, whose form is
// up to the package. The tests leave some entries there.
func Main(m *testing.M, open func(address string) (store.Store, error)) int {
	opener = open
	return worker.Main(m, task.do)
}

// task is what a worker does.
type task struct {
	Job     string `json:"job"`
	Address string `json:"address"`
	Prefix  string `json:"prefix"` // of all its keys
	Seed    uint64 `json:"seed"`
}

func (t task) do() error {
	jobs := map[string]func(store.Store, task) error{
		"serve": serve, "write": write,
	}
	job, ok := jobs[t.Job]
	if !ok {
		return fmt.Errorf("storetest: no job %q", t.Job)
	}
	s, err := opener(t.Address)
	if err != nil {
		return fmt.Errorf("storetest: open: %w", err)
	}
	return errors.Join(job(s, t), s.Close())
}

// open opens a handle in the process of the test.
func open(t *testing.T, address string) store.Store {
	t.Helper()
	if opener == nil {
		t.Fatal("TestMain does not call storetest.Main")
	}
	s, err := opener(address)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// newPrefix returns a prefix of keys that no other test has.
func newPrefix(name string) string {
	return name + "-" + string(store.NewRevision()[:16]) + "/"
}
