package main

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

// ticket returns a state to start from.
func ticket(t *testing.T, values map[string]any) *state.State {
	st := state.New(schema)
	require.NoError(t, st.Patch(values))
	return st
}

// says is a model that always gives one answer.
func says(answer string) Model { return func(string, string) string { return answer } }

func TestRouter(t *testing.T) {
	for _, test := range []struct {
		name   string
		values map[string]any
		want   string
	}{
		{"a new ticket", nil, "triage"},
		{"an urgent one", map[string]any{"urgent": true}, "human"},
		{"an urgent one, after the page", map[string]any{"urgent": true, "pages_sent": 1}, "clerk"},
		{"one that can wait", map[string]any{"urgent": false}, "clerk"},
		{"an answered one", map[string]any{"urgent": false, "answer": "Done."}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, Next(ticket(t, test.values)))
		})
	}
}

func TestAModelWritesOnlyWhatItsAgentMayWrite(t *testing.T) {
	st := ticket(t, nil)
	before := st.Snapshot()
	err := Step(st, says(`{"urgent":false,"answer":"No."}`))
	require.ErrorIs(t, err, state.ErrDenied)
	require.Equal(t, before.KV().All(), st.KV().All())
	require.Equal(t, before.Version(), st.Version())
}

func TestNoPromptHoldsTheCustomersMail(t *testing.T) {
	st := ticket(t, map[string]any{"urgent": false, "customer_mail": "ada@example.com"})
	var prompts strings.Builder
	err := Step(st, func(_, prompt string) string {
		prompts.WriteString(prompt)
		return `{"answer":"Done."}`
	})
	require.NoError(t, err)
	require.Contains(t, prompts.String(), "customer_mail (string) = [SECRET]")
	require.NotContains(t, prompts.String(), "ada@example.com")
}

// A process that is killed between any two steps finishes the same way.
func TestRunSurvivesARestartAfterEachStep(t *testing.T) {
	st := ticket(t, map[string]any{"ticket": "Down!"})
	steps := 0
	for ; Next(st) != ""; steps++ {
		require.NoError(t, Step(st, func(agent, _ string) string {
			return map[string]string{"triage": `{"urgent":true}`, "clerk": `{"answer":"We are on it."}`}[agent]
		}))
		data, err := st.Export()
		require.NoError(t, err)
		st, err = state.Import(schema, data)
		require.NoError(t, err)
	}
	require.Equal(t, 3, steps)
	require.Equal(t, "We are on it.", Answer.Or(st, ""))
	require.Equal(t, 1, Page.Or(st, 0), "a human is paged once")
}
