package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// The scenario of all adapters, in the workspace of a session.
var scenario = adaptertest.Adapter{
	Open:   func(ctx context.Context, file string) (store.Store, error) { return sqlitestore.Open(ctx, file, nil) },
	User:   Name("desk", adaptertest.UserID, "s"),
	Fields: []state.Part{Session, Events, Values},
	Answer: answerDesk,
	// An answer is committed with the results of its calls, and the key of a call
	// ends with the process before.
	RefundKey: func(run *workspace.Run) string { return run.ID() },
}

func TestScenario(t *testing.T)       { adaptertest.Run(t, scenario) }
func TestScenarioKilled(t *testing.T) { adaptertest.Killed(t, scenario) }

// answerDesk lets the agents of a message answer: one, or two in branches.
func answerDesk(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
	agents := adaptertest.Agents(run.Message())
	if len(agents) == 1 {
		return answerAs(ctx, run, d, agents[0])
	}
	branches, errs := make([]*state.State, len(agents)), make([]error, len(agents))
	var wg sync.WaitGroup
	for i, name := range agents {
		branches[i] = run.State().Fork()
		wg.Go(func() { errs[i] = answerAs(state.NewContext(ctx, branches[i]), run, d, name) })
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), run.State().Join(branches...))
}

// window is that of the scenario, without a message for the instruction.
var window = &transcript.Window{Target: adaptertest.Window.Target - 1000, Keep: adaptertest.Window.Keep - 1000, Tokens: adaptertest.Window.Tokens}

// answerAs lets an agent answer in the session.
func answerAs(ctx context.Context, run *workspace.Run, d *adaptertest.Desk, name string) error {
	kit := NewKit(window, d.Tools(name)...)
	root, err := llmagent.New(llmagent.Config{
		Name: name, Model: scripted{name, d}, Tools: kit.Tools(),
		InstructionProvider: func(ctx agent.ReadonlyContext) (string, error) {
			st, _ := state.FromContext(ctx)
			return st.As(name).Describe(), nil
		},
	})
	if err != nil {
		return err
	}
	plug, err := kit.Plugin()
	if err != nil {
		return err
	}
	sessions := Service(d.Manager)
	r, err := runner.New(runner.Config{
		AppName: "desk", Agent: root, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{plug}},
	})
	if err != nil {
		return err
	}
	return Answer(ctx, run, r, sessions)
}

// scripted is the model of an agent.
type scripted struct {
	agent string
	desk  *adaptertest.Desk
}

func (m scripted) Name() string { return "scripted" }

func (m scripted) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(m.next(req)) }
}

func (m scripted) next(req *model.LLMRequest) (*model.LLMResponse, error) {
	body, err := json.Marshal(map[string]any{"systemInstruction": req.Config.SystemInstruction, "contents": req.Contents})
	if err != nil {
		return nil, err
	}
	prompt, err := provider.Gemini.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	said, err := m.desk.Next(m.agent, prompt.Messages)
	if err != nil {
		return nil, err
	}
	content := &genai.Content{Role: genai.RoleModel}
	switch said := said.(type) {
	case state.TextMessage:
		content.Parts = []*genai.Part{{Text: said.Text()}}
	case state.ToolCallMessage:
		for _, call := range said.Calls() {
			var args map[string]any
			if err := call.Input.Decode(&args); err != nil {
				return nil, err
			}
			content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Name, Args: args}})
		}
	}
	return &model.LLMResponse{Content: content}, nil
}
