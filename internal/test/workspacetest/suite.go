// Package workspacetest tests package workspace on a store: the ordinary trouble
// whose outcome a store decides, each kind with what a user must see of it. It
// has what the tests of package workspace share, too. Only tests import it.
//
// The tests of package workspace call [Virtual] with store.Memory, in the
// virtual time of package synctest. The tests of the stores call [Real], in
// real time and with a short TTL.
package workspacetest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// suite is how a store is tested.
type suite struct {
	// on calls a scenario with an empty store. The scenario gives its Managers
	// the TTL, and measures time in parts of it.
	on func(t *testing.T, scenario func(t testing.TB, db store.Store, ttl time.Duration))
	// fresh returns an empty store, which the end of the test removes.
	fresh func(t testing.TB) store.Store
	// watched is whether the store reports changes.
	watched bool
	// real is whether time is real.
	real bool
}

// Virtual tests package workspace on stores that need no time and start no
// goroutines, in virtual time. The end of a test removes its store.
func Virtual(t *testing.T, fresh func(t testing.TB) store.Store) {
	s := &suite{fresh: fresh, on: func(t *testing.T, scenario func(t testing.TB, db store.Store, ttl time.Duration)) {
		t.Helper()
		defer Watch(t)()
		synctest.Test(t, func(t *testing.T) { scenario(t, fresh(t), 30*time.Second) })
	}}
	s.run(t)
}

// Real tests package workspace on stores in real time. The tests are parallel.
// A test that has failed because of a time, or on a machine or store that was too
// slow for its TTL, is repeated with a longer one.
func Real(t *testing.T, fresh func(t testing.TB) store.Store) {
	s := &suite{fresh: fresh, real: true, on: func(t *testing.T, scenario func(t testing.TB, db store.Store, ttl time.Duration)) {
		t.Parallel()
		inRealTime(t, fresh, scenario)
	}}
	s.run(t)
}

func (s *suite) run(t *testing.T) {
	_, s.watched = store.As[store.Watcher](s.fresh(t))
	for name, scenario := range map[string]func(*suite, *testing.T){
		"Outage":             (*suite).Outage,
		"SubmitInDoubt":      (*suite).SubmitInDoubt,
		"Takeover":           (*suite).Takeover,
		"ObserversAtOnce":    (*suite).ObserversAtOnce,
		"InterruptElsewhere": (*suite).InterruptElsewhere,
		"Shutdown":           (*suite).Shutdown,
		"SendersToOneUser":   (*suite).SendersToOneUser,
		"Threads":            (*suite).Threads,
		"LiveText":           (*suite).LiveText,
	} {
		t.Run(name, func(t *testing.T) { scenario(s, t) })
	}
}

// InTTLs returns n times the TTL.
func InTTLs(n float64, ttl time.Duration) time.Duration { return time.Duration(n * float64(ttl)) }

// RequireAbout requires that something took as long as wanted, as far as it
// matters to leases.
func RequireAbout(t testing.TB, ttl, want, took time.Duration, about ...any) {
	t.Helper()
	noteTime(t, (took-want).Abs() <= ttl/4)
	require.InDelta(t, want.Seconds(), took.Seconds(), (ttl / 4).Seconds(), about...)
}

// RequireWithin requires that less than limit has passed.
func RequireWithin(t testing.TB, began time.Time, limit time.Duration, about ...any) {
	t.Helper()
	took := time.Since(began)
	noteTime(t, took < limit)
	require.Less(t, took, limit, about...)
}

// RequireSoon requires that nobody has waited for a heartbeat or a lease.
func RequireSoon(t testing.TB, ttl time.Duration, began time.Time) {
	t.Helper()
	RequireWithin(t, began, ttl/4)
}

// WaitUntil waits until a condition holds, for at most ten TTLs.
func WaitUntil(t testing.TB, ttl time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(ttl / 100) {
		RequireWithin(t, began, 10*ttl, "it takes too long")
	}
}
