package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/workspace"
)

// answer handles a message: the model is asked, and its calls are made, until it
// answers with text. The loop stores calls before they are made, so that the run
// that continues after a crash makes those that were not completed.
func (s *shop) answer(ctx context.Context, run *workspace.Run) error {
	desk := loop.Agent{Ask: ask, Tools: append(s.tools(), run.Memory().Tools()...)}
	return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": desk}})(ctx, run)
}

// ask asks the model for its next message.
func ask(ctx context.Context, turn *loop.Turn) error {
	prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
	if err != nil {
		return err
	}
	return turn.Said(ctx, state.InferenceResult{Output: []state.Message{model(prompt)}})
}

// intents are the requests that the model understands.
var intents = []struct {
	request         *regexp.Regexp
	tool, arguments string
}{
	{regexp.MustCompile(`#W\d+`), "look_up_order", `{"order":"$0"}`},
	{regexp.MustCompile(`refund`), "refund", `{}`},
	{regexp.MustCompile(`remember my (\w+) is ([\w-]+)`), "memory_set", `{"key":"$1","value":"$2","secret":true}`},
	{regexp.MustCompile(`what is my (\w+)`), "memory_get", `{"key":"$1"}`},
}

// model stands for a language model. It returns the next message of a
// conversation.
func model(history []state.Message) state.Message {
	id := fmt.Sprint("call_", len(history))
	switch m := history[len(history)-1].(type) {
	case state.TextMessage:
		for _, i := range intents {
			if at := i.request.FindStringSubmatchIndex(m.Text()); at != nil {
				arguments := i.request.ExpandString(nil, i.arguments, m.Text(), at)
				return state.ToolCalls(state.ToolCall{ID: id, Name: i.tool, Input: state.JSON(arguments)})
			}
		}
	case state.ToolResultMessage:
		if m.IsError() { // its text is written for a model, and not for a customer
			return state.AssistantText("I could not do that. Which order is it about, such as #W1?")
		}
		return state.AssistantText(m.Text())
	}
	return state.AssistantText("I look up orders, refund them, and remember things.")
}
