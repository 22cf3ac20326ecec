// Package storetest contains the conformance tests of [store.Store]:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() store.Store {
//			path := filepath.Join(t.TempDir(), "state.db")
//			return func() store.Store { return open(t, path) }
//		})
//	}
//
// The name of a failed test says what is wrong with the store. Those of
// [store.Watcher] run if the store is one.
package storetest

import (
	"slices"
	"testing"

	"github.com/agentstate/state/store"
)

// Run tests a store. It calls fresh for each of its tests. Each call of fresh
// creates an empty data set; each call of the function that fresh returns opens
// another handle on that data set. Run closes the handles.
func Run(t *testing.T, fresh func(t *testing.T) (open func() store.Store)) {
	for _, group := range []struct {
		name  string
		tests []storeTest
	}{
		{"Keys", keyTests},
		{"Values", valueTests},
		{"Aliasing", aliasingTests},
		{"Revisions", revisionTests},
		{"Conditions", conditionTests},
		{"Refusals", refusalTests()},
		{"Get", getTests},
		{"List", listTests},
		{"Batch", batchTests},
		{"Watch", watchTests},
		{"Contexts", slices.Concat(contextTests, endedContextTests())},
		{"Concurrency", concurrencyTests},
		{"Closing", closeTests},
		{"Errors", errorTests},
		{"Durability", durabilityTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, fresh(t))) })
			}
		})
	}
}
