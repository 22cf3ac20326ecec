// History shows the stack of inference results, the conversation that grows with
// it, and the prompt that the next agent is given.
package main

import (
	"fmt"
	"log"

	"github.com/agentstate/state"
)

var schema = state.MustSchema(state.Team{"editor": {"writer", "critic"}})

func main() {
	st := state.New(schema)
	writer, critic := st.As("writer"), st.As("critic")

	// The user's turn is added to the conversation; an agent's turn is a result.
	// The answer and the tools' results go into the conversation in the same version.
	check(state.Messages.Set(st, []state.Message{state.UserText("A line about rain, please.")}))
	look := state.ToolCall{ID: "call_1", Name: "rhymes", Input: `{"word":"rain"}`}
	turn(writer, []state.Message{state.ToolCalls(look)}, state.ToolResult(look, `["plain","grain"]`))
	turn(writer, []state.Message{state.AssistantText("Rain falls on the plain.")})
	turn(critic, []state.Message{state.AssistantText("Too plain.")})

	for i, r := range st.History().All() {
		fmt.Printf("%d  %-7s saw %d, said %v\n", i, r.Agent, len(r.History), r.Output[0])
	}
	fmt.Println("conversation:", state.Len(st, state.Messages), "messages")

	// Format makes the prompt of the next agent. To an editor the others' turns
	// are things that colleagues have said.
	fmt.Println("\nfor the editor:")
	prompt := st.As("editor").History().Format(func(r state.InferenceResult) []state.Message {
		said, ok := r.Output[0].(state.TextMessage)
		if !ok {
			return nil // the tool calls of others are no concern of his
		}
		return []state.Message{state.UserText(r.Agent + " says: " + said.Text())}
	})
	for _, m := range prompt {
		fmt.Println(" ", m)
	}

	// Whoever takes the critic's turn back leaves the conversation as it was said.
	popped, _, err := st.History().Pop()
	check(err)
	last, _ := st.History().Last()
	fmt.Println("\npopped the", popped.Agent+"'s turn; the last is now the", last.Agent+"'s, of", st.History().Len())
	fmt.Println("conversation:", state.Len(st, state.Messages), "messages")

	// Nobody signs with another's name.
	fmt.Println(critic.History().Append(state.InferenceResult{Agent: "writer"}))
}

// turn appends what an agent's model has answered to the conversation so far.
func turn(me *state.State, output []state.Message, results ...state.ToolResultMessage) {
	check(me.History().Append(state.InferenceResult{
		Prompt:    []state.Message{state.SystemText("You are the " + me.Agent() + ".")},
		History:   state.Messages.Or(me, nil),
		Output:    output,
		ToolCalls: results,
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
