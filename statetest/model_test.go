package statetest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

func TestModelReturnsErrorsAsTheyAre(t *testing.T) {
	broken := errors.New("connection reset")
	m := statetest.NewModel(t, provider.OpenAI, statetest.Status(529, `{"type":"error"}`), statetest.Fail(broken))
	said := []state.Message{state.UserText("Hi.")}

	_, err := m.Next(t.Context(), "", said)
	require.Equal(t, &statetest.StatusError{Code: 529, Body: `{"type":"error"}`}, err)
	_, err = m.Next(t.Context(), "", said)
	require.True(t, err == broken, "%v", err)
}

func TestModelGivesARepeatedReplyToEqualRequests(t *testing.T) {
	m := statetest.NewModel(t, provider.OpenAI, statetest.Status(503, "").Times(20), statetest.Say("Hello."))
	said := []state.Message{state.UserText("Hi.")}
	for range 20 {
		_, err := m.Next(t.Context(), "", said)
		require.ErrorContains(t, err, "503")
	}
	_, err := m.Next(t.Context(), "", said)
	require.NoError(t, err)
}

// Gemini gave calls no ids for years, and frameworks drop them.
func TestModelComparesCallsWithoutIDsByPlace(t *testing.T) {
	c := newTalk(t, provider.Gemini,
		statetest.Calls(state.ToolCall{Name: "look", Input: `{"n":1}`}, state.ToolCall{Name: "look", Input: `{"n":2}`}),
		statetest.Call("look", `{"n":1}`), statetest.Say("Done."))
	c.msgs = []state.Message{ // what the model did not make is not compared
		state.UserText("Before."), state.ToolCalls(state.ToolCall{Name: "look", Input: `{"n":7}`}),
		state.ToolResult(state.ToolCall{Name: "look"}, `{}`), state.AssistantText("Well."), state.UserText("Go on."),
	}
	for range 3 {
		before := len(c.msgs)
		calls := c.ask()
		for i := range calls {
			calls[i].ID = ""
		}
		if len(calls) > 0 {
			c.msgs = append(c.msgs[:before:before], state.ToolCalls(calls...))
		}
		c.answer(calls)
	}
	require.Len(t, c.model.Requests(), 3)
}
