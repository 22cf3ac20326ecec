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

// answer lets an agent answer, until it says a text or a call is suspended.
func answer(ctx context.Context, d *adaptertest.Desk, st *state.State) error {
	g := genkit.Init(ctx)
	model := define(g, func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		prompt, err := genkitstate.Messages(req.Messages...)
		if err != nil {
			return nil, err
		}
		said, err := d.Next(st.Agent(), prompt)
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
	conversation, err := genkitstate.From(state.Messages.Or(st, nil)...)
	if err != nil {
		return err
	}
	tools := d.Tools(st.Agent())
	_, err = genkit.Generate(ctx, g, ai.WithModel(model),
		ai.WithSystem("%s", st.Describe()),
		ai.WithMessages(conversation...),
		ai.WithTools(genkitstate.Tools(tools...)...),
		ai.WithMiddleware(genkitstate.Middleware(tools, &genkitstate.Options{Trim: keepLast(adaptertest.Window)})))
	return err
}

// keepLast keeps as many messages as make n messages of package state.
func keepLast(n int) func(msgs []*ai.Message) []*ai.Message {
	return genkitstate.Format.KeepTokens(n, func(m *ai.Message) int {
		converted, err := genkitstate.Messages(m)
		must(err)
		return len(converted)
	})
}

// define defines a model that is a function.
func define(g *genkit.Genkit, say func(context.Context, *ai.ModelRequest) (*ai.Message, error)) ai.Model {
	supports := &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true}
	return genkit.DefineModel(g, "test/model", &ai.ModelOptions{Supports: supports},
		func(ctx context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			said, err := say(ctx, req)
			if err != nil {
				return nil, err
			}
			return &ai.ModelResponse{Message: said, Request: req, FinishReason: ai.FinishReasonStop}, nil
		})
}
