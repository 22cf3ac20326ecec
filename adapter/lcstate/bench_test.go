package lcstate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/tool"
)

// BenchmarkGoal measures the speed goals of this module: runs of n steps with two
// calls each, of the executor of langchaingo with its own tools (baseline), of an
// Agent, and of the executor with a Tool. The model costs nothing.
func BenchmarkGoal(b *testing.B) {
	runs := map[string]func(b *testing.B, steps int){
		"lc-step/baseline": func(b *testing.B, steps int) {
			list := &ownTool{}
			execute(b, steps, list)
			wrote(b, 2*steps, list.notes)
		},
		"lc-step/subject": func(b *testing.B, steps int) {
			st := desk(b)
			a := &lcstate.Agent{
				Name: "search", LLM: noteModel(steps, object), Tools: []*tool.Tool{note}, MaxIterations: steps + 1,
			}
			_, err := chains.Run(state.NewContext(b.Context(), st), a, "Write notes.")
			check(b, err)
			wrote(b, 2*steps, notes.Or(st, nil))
		},
		"lc-tool/subject": func(b *testing.B, steps int) {
			st := desk(b)
			execute(b, steps, inState{lcstate.Tool("search", note), st})
			wrote(b, 2*steps, notes.Or(st, nil))
		},
	}
	runs["lc-tool/baseline"] = runs["lc-step/baseline"]
	for name, run := range runs {
		for _, n := range []int{10, 50, 200} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					run(b, n)
				}
			})
		}
	}
}

// execute lets the executor of langchaingo make the steps with a tool.
func execute(b *testing.B, steps int, t tools.Tool) {
	llm := noteModel(steps, func(text string) string { return fmt.Sprintf(`{"__arg1":%q}`, text) })
	agent := agents.NewOpenAIFunctionsAgent(llm, []tools.Tool{t})
	_, err := chains.Run(b.Context(), agents.NewExecutor(agent, agents.WithMaxIterations(steps+1)), "Write notes.")
	check(b, err)
}

func wrote(b *testing.B, want int, notes []string) {
	if len(notes) != want {
		b.Fatalf("%d notes, want %d", len(notes), want)
	}
}

// noteModel is a model that writes two notes in each step.
func noteModel(steps int, arguments func(text string) string) answers {
	n := 0
	return func([]llms.MessageContent, llms.CallOptions) llms.ContentChoice {
		if n++; n > steps {
			return llms.ContentChoice{Content: "Done."}
		}
		return llms.ContentChoice{ToolCalls: []llms.ToolCall{
			call(fmt.Sprint("a", n), "note", arguments("a")), call(fmt.Sprint("b", n), "note", arguments("b")),
		}}
	}
}

// ownTool is a tool of langchaingo that keeps its notes itself.
type ownTool struct{ notes []string }

func (*ownTool) Name() string        { return "note" }
func (*ownTool) Description() string { return "Write a note." }

func (t *ownTool) Call(_ context.Context, text string) (string, error) {
	t.notes = append(t.notes, text)
	return text, nil
}

// inState is a tool that is called with a state.
type inState struct {
	tools.Tool
	st *state.State
}

func (t inState) Call(ctx context.Context, text string) (string, error) {
	return t.Tool.Call(state.NewContext(ctx, t.st), text)
}
