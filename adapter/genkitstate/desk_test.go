package genkitstate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// desk answers with Genkit.
var desk = adaptertest.Adapter{
	Open: func(ctx context.Context, file string) (store.Store, error) {
		return sqlitestore.Open(ctx, file, nil)
	},
	Answer: func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
		agents := adaptertest.Agents(run.Message())
		if len(agents) == 1 {
			return answer(ctx, d, run.State().As(agents[0]))
		}
		branches, errs := make([]*state.State, len(agents)), make([]error, len(agents))
		var wg sync.WaitGroup
		for i, agent := range agents {
			branches[i] = run.State().Fork()
			wg.Go(func() { errs[i] = answer(ctx, d, branches[i].As(agent)) })
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), run.State().Join(branches...))
	},
}

func TestDesk(t *testing.T)       { adaptertest.Run(t, desk) }
func TestDeskKilled(t *testing.T) { adaptertest.Killed(t, desk) }

// A team is two calls of Generate, one after the other or one in a tool of the
// other.
func TestDeskSequence(t *testing.T) {
	adaptertest.Sequence(t, adaptertest.Adapter{Open: desk.Open, Answer: func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
		for _, agent := range []string{"search", "billing"} {
			st := run.State().As(agent)
			if err := generate(ctx, st, d.Tools(agent), next(d, agent), nil, state.Messages.GetOr(st, nil)...); err != nil {
				return err
			}
		}
		return nil
	}})
}

func TestDeskNested(t *testing.T) {
	adaptertest.Nested(t, adaptertest.Adapter{Open: desk.Open, Answer: func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
		st := run.State().As("billing")
		billing := tool.Must(tool.New("billing", "Ask billing.", func(ctx context.Context, in struct {
			Request string `json:"request"`
		}) (string, error) {
			said := append([]state.Message{state.UserText(in.Request)}, behindCall(ctx, st)...)
			if err := generate(ctx, st, d.Tools("billing"), next(d, "billing"), nil, said...); err != nil {
				return "", err
			}
			last, _ := st.History().Last()
			if text, ok := last.Output[0].(state.TextMessage); ok {
				return text.Text(), nil
			}
			return "A person has to approve it.", nil
		}))
		search := run.State().As("search")
		return generate(ctx, search, append(d.Tools("search"), billing), next(d, "search"), nil, state.Messages.GetOr(search, nil)...)
	}})
}

// behindCall returns what was said since the call of ctx: after the death of a
// process, an agent that is a tool goes on with it.
func behindCall(ctx context.Context, st *state.State) []state.Message {
	call, _ := tool.CallOf(ctx)
	msgs := state.Messages.GetOr(st, nil)
	for i, m := range msgs {
		if m, ok := m.(state.ToolCallMessage); ok && m.Calls()[0].Key == call.Key {
			return msgs[i+1:]
		}
	}
	return nil
}

func next(d *adaptertest.Desk, agent string) func(prompt []state.Message) (state.Message, error) {
	return func(prompt []state.Message) (state.Message, error) { return d.NextOfTeam(agent, prompt) }
}

// answer lets an agent answer, until it says a text or a call is suspended.
func answer(ctx context.Context, d *adaptertest.Desk, st *state.State) error {
	return generate(ctx, st, d.Tools(st.Agent()), func(prompt []state.Message) (state.Message, error) { return d.Next(st.Agent(), prompt) },
		&genkitstate.Options{Window: adaptertest.Window, Context: func(_ context.Context, st *state.State) string { return st.Describe() }},
		state.Messages.GetOr(st, nil)...)
}

// generate continues a conversation on a state, with a model that is shown
// messages of a state and says one.
func generate(
	ctx context.Context, st *state.State, tools []*tool.Tool, next func(prompt []state.Message) (state.Message, error), o *genkitstate.Options,
	msgs ...state.Message,
) error {
	g := genkit.Init(ctx)
	model := define(g, func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		prompt, err := genkitstate.Messages(req.Messages...)
		if err != nil {
			return nil, err
		}
		said, err := next(prompt)
		if err != nil {
			return nil, err
		}
		msgs, err := genkitstate.From(said)
		if err != nil {
			return nil, err
		}
		return msgs[0], nil
	})
	ctx = state.NewContext(ctx, st)
	conversation, err := genkitstate.From(msgs...)
	if err != nil {
		return err
	}
	_, err = genkit.Generate(ctx, g, ai.WithModel(model),
		ai.WithMessages(conversation...),
		ai.WithTools(genkitstate.Tools(tools...)...),
		ai.WithMiddleware(genkitstate.Middleware(tools, o)))
	return err
}

func TestTalks(t *testing.T) {
	adaptertest.Talks(t, nil, func(ctx context.Context, run *workspace.Run, talk *adaptertest.Talk) error {
		st := run.State().As("ann")
		next := func(prompt []state.Message) (state.Message, error) { return talk.Next(st, prompt) }
		return generate(ctx, st, talk.Tools, next, &genkitstate.Options{Context: talk.Describe}, state.Messages.GetOr(st, nil)...)
	})
}

func TestOwnCalls(t *testing.T) {
	adaptertest.OwnCalls(t, nil, func(
		ctx context.Context, run *workspace.Run, tools []*tool.Tool, next func(prompt []state.Message) (state.Message, error),
	) error {
		st := run.State().As("search")
		return generate(ctx, st, tools, next, nil, state.Messages.GetOr(st, nil)...)
	})
}

// define defines a model that is a function.
func define(g *genkit.Genkit, say func(context.Context, *ai.ModelRequest) (*ai.Message, error)) ai.Model {
	supports := &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true, Media: true}
	return genkit.DefineModel(g, "test/model", &ai.ModelOptions{Supports: supports},
		func(ctx context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			said, err := say(ctx, req)
			if err != nil {
				return nil, err
			}
			return &ai.ModelResponse{Message: said, Request: req, FinishReason: ai.FinishReasonStop}, nil
		})
}

// What Genkit says of the tokens is recorded: a window counts by it.
func TestUsage(t *testing.T) {
	g, st := genkit.Init(t.Context()), state.New(nil)
	model := genkit.DefineModel(g, "test/counting", nil, func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		return &ai.ModelResponse{
			Message: ai.NewModelTextMessage("Done."), Request: req, FinishReason: ai.FinishReasonStop,
			Usage: &ai.GenerationUsage{InputTokens: 70, OutputTokens: 20, CachedContentTokens: 3, ThoughtsTokens: 4},
		}, nil
	})
	_, err := genkit.Generate(state.NewContext(t.Context(), st), g, ai.WithModel(model), ai.WithPrompt("Go."),
		ai.WithMiddleware(genkitstate.Middleware(nil, nil)))
	must(err)
	last, _ := st.History().Last()
	if want := (state.Usage{Input: 70, Output: 20, CacheRead: 3, Reasoning: 4}); last.Usage != want {
		t.Errorf("usage %v, want %v", last.Usage, want)
	}
}
