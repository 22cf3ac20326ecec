package state_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
)

func ExampleHistory_Append() {
	st := state.New(state.MustSchema(state.Team{"writer": nil}))
	writer := st.As("writer")
	call := state.ToolCall{ID: "call_1", Name: "rhymes", Input: `{"word":"rain"}`}
	err := errors.Join(
		state.Messages.Set(st, []state.Message{state.UserText("A line about rain.")}),
		writer.History().Append(state.InferenceResult{
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, `["plain"]`)},
		}),
		writer.History().Append(state.InferenceResult{
			Output:    []state.Message{state.AssistantText("Rain on the plain.")},
			StartedAt: time.Now(), // before the model is called
		}),
	)
	last, _ := st.History().Last()
	fmt.Println(err, st.History().Len(), last.Agent, !last.CreatedAt.Before(last.StartedAt))
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// <nil> 2 writer true
	// text "user": "A line about rain."
	// tool_call "assistant": "rhymes" id "call_1"
	// tool_result "rhymes" id "call_1": "[\"plain\"]"
	// text "assistant": "Rain on the plain."
}

func ExampleHistory_Format() {
	st := state.New(nil)
	for _, r := range []state.InferenceResult{
		{Agent: "writer", Output: []state.Message{state.AssistantText("Rain on the plain.")}},
		{Agent: "critic", Output: []state.Message{state.AssistantText("Too plain.")}},
	} {
		if err := st.History().Append(r); err != nil {
			fmt.Println(err)
		}
	}
	prompt := st.History().Format(func(r state.InferenceResult) []state.Message {
		var said []state.Message
		for _, m := range r.Output {
			if m, ok := m.(state.TextMessage); ok {
				said = append(said, state.UserText(r.Agent+" said: "+m.Text()))
			}
		}
		return said
	})
	for _, m := range prompt {
		fmt.Println(m)
	}
	// Output:
	// text "user": "writer said: Rain on the plain."
	// text "user": "critic said: Too plain."
}

func ExampleHistory_All() {
	st := state.New(nil)
	history := st.History()
	for _, agent := range []string{"writer", "critic", "writer"} {
		if err := history.Append(state.InferenceResult{Agent: agent, Input: "draft"}); err != nil {
			fmt.Println(err)
		}
	}
	for i, r := range history.All() {
		fmt.Println(i, r.Agent)
	}
	popped, ok, err := history.Pop()
	first, _ := history.At(0)
	fmt.Println(popped.Agent, ok, err, first.Agent, len(history.Results()))
	fmt.Println(history.Reset(nil), history.Len())
	// Output:
	// 0 writer
	// 1 critic
	// 2 writer
	// writer true <nil> writer 2
	// <nil> 0
}

// An agent signs with its own name, and with no other.
func ExampleHistory_Append_signature() {
	st := state.New(state.MustSchema(state.Team{"writer": {"critic"}}))
	critic := st.As("critic")
	fmt.Println(critic.History().Append(state.InferenceResult{Agent: "writer"}))
	fmt.Println(critic.History().Append(state.InferenceResult{}))
	last, _ := st.History().Last()
	fmt.Println(last.Agent)
	// Output:
	// state: append a result of "writer" to "history": access denied to agent "critic"
	// <nil>
	// critic
}
