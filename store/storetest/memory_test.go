package storetest_test

import (
	"testing"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) func() store.Store {
		memory := store.NewMemory()
		return func() store.Store { return memory.Open() }
	})
}
