package lcstate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

var adapter = adaptertest.Adapter{
	Open: func(ctx context.Context, file string) (store.Store, error) { return sqlitestore.Open(ctx, file, nil) },
	Answer: func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
		names := adaptertest.Agents(run.Message())
		if len(names) == 1 {
			reply, err := chains.Run(ctx, agentOf(d, names[0]), "")
			if errors.Is(err, tool.ErrSuspended) {
				reply, err = "I have to ask somebody.", nil
			}
			run.SetReply(reply)
			return err
		}
		branches, errs := make([]*state.State, len(names)), make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			branches[i] = run.State().Fork()
			wg.Go(func() { _, errs[i] = chains.Run(state.NewContext(ctx, branches[i]), agentOf(d, name), "") })
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), run.State().Join(branches...))
	},
}

func agentOf(d *adaptertest.Desk, name string) *lcstate.Agent {
	return &lcstate.Agent{
		Name: name, LLM: model{d, name}, Tools: d.Tools(name), Trim: transcript.KeepLast(adaptertest.Window),
	}
}

// The scenario of all adapters: rights, injected inputs, parallel agents, trims,
// secrets, and a person in the middle.
func TestScenario(t *testing.T) { adaptertest.Run(t, adapter) }

// The processes of the scenario are killed at each point.
func TestScenarioKilled(t *testing.T) { adaptertest.Killed(t, adapter) }

// model is the model of the scenario.
type model struct {
	desk *adaptertest.Desk
	name string
}

func (m model) GenerateContent(
	_ context.Context, sent []llms.MessageContent, _ ...llms.CallOption,
) (*llms.ContentResponse, error) {
	said, err := m.desk.Next(m.name, read(sent))
	if err != nil {
		return nil, err
	}
	choice := &llms.ContentChoice{}
	switch said := lcstate.ChatMessages([]state.Message{said})[0].(type) {
	case llms.AIChatMessage:
		choice.Content, choice.ToolCalls = said.Content, said.ToolCalls
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

func (m model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// read returns what contents say, as messages of a state.
func read(sent []llms.MessageContent) []state.Message {
	var chat []llms.ChatMessage
	for _, c := range sent {
		var ai llms.AIChatMessage
		for _, part := range c.Parts {
			switch p := part.(type) {
			case llms.TextContent:
				switch c.Role {
				case llms.ChatMessageTypeHuman:
					chat = append(chat, llms.HumanChatMessage{Content: p.Text})
				case llms.ChatMessageTypeSystem:
					chat = append(chat, llms.SystemChatMessage{Content: p.Text})
				case llms.ChatMessageTypeAI:
					ai.Content += p.Text
				}
			case llms.ToolCall:
				ai.ToolCalls = append(ai.ToolCalls, p)
			case llms.ToolCallResponse:
				chat = append(chat, llms.ToolChatMessage{ID: p.ToolCallID, Content: p.Content})
			}
		}
		if c.Role == llms.ChatMessageTypeAI {
			chat = append(chat, ai)
		}
	}
	msgs, err := lcstate.FromChatMessages(chat)
	if err != nil {
		panic(err)
	}
	return msgs
}
