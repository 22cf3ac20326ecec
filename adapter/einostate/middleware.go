package einostate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// Options configures Middleware.
type Options struct {
	// Window decides what of its messages the agent sends the model (default: the
	// Window of the workspace in whose run it works, or all of them). The agent keeps
	// all. One that another agent calls as a tool sends all.
	Window *transcript.Window

	// Context returns what the model should know of the state and what changes,
	// such as st.Describe() (default: nothing). It stands between <context> tags
	// behind the messages, at the end of what the user has said last or as a message
	// of the user. It is not kept: each request has the text of its time, and begins
	// like the one before. st has the rights of the agent.
	Context func(ctx context.Context, st *state.State) string
}

// Middleware returns the middleware of an agent that works on the state of its
// context, with the rights of the agent of that name. A nil o stands for the
// defaults.
//
// The run of the agent is a [loop.Turn]. The model is offered those of [Tools]
// that the agent may use. What the user and the model say is recorded, and so are
// the results of all calls, also of foreign tools. In a run of a workspace, an
// answer is committed before its calls are made, and their results before the
// model is asked again.
//
// Foreign tools of the agent find a handle with the rights of the agent in their
// context. Other agents that they run have their own rights.
func Middleware(agent string, o *Options) adk.ChatModelAgentMiddleware {
	m := &middleware{agent: agent}
	if o != nil {
		m.Options = *o
	}
	return m
}

type middleware struct {
	*adk.BaseChatModelAgentMiddleware
	Options
	agent string
}

// turn is one run of an agent, or its resumption.
type turn struct {
	*loop.Turn
	resumed *resumption // nil for a run that begins, and for an agent that is a tool
	begun   bool        // the model was asked; before, calls are those of an interrupt
}

type turnKey struct{}

func turnOf(ctx context.Context) *turn { return ctx.Value(turnKey{}).(*turn) }

func (m *middleware) BeforeAgent(
	ctx context.Context, c *adk.ChatModelAgentContext,
) (context.Context, *adk.ChatModelAgentContext, error) {
	var tools []*tool.Tool
	for _, t := range c.Tools {
		if own, ok := t.(*boundTool); ok {
			tools = append(tools, own.tool)
		}
	}
	t, err := loop.NewTurn(ctx, m.agent, tools...)
	if err != nil {
		return ctx, nil, err
	}
	resumed, _ := ctx.Value(resumptionKey{}).(*resumption)
	ctx = context.WithValue(t.Context(ctx), turnKey{}, &turn{Turn: t, resumed: resumed})
	return context.WithValue(ctx, resumptionKey{}, nil), c, nil
}

func (m *middleware) BeforeModelRewriteState(
	ctx context.Context, s *adk.ChatModelAgentState, _ *adk.ModelContext,
) (context.Context, *adk.ChatModelAgentState, error) {
	t := turnOf(ctx)
	err := t.end(s.Messages)
	if err == nil && !t.begun {
		err = t.begin(ctx, s)
	}
	if err != nil {
		return ctx, s, err
	}
	return ctx, s, t.Commit(ctx)
}

// begin makes the first request of the turn.
func (t *turn) begin(ctx context.Context, s *adk.ChatModelAgentState) error {
	t.begun = true
	hidden := map[string]bool{}
	for _, info := range s.ToolInfos {
		hidden[info.Name] = t.Has(info.Name)
	}
	for _, usable := range t.Tools() {
		hidden[usable.Name()] = false
	}
	s.ToolInfos = slices.DeleteFunc(slices.Clone(s.ToolInfos), func(info *schema.ToolInfo) bool {
		return hidden[info.Name]
	})
	var err error
	if t.resumed != nil {
		s.Messages, err = t.resumed.catchUp(s.Messages)
	}
	if err == nil {
		err = t.hear(s.Messages)
	}
	if err != nil {
		return err
	}
	for range transcript.ShapesFunc(s.Messages, Format.Shape).Pending() { // an open call
		prompt, err := Messages(s.Messages...)
		if err == nil {
			prompt, err = t.Prompt(ctx, inside.WithKeys(t.State(), prompt))
		}
		if err == nil {
			s.Messages, err = FromMessages(prompt...)
		}
		return err
	}
	return nil
}

// hear records the messages of the user with which a prompt ends.
func (t *turn) hear(msgs []*schema.Message) error {
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == schema.User {
		if first--; strings.HasPrefix(msgs[first].Content, "For context: [") {
			return nil // so eino tells what another agent has said, which was first
		}
	}
	said, err := Messages(msgs[first:]...)
	if err != nil {
		return err
	}
	return t.Hear(said...)
}

// end records what is left of the last answer, and the results of foreign tools,
// which are the last messages of the agent.
func (t *turn) end(msgs []*schema.Message) error {
	foreign, err := t.End()
	if err != nil || !foreign {
		return err
	}
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == schema.Tool {
		first--
	}
	return t.answer(msgs[first:]...)
}

// answer records the results of foreign tools.
func (t *turn) answer(msgs ...*schema.Message) error {
	results, err := Messages(msgs...)
	for _, m := range results {
		if result, ok := m.(state.ToolResultMessage); ok && err == nil {
			err = t.Answer(result)
		}
	}
	return err
}

