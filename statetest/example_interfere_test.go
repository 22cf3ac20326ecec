package statetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// The agent search cannot tell which card the customer has, nor whether there is
// one: its prompt comes from its own handle.
func TestExampleInterfere(t *testing.T) {
	card := &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	order := &state.Field[string]{Name: "order", Read: state.Public}
	schema := state.MustSchema(state.Team{"support": {"billing", "search"}}, card, order)
	setup := func() *state.State {
		st := state.New(schema)
		_ = order.Set(st, "#W1")
		_ = card.Set(st, "4242-4242-4242")
		return st
	}
	statetest.Interfere(t, "search", setup, func(st *state.State, seen *statetest.Seen) {
		m := seen.Model(provider.OpenAI, statetest.Say("Nothing found."))
		prompt := state.UserText(st.As("search").Describe())
		result, err := m.Next(context.Background(), "search", []state.Message{prompt})
		if err == nil {
			err = st.As("search").History().Append(result)
		}
		seen.Text("error", fmt.Sprint(err))
	}, statetest.Other(card, "5555-5555-5555-5555"), statetest.Without(card))
}
