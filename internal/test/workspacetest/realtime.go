package workspacetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/store"
)

const (
	// realTTL is the first TTL that is tried in real time, and maxRealTTL the
	// last one.
	realTTL    = time.Second
	maxRealTTL = 8 * time.Second
	// probeKey begins the keys of probes.
	probeKey = "probe/"
)

// inRealTime runs a scenario. If it fails, and a probe has shown that the
// machine or the store was too slow for the TTL, the failure tells nothing, and
// the scenario is repeated with twice the TTL. So it is if a time was wrong: what
// a fault delays takes a part of any TTL, but what a machine delays does not.
// Virtual time finds the other faults.
func inRealTime(
	t *testing.T, fresh func(t testing.TB) store.Store, scenario func(t testing.TB, db store.Store, ttl time.Duration),
) {
	t.Helper()
	for ttl := realTTL; ; ttl *= 2 {
		a := &attempt{TB: t, failed: make(chan struct{})}
		var worst time.Duration
		a.run(ttl, func() {
			db := fresh(a) // its connections end with the attempt
			slowest := probing(db, ttl/20)
			a.Cleanup(func() { worst = slowest() })
			scenario(a, db, ttl)
		})
		switch {
		case !a.Failed():
		case (a.wrongTime || worst > ttl/100) && ttl < maxRealTTL:
			t.Logf("repeated after a TTL of %s, while the slowest write took %s: %s", ttl, worst, a.problem)
			continue
		default:
			t.Errorf("with a TTL of %s, while the slowest write took %s: %s", ttl, worst, a.problem)
		}
		return
	}
}

// probing writes to a store periodically. The function that it returns stops
// that, and returns the time that the slowest write took, and how much too late
// it began.
func probing(db store.Store, every time.Duration) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	slowest := make(chan time.Duration, 1)
	go func() {
		var worst time.Duration
		due := time.Now()
		for ctx.Err() == nil {
			_, _ = store.Put(context.WithoutCancel(ctx), db, probeKey+"write", nil, store.Always)
			worst = max(worst, time.Since(due))
			due = time.Now().Add(every)
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(due)):
			}
		}
		slowest <- worst
	}()
	return func() time.Duration {
		cancel()
		return <-slowest
	}
}

// attempt is a test that may be repeated if it fails. Its cleanups run at its
// end.
type attempt struct {
	testing.TB
	ctx context.Context

	failed chan struct{}

	mu        sync.Mutex
	problem   string // the first one
	wrongTime bool   // the problem is a time
	cleanups  []func()
}

// noteTime notes whether a time is right, before the test requires that.
func noteTime(t testing.TB, right bool) {
	a, ok := t.(*attempt)
	if !ok || right {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrongTime = a.wrongTime || a.problem == ""
}

// run runs the test and its cleanups. A test that has failed in a goroutine that
// it waits for is left after a while.
func (a *attempt) run(ttl time.Duration, test func()) {
	ctx, cancel := context.WithCancel(a.TB.Context())
	a.ctx = ctx
	done := apart(test)
	select {
	case <-done:
	case <-a.failed:
	}
	cancel()
	select {
	case <-done:
	case <-time.After(4 * ttl):
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cleanup := range slices.Backward(a.cleanups) {
		<-apart(cleanup)
	}
}

// apart calls a function in a goroutine of its own, which it may end.
func apart(fn func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn()
	}()
	return ended
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, fn)
}

func (a *attempt) fail(problem string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.problem == "" {
		a.problem = problem
		close(a.failed)
	}
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.problem != ""
}

func (a *attempt) Error(args ...any)                 { a.fail(fmt.Sprintln(args...)) }
func (a *attempt) Errorf(format string, args ...any) { a.fail(fmt.Sprintf(format, args...)) }
func (a *attempt) Fail()                             { a.fail("the test has failed") }
func (a *attempt) FailNow()                          { a.Fail(); runtime.Goexit() }
func (a *attempt) Fatal(args ...any)                 { a.Error(args...); runtime.Goexit() }
func (a *attempt) Fatalf(format string, args ...any) { a.Errorf(format, args...); runtime.Goexit() }
