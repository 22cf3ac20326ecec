package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// answer handles a message: it asks the model and makes the calls that the
// model wants, until the model answers with text. Calls are stored before they
// are made, so that the run that continues after a crash knows which calls were
// not completed.
func (s *shop) answer(ctx context.Context, run *workspace.Run) error {
	st := run.State().As("desk")
	tools := append(s.tools(), run.Memory().Tools()...)
	for {
		history, err := state.Messages.Get(st)
		if err != nil {
			return err
		}
		next := model(history)
		if err := state.Messages.Set(st, []state.Message{next}); err != nil {
			return err
		}
		calls, ok := next.(state.ToolCallMessage)
		if !ok {
			return nil // Handle commits
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
		results, err := tool.Run(ctx, st, tools, calls.Calls())
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := state.Messages.Set(st, []state.Message{r.Message}); err != nil {
				return err
			}
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
	}
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
		call, ok := history[len(history)-2].(state.ToolCallMessage)
		if ok && m.IsError() && strings.Contains(m.Text(), "was not completed") {
			again := call.Calls()[0]
			again.ID = id
			return state.ToolCalls(again)
		}
		if m.IsError() { // its text is written for a model, and not for a customer
			return state.AssistantText("I could not do that. Which order is it about, such as #W1?")
		}
		return state.AssistantText(m.Text())
	}
	return state.AssistantText("I look up orders, refund them, and remember things.")
}
