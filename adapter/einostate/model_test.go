package einostate_test

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

// scripted is a chat model that a function plays.
type scripted func(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error)

func (s scripted) Generate(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	return s(ctx, msgs, opts...)
}

func (s scripted) Stream(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := s(ctx, msgs, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{m}), nil
}

func call(id, name, args string) schema.ToolCall {
	return schema.ToolCall{ID: id, Type: "function", Function: schema.FunctionCall{Name: name, Arguments: args}}
}

func calls(calls ...schema.ToolCall) *schema.Message { return schema.AssistantMessage("", calls) }

func said(text string) *schema.Message { return schema.AssistantMessage(text, nil) }

// script returns a model that says one message after the other, by the number
// of those that it has said in the conversation.
func script(turns ...*schema.Message) scripted {
	return func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
		n := 0
		for _, m := range msgs {
			if m.Role == schema.Assistant {
				n++
			}
		}
		if n >= len(turns) {
			return nil, fmt.Errorf("the script has %d turns", len(turns))
		}
		m := *turns[n]
		return &m, nil
	}
}

func agent(name string, m model.BaseChatModel, tools []einotool.BaseTool, handlers ...adk.ChatModelAgentMiddleware) adk.Agent {
	a, err := adk.NewChatModelAgent(context.Background(), &adk.ChatModelAgentConfig{
		Name: name, Description: name, Model: m, Handlers: handlers, MaxIterations: 1000,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}},
	})
	if err != nil {
		panic(err)
	}
	return a
}

// drain reads the events of an agent to their end.
func drain(events *adk.AsyncIterator[*adk.AgentEvent]) (texts []string, err error) {
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			err = event.Err
		}
		if event.Output == nil || event.Output.MessageOutput == nil {
			continue
		}
		m, getErr := event.Output.MessageOutput.GetMessage()
		if getErr != nil {
			return texts, getErr
		}
		texts = append(texts, string(m.Role)+": "+m.Content)
	}
	return texts, err
}
