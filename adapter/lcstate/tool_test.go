package lcstate_test

import (
	"errors"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/tools"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/tool"
)

// A tool of an executor gets one text. It injects fields, and has the rights of
// its agent. The model reads its errors.
func TestTool(t *testing.T) {
	st := desk(t)
	ctx := state.NewContext(t.Context(), st)
	for _, c := range []struct {
		agent       string
		tool        *tool.Tool
		input, want string
	}{
		{"billing", refund, `{"amount":5}`, "refunded 5 of #W1 to [SECRET]"},
		{"billing", refund, `{"amount":"5"}`, "error: tool \"refund\": bad arguments:\n- \"amount\": want number, got string"},
		{"billing", refund, `5`, "error: tool \"refund\": bad arguments:\n- arguments: want an object, got number"},
		{"search", refund, `{"amount":5}`, `error: tool "refund": parameter "card": field "card": read: access denied to agent "search"`},
		{"search", note, `{"text":"a"}`, "a"},
		{"", note, "It said \"b\".", "It said \"b\"."},
	} {
		got, err := lcstate.Tool(c.agent, c.tool).Call(ctx, c.input)
		check(t, err)
		statetest.Equal(t, c.want, got)
	}
	statetest.Equal(t, []string{"a", `It said "b".`}, notes.Or(st, nil))

	_, err := lcstate.Tool("", note).Call(t.Context(), "a")
	statetest.Equal(t, true, errors.Is(err, lcstate.ErrNoState))
	_, err = lcstate.Tool("", pay).Call(ctx, `{"amount":5}`)
	statetest.Equal(t, true, errors.Is(err, tool.ErrSuspended))
}

// The executor of langchaingo uses such tools, also with the agent that reads its
// actions from a text.
func TestToolInExecutor(t *testing.T) {
	st := desk(t)
	m := statetest.NewModel(t, clients[0].format,
		statetest.Say("Thought: note it\nAction: note\nAction Input: {\"text\":\"a\"}").Reads("JSON of this schema"),
		statetest.Say("Final Answer: Noted.").Reads("Observation: a"),
	)
	llm, err := clients[0].open(m)
	check(t, err)
	agent := agents.NewOneShotAgent(llm, []tools.Tool{lcstate.Tool("search", note)})
	_, err = chains.Run(state.NewContext(t.Context(), st), agents.NewExecutor(agent), "Write a note.")
	check(t, err)
	statetest.Equal(t, []string{"a"}, notes.Or(st, nil))
}
