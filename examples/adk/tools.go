package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	adktool "google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// Kit connects tools with adk. The state of a call is that of
// [state.FromContext], with the rights of the agent that adk runs. It is safe
// for concurrent use.
type Kit struct {
	tools []*tool.Tool
	keep  int
	mu    sync.Mutex
	steps map[place]*step
}

// place is where one step at a time is made.
type place struct{ invocation, branch, agent string }

func placeOf(ctx agent.ReadonlyContext) place {
	return place{ctx.InvocationID(), ctx.Branch(), ctx.AgentName()}
}

// step is the step of a message, with the indexes of its calls by their ids.
type step struct {
	*tool.Step
	index map[string]int
}

// NewKit returns a Kit of tools. If keep is not 0, a model sees the last keep
// messages, cut where providers accept it.
func NewKit(keep int, tools ...*tool.Tool) *Kit {
	return &Kit{tools: tools, keep: keep, steps: map[place]*step{}}
}

// Tools returns the tools for an agent. Its model sees those that the agent may
// use, without injected parameters.
func (k *Kit) Tools() []adktool.Tool {
	var list []adktool.Tool
	for _, t := range k.tools {
		list = append(list, &bound{k, t})
	}
	return list
}

// Plugin returns the plugin that a runner needs for the tools. It makes the
// calls of one message a step, whose outputs are written in the order of the
// calls, shortens what models see, and adds what is said to the conversation of
// the state.
func (k *Kit) Plugin() (*plugin.Plugin, error) {
	return plugin.New(plugin.Config{
		Name:                "state",
		OnEventCallback:     record,
		BeforeModelCallback: k.beforeModel,
		AfterModelCallback:  k.afterModel,
		AfterRunCallback: func(ctx agent.InvocationContext) {
			k.end(func(p place) bool { return p.invocation == ctx.InvocationID() })
		},
	})
}

func (k *Kit) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	here := placeOf(ctx)
	k.end(func(p place) bool { return p == here })
	if k.keep > 0 {
		shapes := transcript.ShapesFunc(req.Contents, shapeOf)
		req.Contents = transcript.Select(req.Contents, shapes.KeepLast(k.keep))
	}
	return nil, nil
}

func (k *Kit) afterModel(ctx agent.Context, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
	if err != nil || resp == nil || resp.Partial || resp.Content == nil {
		return nil, nil
	}
	st, ok := state.FromContext(ctx)
	if !ok {
		return nil, errNoState
	}
	var calls []state.ToolCall
	index := map[string]int{}
	for _, part := range resp.Content.Parts {
		if call := part.FunctionCall; call != nil && k.has(call.Name) {
			input, err := state.JSONOf(call.Args)
			if err != nil {
				return nil, err
			}
			index[call.ID] = len(calls)
			calls = append(calls, state.ToolCall{ID: call.ID, Name: call.Name, Input: input})
		}
	}
	if len(calls) > 0 {
		begun, err := tool.Begin(ctx, st.As(ctx.AgentName()), k.tools, calls)
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		k.steps[placeOf(ctx)] = &step{begun, index}
		k.mu.Unlock()
	}
	return nil, nil
}

var errNoState = errors.New("adk: the context of the runner has no state")

func (k *Kit) has(name string) bool {
	for _, t := range k.tools {
		if t.Name() == name {
			return true
		}
	}
	return false
}

// end ends steps of which adk has not made all calls.
func (k *Kit) end(where func(place) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, s := range k.steps {
		if where(p) {
			s.End()
			delete(k.steps, p)
		}
	}
}

// shapeOf returns the shape of a message for trims.
func shapeOf(c *genai.Content) transcript.Shape {
	shape := transcript.Shape{Role: c.Role}
	if c.Role == genai.RoleModel {
		shape.Role = "assistant"
	}
	for _, part := range c.Parts {
		if call := part.FunctionCall; call != nil {
			shape.Calls = append(shape.Calls, state.ToolCall{ID: call.ID, Name: call.Name})
		}
		if r := part.FunctionResponse; r != nil {
			shape.Answers = append(shape.Answers, state.ToolCall{ID: r.ID, Name: r.Name})
		}
	}
	return shape
}

// bound is a tool as adk calls it.
type bound struct {
	kit  *Kit
	tool *tool.Tool
}

func (b *bound) Name() string        { return b.tool.Name() }
func (b *bound) Description() string { return b.tool.Description() }
func (b *bound) IsLongRunning() bool { return false }

func (b *bound) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{
		Name: b.Name(), Description: b.Description(),
		ParametersJsonSchema: json.RawMessage(b.tool.Schema()),
	}
}

// ProcessRequest adds the tool to a request of an agent that may use it.
func (b *bound) ProcessRequest(ctx agent.Context, req *model.LLMRequest) error {
	st, ok := state.FromContext(ctx)
	if !ok {
		return errNoState
	}
	if len(tool.Usable(st.As(ctx.AgentName()), []*tool.Tool{b.tool})) == 0 {
		return nil
	}
	return toolutils.PackTool(req, b)
}

// Run makes a call. A function that returns [tool.Suspend] asks for a
// confirmation of adk. When a person has given it, the result of the call is the
// answer that the message of the run has brought. If there is none, the function
// is called again.
func (b *bound) Run(ctx agent.Context, args any) (map[string]any, error) {
	var with context.Context = ctx
	if c := ctx.ToolConfirmation(); c != nil {
		if !c.Confirmed {
			return nil, adktool.ErrConfirmationRejected
		}
		if r := answered(ctx, ctx.FunctionCallID()); r != nil {
			return response(*r)
		}
		with = context.WithValue(ctx, confirmedKey{}, true)
	}
	r, err := b.call(ctx, with, args)
	switch {
	case errors.Is(err, tool.ErrSuspended):
		ctx.Actions().SkipSummarization = true
		return nil, errors.Join(ctx.RequestConfirmation(err.Error(), nil), adktool.ErrConfirmationRequired)
	case err != nil:
		return nil, err
	}
	return response(r.Message)
}

// response returns a result as adk has it.
func response(r state.ToolResultMessage) (map[string]any, error) {
	if r.IsError() {
		return nil, errors.New(r.Text())
	}
	var out any
	if err := json.Unmarshal([]byte(r.Content()), &out); err != nil {
		return nil, err
	}
	if object, ok := out.(map[string]any); ok {
		return object, nil
	}
	return map[string]any{"result": out}, nil
}

// call makes a call of the step of the message, or one that adk makes again.
func (b *bound) call(ctx agent.Context, with context.Context, args any) (tool.Result, error) {
	b.kit.mu.Lock()
	s := b.kit.steps[placeOf(ctx)]
	b.kit.mu.Unlock()
	if s != nil {
		if i, ok := s.index[ctx.FunctionCallID()]; ok {
			return s.Call(with, i)
		}
	}
	st, ok := state.FromContext(ctx)
	input, err := state.JSONOf(args)
	if !ok || err != nil {
		return tool.Result{}, fmt.Errorf("adk: call of %s: %w", b.Name(), errors.Join(err, errNoState))
	}
	call := state.ToolCall{ID: ctx.FunctionCallID(), Name: b.Name(), Input: input}
	again, err := tool.Begin(with, st.As(ctx.AgentName()), b.kit.tools, []state.ToolCall{call})
	if err != nil {
		return tool.Result{}, err
	}
	defer again.End()
	return again.Call(with, 0)
}

type confirmedKey struct{}

// Confirmed reports whether a person has confirmed the call for which the
// function of a tool was called.
func Confirmed(ctx context.Context) bool { return ctx.Value(confirmedKey{}) != nil }
