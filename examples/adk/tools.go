package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	adktool "google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// Kit connects tools with adk. The state of a call is that of
// [state.FromContext], with the rights of the agent that adk runs. It is safe
// for concurrent use.
type Kit struct {
	tools  []*tool.Tool
	window *transcript.Window
	mu     sync.Mutex
	turns  map[place]*loop.Turn
}

// place is where one turn at a time is.
type place struct{ invocation, branch, agent string }

func placeOf(ctx agent.ReadonlyContext) place {
	return place{ctx.InvocationID(), ctx.Branch(), ctx.AgentName()}
}

// NewKit returns a Kit of tools. A model sees what the window shows, and all if it
// is nil.
func NewKit(window *transcript.Window, tools ...*tool.Tool) *Kit {
	return &Kit{tools: tools, window: window, turns: map[place]*loop.Turn{}}
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

// Plugin returns the plugin that a runner needs for the tools. It records what is
// said and done, makes the calls of one message a step, whose outputs are written
// in the order of the calls, and shortens what models see.
func (k *Kit) Plugin() (*plugin.Plugin, error) {
	return plugin.New(plugin.Config{
		Name:                "state",
		OnEventCallback:     k.onEvent,
		BeforeModelCallback: k.beforeModel,
		AfterRunCallback: func(ctx agent.InvocationContext) {
			k.end(func(p place) bool { return p.invocation == ctx.InvocationID() })
		},
	})
}

func (k *Kit) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	here := placeOf(ctx)
	k.end(func(p place) bool { return p == here })
	return nil, k.show(ctx, req)
}

// show replaces the contents of a request by what the window shows of them.
func (k *Kit) show(ctx agent.Context, req *model.LLMRequest) error {
	st, ok := state.FromContext(ctx)
	if k.window == nil || !ok {
		return nil
	}
	body, err := json.Marshal(map[string]any{"contents": req.Contents})
	if err != nil {
		return err
	}
	request, err := provider.Gemini.DecodeRequest(body)
	if err != nil {
		return err
	}
	besides, err := json.Marshal(req.Config) // the instruction and the tools
	if err != nil {
		return err
	}
	shown, err := k.window.Show(ctx, st.As(ctx.AgentName()), request.Messages, transcript.EstimateTokens(state.UserText(string(besides))))
	if err != nil || slices.Equal(shown, request.Messages) {
		return err
	}
	request.Messages = shown
	if body, _, err = provider.Gemini.EncodeRequest(request); err != nil {
		return err
	}
	var sent struct{ Contents []*genai.Content }
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	req.Contents = sent.Contents
	return nil
}

// newTurn begins the turn of an agent. It commits nothing: the session service
// stores the event together with what the state has of it.
func (k *Kit) newTurn(ctx context.Context, agent string) (*loop.Turn, error) {
	return loop.NewTurn(workspace.NewContext(ctx, nil), agent, k.tools...)
}

// end ends turns of which adk has not made all calls.
func (k *Kit) end(where func(place) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p, t := range k.turns {
		if where(p) {
			_, _ = t.End() // what cannot be recorded stays open
			delete(k.turns, p)
		}
	}
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
	t, err := loop.NewTurn(ctx, ctx.AgentName(), b.tool)
	if err != nil || len(t.Tools()) == 0 {
		return err
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
		if run, ok := workspace.FromContext(ctx); ok {
			if r, ok := answered(run, ctx.FunctionCallID()); ok {
				return response(r)
			}
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
	return response(transcript.Shown([]state.Message{r.Message}, false)[0].(state.ToolResultMessage)) // adk keeps it for the model
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

// call makes a call of the turn, or one that adk makes again.
func (b *bound) call(ctx agent.Context, with context.Context, args any) (tool.Result, error) {
	t, err := b.kit.turnAt(ctx)
	var input state.JSON
	if err == nil {
		input, err = state.JSONOf(args)
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("adk: call of %s: %w", b.Name(), err)
	}
	return t.Call(with, state.ToolCall{ID: ctx.FunctionCallID(), Name: b.Name(), Input: input})
}

// turnAt returns the turn of the calls of a message. If the model has not spoken in
// this run, because a person has confirmed calls, it begins one, which end ends.
func (k *Kit) turnAt(ctx agent.Context) (*loop.Turn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	here := placeOf(ctx)
	if t := k.turns[here]; t != nil {
		return t, nil
	}
	t, err := k.newTurn(ctx, ctx.AgentName())
	if err == nil {
		k.turns[here] = t
	}
	return t, err
}

type confirmedKey struct{}

// Confirmed reports whether a person has confirmed the call for which the
// function of a tool was called.
func Confirmed(ctx context.Context) bool { return ctx.Value(confirmedKey{}) != nil }
