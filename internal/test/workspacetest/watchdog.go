package workspacetest

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// maxVirtual is how much real time a test in virtual time may take. They take
// a second or two, so that only a test that spins takes as long.
const maxVirtual = 2 * time.Minute

// Watch ends the program, with the stacks of all goroutines, if the function
// that it returns is not called within maxVirtual of real time. It must be
// called outside of the bubble. In virtual time a loop that waits for what never
// happens has no deadline: time only goes on when all goroutines wait.
func Watch(t testing.TB) (stop func()) {
	return watchFor(maxVirtual, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("workspacetest: %s has run in virtual time for %s of real time", t.Name(), maxVirtual))
	})
}

func watchFor(limit time.Duration, expired func()) (stop func()) {
	timer := time.AfterFunc(limit, expired)
	return func() { timer.Stop() }
}
