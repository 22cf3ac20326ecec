package workspace_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// A refund waits for the approval of a person. Its tool suspends the call, which
// stays open while the conversation goes on. Later the person's decision arrives
// as the answer to the call, in a message without content.
func ExampleMessage_answers() {
	ctx := context.Background()
	tools := []*tool.Tool{tool.Must(tool.New("refund", "Refund an amount.",
		func(context.Context, struct {
			Amount int `json:"amount"`
		}) (string, error) {
			return "", tool.Suspend(errors.New("a person must approve the refund"))
		}))}
	answer := func(ctx context.Context, run *workspace.Run) error {
		for {
			// What the model is sent says that the call waits.
			prompt, _ := transcript.Repair(state.Messages.Or(run.State(), nil), transcript.Anthropic,
				transcript.Policy{AnswerCalls: true, Suspended: run.Suspended()})
			reply := model(prompt)
			if err := run.State().History().Append(state.InferenceResult{Output: []state.Message{reply}}); err != nil {
				return err
			}
			calls := transcript.Pending([]state.Message{reply})
			if len(calls) == 0 {
				run.SetReply(reply.(state.TextMessage).Text())
				return nil
			}
			if _, err := tool.Answer(ctx, run.State(), tools, calls); err != nil { // the suspended call has no result
				return err
			}
		}
	}
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Run: answer})
	if err != nil {
		panic(err)
	}
	say := func(msg workspace.Message) {
		out, err := m.Handle(ctx, "ann", msg)
		fmt.Println(out.Reply, err)
	}
	say(workspace.Message{Content: state.UserText("I want my 500 back.")})
	say(workspace.Message{Content: state.UserText("Hello?")})

	view, err := m.View(ctx, "ann") // what the person sees
	if err != nil {
		panic(err)
	}
	call := view.Suspended()[0]
	fmt.Println(call.Name, call.Input)
	decision := state.ToolResult(call, `"approved and refunded"`)
	say(workspace.Message{Answers: []state.ToolResultMessage{decision}})
	_, err = m.Handle(ctx, "ann", workspace.Message{Answers: []state.ToolResultMessage{decision}})
	fmt.Println(errors.Is(err, workspace.ErrNotSuspended))

	view, _ = m.View(ctx, "ann")
	for _, msg := range state.Messages.Or(view.State(), nil) {
		fmt.Println(msg)
	}
	// Output:
	// A colleague looks at it. <nil>
	// A colleague looks at it. <nil>
	// refund {"amount":500}
	// It is approved and refunded. <nil>
	// true
	// text "user": "I want my 500 back."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "approved and refunded"
	// text "assistant": "A colleague looks at it."
	// text "user": "Hello?"
	// text "assistant": "A colleague looks at it."
	// text "assistant": "It is approved and refunded."
}

// model stands for a model: it makes a call, and then tells the user its result.
func model(prompt []state.Message) state.Message {
	for _, m := range prompt {
		if r, ok := m.(state.ToolResultMessage); ok {
			if r.Text() == "Waiting for approval." {
				return state.AssistantText("A colleague looks at it.")
			}
			return state.AssistantText("It is " + r.Text() + ".")
		}
	}
	return state.ToolCalls(state.ToolCall{ID: "c1", Name: "refund", Input: `{"amount":500}`})
}
