// Package workspacetest tests package workspace on a store: ordinary trouble,
// each kind with what a user must see of it. Only tests import it.
//
// The tests of package workspace call [Virtual] with store.Memory, in the
// virtual time of package synctest. The tests of the stores call [Real], in
// real time and with a short TTL.
package workspacetest

import (
	"slices"
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
		defer watch(t)()
		synctest.Test(t, func(t *testing.T) { scenario(t, fresh(t), 30*time.Second) })
	}}
	s.run(t)
}

// Real tests package workspace on stores in real time, with the scenarios whose
// outcome the store decides. The tests are parallel.
// A test that has failed because of a time, or on a machine or store that was too
// slow for its TTL, is repeated with a longer one.
func Real(t *testing.T, fresh func(t testing.TB) store.Store) {
	s := &suite{fresh: fresh, real: true, on: func(t *testing.T, scenario func(t testing.TB, db store.Store, ttl time.Duration)) {
		t.Parallel()
		inRealTime(t, fresh, scenario)
	}}
	s.run(t)
}

// decidedByStore are the scenarios that run in real time too: their outcome
// depends on what a store does. Virtual time shows the same of the others.
var decidedByStore = []string{
	"Outage", "SubmitInDoubt", "Takeover", "ObserversAtOnce", "InterruptElsewhere",
	"SendersToOneUser", "Shutdown", "LiveText",
}

func (s *suite) run(t *testing.T) {
	_, s.watched = store.As[store.Watcher](s.fresh(t))
	for _, scenario := range []struct {
		name string
		test func(*suite, *testing.T)
	}{
		// The store is away.
		{"Outage", (*suite).Outage},
		{"OutageWhenAMessageArrives", (*suite).OutageWhenAMessageArrives},
		{"OutageForOneMessage", (*suite).OutageForOneMessage},
		{"OutageDuringATakeover", (*suite).OutageDuringATakeover},
		{"LongOutageOfOneProcess", (*suite).LongOutageOfOneProcess},
		{"LongOutageWithoutOptionsRun", (*suite).LongOutageWithoutOptionsRun},
		{"LongOutageDuringDo", (*suite).LongOutageDuringDo},
		{"CloseDuringLongOutage", (*suite).CloseDuringLongOutage},
		{"CloseDuringOutage", (*suite).CloseDuringOutage},
		{"SubmitInDoubt", (*suite).SubmitInDoubt},
		{"DoInDoubt", (*suite).DoInDoubt},
		// It can never be stored.
		{"ValueThatIsTooLarge", (*suite).ValueThatIsTooLarge},
		// Code of the user does not return, or takes long.
		{"CodeThatDoesNotReturn", (*suite).CodeThatDoesNotReturn},
		{"ErrorThatPanics", (*suite).ErrorThatPanics},
		{"SlowHook", (*suite).SlowHook},
		{"HandleInHook", (*suite).HandleInHook},
		// The content does not fit the schema.
		{"ContentThatDoesNotFitTheSchema", (*suite).ContentThatDoesNotFitTheSchema},
		{"TakeoverOfContentThatDoesNotFit", (*suite).TakeoverOfContentThatDoesNotFit},
		{"RollOutOfAChangedField", (*suite).RollOutOfAChangedField},
		{"Check", (*suite).Check},
		{"SchemaThatPanics", (*suite).SchemaThatPanics},
		// A failover has lost writes.
		{"Accept", (*suite).Accept},
		// A context ends, or the Manager is closed.
		{"ReleasedRun", (*suite).ReleasedRun},
		{"Shutdown", (*suite).Shutdown},
		{"VacantLeaseIsTakenAtOnce", (*suite).VacantLeaseIsTakenAtOnce},
		{"CloseWithinARun", (*suite).CloseWithinARun},
		// The run returns an error.
		{"Failure", (*suite).Failure},
		{"Retry", (*suite).Retry},
		{"RetryAfter", (*suite).RetryAfter},
		{"RetryAfterAttempts", (*suite).RetryAfterAttempts},
		{"EndOfTheWaitForAnAttempt", (*suite).EndOfTheWaitForAnAttempt},
		// Calls wait for a person.
		{"SuspendedCallsStayOpen", (*suite).SuspendedCallsStayOpen},
		{"PendingOfARunThatIsTakenOver", (*suite).PendingOfARunThatIsTakenOver},
		{"PendingOfARunWithoutAttempts", (*suite).PendingOfARunWithoutAttempts},
		// A run is interrupted.
		{"InterruptWaitsForTheFunction", (*suite).InterruptWaitsForTheFunction},
		{"InterruptElsewhere", (*suite).InterruptElsewhere},
		// A process dies.
		{"Takeover", (*suite).Takeover},
		{"ObserversAtOnce", (*suite).ObserversAtOnce},
		{"Dead", (*suite).Dead},
		{"RefusedMessagesFindDeadHolder", (*suite).RefusedMessagesFindDeadHolder},
		{"IdempotencyKeysHold", (*suite).IdempotencyKeysHold},
		// Others watch the answer.
		{"LiveText", (*suite).LiveText},
		// Many send at once.
		{"SendersToOneUser", (*suite).SendersToOneUser},
		{"ManyUsersAtOnce", (*suite).ManyUsersAtOnce},
		{"WaitingRunLendsSlot", (*suite).WaitingRunLendsSlot},
	} {
		if s.real && !slices.Contains(decidedByStore, scenario.name) {
			continue
		}
		t.Run(scenario.name, func(t *testing.T) { scenario.test(s, t) })
	}
}

// InTTLs returns n times the TTL.
func InTTLs(n float64, ttl time.Duration) time.Duration { return time.Duration(n * float64(ttl)) }

// requireAbout requires that something took as long as wanted, as far as it
// matters to leases.
func requireAbout(t testing.TB, ttl, want, took time.Duration, about ...any) {
	t.Helper()
	noteTime(t, (took-want).Abs() <= ttl/4)
	require.InDelta(t, want.Seconds(), took.Seconds(), (ttl / 4).Seconds(), about...)
}

// requireWithin requires that less than limit has passed.
func requireWithin(t testing.TB, began time.Time, limit time.Duration, about ...any) {
	t.Helper()
	took := time.Since(began)
	noteTime(t, took < limit)
	require.Less(t, took, limit, about...)
}

// requireSoon requires that nobody has waited for a heartbeat or a lease.
func requireSoon(t testing.TB, ttl time.Duration, began time.Time) {
	t.Helper()
	requireWithin(t, began, ttl/4)
}

// waitUntil waits until a condition holds, for at most ten TTLs.
func waitUntil(t testing.TB, ttl time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(ttl / 100) {
		requireWithin(t, began, 10*ttl, "it takes too long")
	}
}