func (m *middleware) AfterModelRewriteState(
	ctx context.Context, s *adk.ChatModelAgentState, _ *adk.ModelContext,
) (context.Context, *adk.ChatModelAgentState, error) {
	said := s.Messages[len(s.Messages)-1]
	output, err := Messages(said)
	if err == nil {
		result := state.InferenceResult{Output: output, Usage: usageOf(said)}
		if said.ResponseMeta != nil {
			result.StopWord = said.ResponseMeta.FinishReason
			result.Stop = provider.StopOf(result.StopWord)
		}
		err = turnOf(ctx).Said(ctx, result)
	}
	if err == nil {
		calls := inside.RecordedCalls(turnOf(ctx).State(), output)
		for i := range min(len(calls), len(said.ToolCalls)) { // eino tells calls apart by their ids
			said.ToolCalls[i].ID = callkey.IDOf(calls[i].ID, calls[i].Key)
		}
	}
	if err == nil && len(said.ToolCalls) > 0 {
		_, err = turnOf(ctx).Next() // no call of an answer that ends the run is made
	}
	return ctx, s, err
}

// usageOf returns the tokens of a request and its answer, as far as eino tells.
func usageOf(said *schema.Message) state.Usage {
	if said.ResponseMeta == nil || said.ResponseMeta.Usage == nil {
		return state.Usage{}
	}
	u := said.ResponseMeta.Usage
	return state.Usage{
		Input: u.PromptTokens, Output: u.CompletionTokens,
		CacheRead: u.PromptTokenDetails.CachedTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens,
	}
}

func (m *middleware) AfterAgent(ctx context.Context, s *adk.ChatModelAgentState) (context.Context, error) {
	return ctx, turnOf(ctx).end(s.Messages)
}

func (m *middleware) WrapInvokableToolCall(
	ctx context.Context, next adk.InvokableToolCallEndpoint, c *adk.ToolContext,
) (adk.InvokableToolCallEndpoint, error) {
	t := turnOf(ctx)
	if r, ok := t.Answered(inside.KeyOfID(t.State(), c.CallID)); ok { // before an interrupt, or because its answer was cut
		return func(context.Context, string, ...einotool.Option) (string, error) { return r.Text(), nil }, nil
	}
	if t.Has(c.Name) {
		return next, nil
	}
	return func(ctx context.Context, args string, opts ...einotool.Option) (string, error) {
		text, err := next(ctx, args, opts...)
		if err == nil { // now: another call of the message may interrupt the agent
			err = t.answer(schema.ToolMessage(text, c.CallID, schema.WithToolName(c.Name)))
		}
		return text, err
	}, nil
}

func (m *middleware) WrapModel(
	ctx context.Context, next model.BaseModel[*schema.Message], _ *adk.ModelContext,
) (model.BaseModel[*schema.Message], error) {
	p := &prompter{next: next, turn: turnOf(ctx)}
	p.window = p.turn.Window(ctx, m.Window)
	if m.Context != nil {
		p.context = "<context>\n" + strings.TrimSuffix(m.Context(ctx, p.turn.State()), "\n") + "\n</context>"
	}
	return p, nil
}

// prompter is a model that is sent what is shown of the messages, and a context
// behind them.
type prompter struct {
	next    model.BaseModel[*schema.Message]
	turn    *turn
	window  *transcript.Window
	context string
}

func (p *prompter) Generate(
	ctx context.Context, msgs []*schema.Message, opts ...model.Option,
) (*schema.Message, error) {
	msgs, err := p.prompt(ctx, msgs, opts)
	if err != nil {
		return nil, err
	}
	return p.next.Generate(ctx, msgs, opts...)
}

func (p *prompter) Stream(
	ctx context.Context, msgs []*schema.Message, opts ...model.Option,
) (*schema.StreamReader[*schema.Message], error) {
	msgs, err := p.prompt(ctx, msgs, opts)
	if err != nil {
		return nil, err
	}
	return p.next.Stream(ctx, msgs, opts...)
}

// prompt returns what the model is sent. The options have the tools.
func (p *prompter) prompt(ctx context.Context, msgs []*schema.Message, opts []model.Option) ([]*schema.Message, error) {
	own, err := Messages(msgs...)
	if err != nil {
		return nil, err
	}
	shown := p.turn.Shown(own)
	if p.window != nil {
		tools, err := state.JSONOf(model.GetCommonOptions(nil, opts...).Tools)
		if err != nil {
			return nil, err
		}
		besides := transcript.EstimateTokens(state.UserText(string(tools) + p.context))
		if shown, err = p.window.Show(ctx, p.turn.State(), shown, besides); err != nil {
			return nil, fmt.Errorf("einostate: %w", err)
		}
	}
	if shown, err = transcript.WithFiles(ctx, shown); err != nil {
		return nil, fmt.Errorf("einostate: %w", err)
	}
	if !slices.Equal(shown, own) {
		if msgs, err = FromMessages(shown...); err != nil {
			return nil, err
		}
	}
	if p.context == "" {
		return msgs, nil
	}
	last := len(msgs) - 1
	if last < 0 || msgs[last].Role != schema.User {
		return append(slices.Clip(msgs), schema.UserMessage(p.context)), nil
	}
	said := *msgs[last]
	if said.UserInputMultiContent == nil {
		said.Content += "\n\n" + p.context
	} else {
		part := schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: p.context}
		said.UserInputMultiContent = append(slices.Clip(said.UserInputMultiContent), part)
	}
	return append(slices.Clone(msgs[:last]), &said), nil
}
