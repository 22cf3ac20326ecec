package loop_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// A window shows the model the end of a conversation. It finds the rest with
// recall.
func ExampleRecall() {
	ctx, st := context.Background(), state.New(nil)
	said := []state.Message{
		state.UserText("My dog is called Waldo."), state.AssistantText("A nice name!"),
		state.UserText("I live in Vienna."), state.AssistantText("A nice town!"),
		state.UserText("What should I call my cat?"), state.AssistantText("Fiona?"),
		state.UserText("Something that goes with the name of my dog."),
	}
	if err := state.Messages.Set(st, said); err != nil {
		panic(err)
	}
	window := &transcript.Window{Target: 5, Keep: 3, Tokens: func(state.Message) int { return 1 }}
	shown, err := window.Messages(ctx, st, 0)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(shown), "messages are shown")
	calls := []state.ToolCall{{ID: "c1", Name: "recall", Input: `{"words":"dog name"}`}}
	results, err := tool.Run(ctx, st, []*tool.Tool{loop.Recall()}, calls)
	if err != nil {
		panic(err)
	}
	fmt.Println(results[0].Message.Text())
	// Output:
	// 3 messages are shown
	// ["user: My dog is called Waldo.\nassistant: A nice name!\nuser: I live in Vienna."]
}
