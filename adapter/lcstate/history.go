package lcstate

import (
	"context"
	"errors"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// History returns the conversation of the state in the context as a chat history.
// It has the rights of agent, or of the handle in the context for "". Messages
// returns what was added, in the sense of [ChatMessages], with calls and results.
// All methods are safe for concurrent use.
func History(agent string) schema.ChatMessageHistory { return history{agent} }

type history struct{ agent string }

func (h history) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	_, msgs, err := h.read(ctx)
	return ChatMessages(msgs), err
}

// read returns the handle and the conversation.
func (h history) read(ctx context.Context) (*state.State, []state.Message, error) {
	st, err := stateOf(ctx, h.agent)
	if err != nil {
		return nil, nil, err
	}
	msgs, err := state.Messages.Get(st)
	if errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	return st, msgs, err
}

func (h history) AddMessage(ctx context.Context, m llms.ChatMessage) error {
	return h.write(ctx, state.Messages.Set, m)
}

func (h history) AddUserMessage(ctx context.Context, text string) error {
	return h.AddMessage(ctx, llms.HumanChatMessage{Content: text})
}

func (h history) AddAIMessage(ctx context.Context, text string) error {
	return h.AddMessage(ctx, llms.AIChatMessage{Content: text})
}

func (h history) SetMessages(ctx context.Context, msgs []llms.ChatMessage) error {
	return h.write(ctx, state.Messages.Replace, msgs...)
}

func (h history) Clear(ctx context.Context) error { return h.SetMessages(ctx, nil) }

func (h history) write(
	ctx context.Context, write func(*state.State, []state.Message) error, msgs ...llms.ChatMessage,
) error {
	st, err := stateOf(ctx, h.agent)
	if err != nil {
		return err
	}
	ours, err := FromChatMessages(msgs)
	if err != nil {
		return err
	}
	return write(st, ours)
}

// Memory returns the conversation of the state in the context as the memory of a
// chain, with the options of langchaingo's own buffer. It has the rights of
// agent, or of the handle in the context for "". trim shortens what the chain is
// shown, not what is kept; nil shows all. As one text, the conversation has the
// calls of tools, too.
//
// The input and the output of a chain are added as one change, so that chains
// that run at the same time do not separate them. An input that is the last
// message already, as in a run of a workspace, is not added, and is not shown as
// what was said before.
func Memory(agent string, trim transcript.Trim, opts ...memory.ConversationBufferOption) schema.Memory {
	h := history{agent}
	b := memory.NewConversationBuffer(opts...)
	b.ChatHistory = h
	return buffer{b, h, trim}
}

type buffer struct {
	*memory.ConversationBuffer
	history history
	trim    transcript.Trim
}

func (b buffer) LoadMemoryVariables(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	_, msgs, err := b.history.read(ctx)
	if err != nil {
		return nil, err
	}
	if input, err := memory.GetInputValue(inputs, b.InputKey); err == nil && endsWith(msgs, input) {
		msgs = msgs[:len(msgs)-1]
	}
	if b.trim != nil {
		msgs = b.trim(msgs)
	}
	shown := *b.ConversationBuffer
	shown.ChatHistory = snapshot{shown.ChatHistory, msgs, !shown.ReturnMessages}
	return shown.LoadMemoryVariables(ctx, inputs)
}

func (b buffer) SaveContext(ctx context.Context, inputs, outputs map[string]any) error {
	st, msgs, err := b.history.read(ctx)
	if err != nil {
		return err
	}
	input, err := memory.GetInputValue(inputs, b.InputKey)
	if err != nil {
		return err
	}
	output, err := memory.GetInputValue(outputs, b.OutputKey)
	if err != nil {
		return err
	}
	said := []state.Message{state.UserText(input), state.AssistantText(output)}
	if endsWith(msgs, input) {
		said = said[1:]
	}
	return state.Messages.Set(st, said)
}

// endsWith reports whether the user has said input last.
func endsWith(msgs []state.Message, input string) bool {
	return len(msgs) > 0 && msgs[len(msgs)-1].Equal(state.UserText(input))
}

// snapshot is a history that was read. Split puts each call into a message of its
// own, in the form that langchaingo makes a text of.
type snapshot struct {
	schema.ChatMessageHistory
	msgs  []state.Message
	split bool
}

func (s snapshot) Messages(context.Context) ([]llms.ChatMessage, error) {
	msgs := ChatMessages(s.msgs)
	if !s.split {
		return msgs, nil
	}
	var out []llms.ChatMessage
	for _, m := range msgs {
		said, _ := m.(llms.AIChatMessage)
		if len(said.ToolCalls) == 0 {
			out = append(out, m)
		}
		for i, c := range said.ToolCalls {
			if i > 0 {
				said.Content = ""
			}
			out = append(out, llms.AIChatMessage{Content: said.Content, FunctionCall: c.FunctionCall})
		}
	}
	return out, nil
}
