package statetest_test

import (
	"sync"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
)

// Branches join in the order of Join's arguments, whichever was first: Orders
// runs all six orders of three branches to show it.
func TestExampleOrders(t *testing.T) {
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	schema := state.MustSchema(state.Team{"support": {"search"}}, notes)
	topics := []string{"refunds", "returns", "repairs"}
	statetest.Orders(t, len(topics), func(t *testing.T, o *statetest.Order) *state.State {
		st, branches, wg := state.New(schema), make([]*state.State, len(topics)), sync.WaitGroup{}
		for i, topic := range topics {
			branches[i] = st.Fork()
			wg.Go(func() {
				found := []string{"about " + topic}
				o.Wait(i)
				_ = notes.Set(branches[i].As("search"), found)
			})
		}
		wg.Wait()
		_ = st.Join(branches...)
		return st
	})
}
