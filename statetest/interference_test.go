package statetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// What the agent search may not know, and what it may.
var (
	hiddenCard   = &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	hiddenNotes  = &state.Field[[]string]{Name: "complaints", Read: state.Only("billing"), Write: state.Only("billing")}
	shownTopic   = &state.Field[string]{Name: "subject", Read: state.Public, Write: state.Public}
	hiddenSchema = state.MustSchema(state.Team{"support": {"billing", "search"}}, hiddenCard, hiddenNotes, shownTopic)
)

// sees returns all that an agent sees of a run: what its requests say, and what
// its handle reads in the end. An agent that cannot tell two states apart sees
// the same of both. It finds a flow that has no trace of the value, such as a
// route, a count or the length of a mask, which NoLeak cannot find.
func sees(t *testing.T, agent string, run func(m *statetest.Model, st *state.State), vary func(st *state.State)) string {
	st := state.New(hiddenSchema)
	require.NoError(t, errors.Join(hiddenCard.Set(st, "4242-4242-4242"), hiddenNotes.Set(st, []string{"late", "broken"}),
		shownTopic.Set(st, "a keyboard")))
	vary(st)
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say("Nothing.").Times(-1))
	run(m, st)
	handle := st.As(agent)
	return m.Sent(agent) + "\n" + handle.Describe() + fmt.Sprint(handle.Fields())
}

// Each program lets search tell something of a hidden field, if it has its
// mistake. Nobody but the comparison of two runs notices it.
func TestTwoRunsShowWhatAnAgentCanTell(t *testing.T) {
	other := func(st *state.State) {
		if hiddenCard.Replace(st, "5555-5555-5555-5555") != nil || hiddenNotes.Replace(st, []string{"late"}) != nil {
			panic("the fields cannot be replaced")
		}
	}
	without := func(st *state.State) {
		_, _ = hiddenCard.Delete(st)
		_, _ = hiddenNotes.Delete(st)
	}
	programs := map[string]func(m *statetest.Model, st *state.State, mistake bool){
		"router on a hidden field": func(m *statetest.Model, st *state.State, mistake bool) {
			if !mistake || hiddenCard.Has(st) {
				ask(t, m, st, "Find it.")
			}
		},
		"length of a mask": func(m *statetest.Model, st *state.State, mistake bool) {
			mask := "****"
			if mistake {
				mask = strings.Repeat("*", len(hiddenCard.GetOr(st, "")))
			}
			ask(t, m, st, "The card is "+mask)
		},
		"request more": func(m *statetest.Model, st *state.State, mistake bool) {
			ask(t, m, st, "Find it.")
			if mistake && state.ListLen(st, hiddenNotes) < 2 {
				ask(t, m, st, "And that.")
			}
		},
	}
	for name, program := range programs {
		for _, mistake := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/mistake=", mistake), func(t *testing.T) {
				run := func(m *statetest.Model, st *state.State) { program(m, st, mistake) }
				want := sees(t, "search", run, func(*state.State) {})
				differs := want != sees(t, "search", run, other) || want != sees(t, "search", run, without)
				require.Equal(t, mistake, differs)
			})
		}
	}
}

// ask lets search ask a model, and appends the answer.
func ask(t *testing.T, m *statetest.Model, st *state.State, prompt string) {
	t.Helper()
	result, err := m.Next(t.Context(), "search", []state.Message{state.UserText(prompt)})
	require.NoError(t, err)
	require.NoError(t, st.As("search").History().Append(result))
}
