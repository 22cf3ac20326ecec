package genkitstate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/x/session"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/tool"
)

// BenchmarkGoal measures the speed goals of this module: n steps with two calls
// each, by Genkit with a session and by the adapter with a state. See lab/goals.
func BenchmarkGoal(b *testing.B) {
	for _, n := range []int{10, 50, 200} {
		b.Run(fmt.Sprintf("genkit-step/baseline/n=%d", n), func(b *testing.B) {
			g, model := stepper(b, n)
			add := ai.NewTool("add", "Adds an item.", func(ctx *ai.ToolContext, in item) (string, error) {
				s := session.FromContext[cart](ctx)
				c := s.State()
				c.Items = append(c.Items, in.Name)
				return in.Name, s.UpdateState(ctx, c)
			})
			for b.Loop() {
				s, err := session.New(b.Context(), session.WithInitialState(cart{}))
				must(err)
				run(b, session.NewContext(b.Context(), s), g, model, ai.WithTools(add), ai.WithMaxTurns(n))
			}
		})
		b.Run(fmt.Sprintf("genkit-step/subject/n=%d", n), func(b *testing.B) {
			g, model := stepper(b, n)
			items := &state.Field[[]string]{Name: "items", Read: state.Public, Write: state.Public}
			owner := &state.Field[string]{Name: "owner", Read: state.Public}
			schema := state.MustSchema(items, owner, state.Team{"clerk": nil})
			tools := []*tool.Tool{tool.Must(tool.New("add", "Adds an item.", func(_ context.Context, in struct {
				Name  string `json:"name"`
				Owner string `json:"owner"`
			}) (string, error) {
				return in.Name, nil
			}, tool.From(owner, "owner"), tool.ToFunc(items, "", func(name string) ([]string, error) { return []string{name}, nil })))}
			refs := genkitstate.Tools(tools...)
			middleware := genkitstate.Middleware(tools, &genkitstate.Options{MaxTurns: n})
			for b.Loop() {
				st := state.New(schema)
				must(owner.Set(st, "ann"))
				run(b, state.NewContext(b.Context(), st.As("clerk")), g, model, ai.WithTools(refs...), ai.WithMiddleware(middleware))
				if got := state.ListLen(st, items); got != 2*n {
					b.Fatalf("%d items", got)
				}
			}
		})
	}
}

// stepper returns a model that takes n steps.
func stepper(b *testing.B, n int) (*genkit.Genkit, ai.Model) {
	g := genkit.Init(b.Context())
	return g, define(g, func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		k := (len(req.Messages) - 1) / 2
		if k == n {
			return ai.NewModelTextMessage("Done."), nil
		}
		return ai.NewModelMessage(
			ai.NewToolRequestPart(&ai.ToolRequest{Name: "add", Ref: fmt.Sprint("a", k), Input: map[string]any{"name": "apple"}}),
			ai.NewToolRequestPart(&ai.ToolRequest{Name: "add", Ref: fmt.Sprint("b", k), Input: map[string]any{"name": "pear"}})), nil
	})
}

func run(b *testing.B, ctx context.Context, g *genkit.Genkit, model ai.Model, opts ...ai.GenerateOption) {
	if _, err := genkit.Generate(ctx, g, append(opts, ai.WithModel(model), ai.WithPrompt("Fill the cart."))...); err != nil {
		b.Fatal(err)
	}
}
