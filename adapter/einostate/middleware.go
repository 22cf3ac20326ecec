package einostate

import (
	"context"
	"slices"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Options configures Middleware.
type Options struct {
	// Trim shortens the conversation that the model is sent (default: nothing is
	// dropped), such as Format.KeepLast(20). Messages of the state stay.
	Trim func([]*schema.Message) []*schema.Message

	// Prompt returns a text that is added to the system prompt of each call of
	// the model (default: none), such as st.Describe(). st has the rights of the
	// agent. The text is not kept: the next call gets the text of its time.
	Prompt func(ctx context.Context, st *state.State) string
}

// Middleware returns the middleware of an agent that works on the state of its
// context, with the rights of the agent of that name. A nil o stands for the
// defaults.
//
// The model is offered those of [Tools] that the agent may use. Each answer of
// the model is appended to the history, and to the conversation if the agent may
// write [state.Messages]; so are the results of its calls, also of foreign
// tools. What the user has said is added to the conversation, if it does not end
// with it; in a run of a workspace, it is there. In a run, the answer is
// committed before its calls are made, and their results before the model is
// asked again.
//
// Foreign tools of the agent find a handle with the rights of the agent in their
// context. Other agents that they run have rights of their own.
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

func (m *middleware) BeforeAgent(ctx context.Context, c *adk.ChatModelAgentContext) (context.Context, *adk.ChatModelAgentContext, error) {
	base, ok := baseState(ctx)
	if !ok {
		return ctx, nil, errNoState
	}
	t := &turn{base: base, st: base.As(m.agent), inner: ctx.Value(turnKey{}) != nil, foreign: true}
	for _, own := range c.Tools {
		if own, ok := own.(*boundTool); ok {
			t.tools = append(t.tools, own.tool)
		}
	}
	t.run, _ = workspace.FromContext(ctx)
	ctx = context.WithValue(state.NewContext(ctx, t.st), baseKey{}, narrowed{base, t.st})
	return context.WithValue(ctx, turnKey{}, t), c, nil
}

func (m *middleware) BeforeModelRewriteState(ctx context.Context, s *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	t := ctx.Value(turnKey{}).(*turn)
	if err := t.end(s.Messages); err != nil {
		return ctx, s, err
	}
	if !t.begun {
		t.begun = true
		usable := tool.Usable(t.st, t.tools)
		s.ToolInfos = slices.DeleteFunc(slices.Clone(s.ToolInfos), func(info *schema.ToolInfo) bool {
			return hasTool(t.tools, info.Name) && !hasTool(usable, info.Name)
		})
		var err error
		if resumed, ok := ctx.Value(resumptionKey{}).(*resumption); ok && !t.inner {
			s.Messages = resumed.catchUp(s.Messages)
		}
		if t.run == nil && !t.inner {
			err = hear(t.base, s.Messages)
		}
		if err != nil {
			return ctx, s, err
		}
		if s.Messages, err = t.settle(ctx, s.Messages); err != nil {
			return ctx, s, err
		}
	}
	if m.Trim != nil {
		s.Messages = m.Trim(s.Messages)
	}
	return ctx, s, t.commit(ctx)
}

func hasTool(tools []*tool.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t *tool.Tool) bool { return t.Name() == name })
}

func (m *middleware) AfterModelRewriteState(ctx context.Context, s *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	t := ctx.Value(turnKey{}).(*turn)
	return ctx, s, t.begin(ctx, s.Messages[len(s.Messages)-1])
}

func (m *middleware) AfterAgent(ctx context.Context, s *adk.ChatModelAgentState) (context.Context, error) {
	return ctx, ctx.Value(turnKey{}).(*turn).end(s.Messages)
}

func (m *middleware) WrapInvokableToolCall(ctx context.Context, next adk.InvokableToolCallEndpoint, c *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	t := ctx.Value(turnKey{}).(*turn)
	if !t.begun {
		if text, ok := t.answered(c.CallID); ok {
			return func(context.Context, string, ...einotool.Option) (string, error) { return text, nil }, nil
		}
	}
	if hasTool(t.tools, c.Name) {
		return next, nil
	}
	return func(ctx context.Context, args string, opts ...einotool.Option) (string, error) {
		text, err := next(ctx, args, opts...)
		if err == nil { // now: another call of the message may interrupt the agent
			err = t.answerForeign(schema.ToolMessage(text, c.CallID, schema.WithToolName(c.Name)))
		}
		return text, err
	}, nil
}

func (m *middleware) WrapModel(ctx context.Context, next model.BaseModel[*schema.Message], _ *adk.ModelContext) (model.BaseModel[*schema.Message], error) {
	if m.Prompt == nil {
		return next, nil
	}
	text := m.Prompt(ctx, ctx.Value(turnKey{}).(*turn).st)
	return &promptModel{next, text}, nil
}

// promptModel is a model whose system prompt has a text added.
type promptModel struct {
	next model.BaseModel[*schema.Message]
	text string
}

func (p *promptModel) Generate(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	return p.next.Generate(ctx, p.add(msgs), opts...)
}

func (p *promptModel) Stream(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return p.next.Stream(ctx, p.add(msgs), opts...)
}

func (p *promptModel) add(msgs []*schema.Message) []*schema.Message {
	if len(msgs) == 0 || msgs[0].Role != schema.System {
		return append([]*schema.Message{schema.SystemMessage(p.text)}, msgs...)
	}
	system := *msgs[0]
	system.Content += "\n\n" + p.text
	return append([]*schema.Message{&system}, msgs[1:]...)
}
