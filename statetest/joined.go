package statetest

import (
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/agentstate/state"
)

// Joined fails the test, when it ends, for each branch with writes that was forked from
// st, or from a branch of it, and was not joined: the writes are lost without an error.
// It names where the branch was forked and the fields that it has written. Call it
// before the first Fork. Forks of snapshots are clones, which cannot be joined, and do
// not count. It is not for a program that drops branches on purpose.
func Joined(t testing.TB, st *state.State) {
	t.Helper()
	if st == nil {
		t.Fatal("statetest: Joined: the State is nil")
	}
	var mu sync.Mutex
	var forks []fork
	inside.OnFork(st, func(branch *state.State) {
		_, file, line, _ := runtime.Caller(2) // that of State.Fork
		mu.Lock()
		defer mu.Unlock()
		forks = append(forks, fork{branch, filepath.Base(file), line})
	})
	t.Cleanup(func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, f := range forks {
			if written := inside.Unjoined(f.branch); len(written) > 0 {
				t.Errorf("statetest: a branch was never joined, and what it has written is lost: %s\n    forked at %s:%d\n    %s",
					strings.Join(written, ", "), f.file, f.line, rerun(t))
			}
		}
	})
}

// fork is a branch, and where it was forked.
type fork struct {
	branch *state.State
	file   string
	line   int
}
