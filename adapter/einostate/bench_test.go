package einostate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/tool"
)

// BenchmarkGoal measures the speed goal of this module: a step of two calls, of
// an agent with session values and of one with a state.
func BenchmarkGoal(b *testing.B) {
	for _, variant := range []struct {
		name string
		run  func(b *testing.B, steps int)
	}{{"baseline", runSession}, {"subject", runState}} {
		for _, n := range []int{10, 50, 200} {
			b.Run(fmt.Sprintf("eino-step/%s/n=%d", variant.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					variant.run(b, n)
				}
			})
		}
	}
}

// steps is a model that makes two calls in each of n steps.
func steps(n int) scripted {
	step := 0
	return func(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
		if step++; step > n {
			return said("done"), nil
		}
		return calls(
			call(fmt.Sprint("c", step, "_1"), "note", `{"text":"delivered on Monday"}`),
			call(fmt.Sprint("c", step, "_2"), "note", `{"text":"can be sent back"}`),
		), nil
	}
}

func runAgent(b *testing.B, ctx context.Context, a adk.Agent, opts ...adk.AgentRunOption) {
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, "go", opts...)
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			b.Fatal(event.Err)
		}
	}
}

var sessionTool = func() einotool.BaseTool {
	var mu sync.Mutex
	t, err := utils.InferTool("note", "Write a note.", func(ctx context.Context, in noteInput) (string, error) {
		order, _ := adk.GetSessionValue(ctx, "order")
		note := order.(string) + ": " + in.Text
		mu.Lock() // without it, a note is lost now and then
		defer mu.Unlock()
		value, _ := adk.GetSessionValue(ctx, "notes")
		list, _ := value.([]string)
		adk.AddSessionValue(ctx, "notes", append(list, note))
		return note, nil
	})
	if err != nil {
		panic(err)
	}
	return t
}()

func runSession(b *testing.B, n int) {
	runAgent(b, b.Context(), agent("billing", steps(n), []einotool.BaseTool{sessionTool}),
		adk.WithSessionValues(map[string]any{"order": "#W1"}))
}

var order = &state.Field[string]{Name: "order", Read: state.Public}

var (
	stepSchema = state.MustSchema(notes, order, state.Team{"billing": {"search"}})
	stateTools = einostate.Tools(tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in struct {
		Order string `json:"order"`
		noteInput
	}) (string, error) {
		return in.Order + ": " + in.Text, nil
	}, tool.From(order, "order"), tool.ToFunc(notes, "", func(note string) ([]string, error) { return []string{note}, nil }))))
)

func runState(b *testing.B, n int) {
	st := state.New(stepSchema)
	if err := order.Set(st, "#W1"); err != nil {
		b.Fatal(err)
	}
	runAgent(b, state.NewContext(b.Context(), st), agent("billing", steps(n), stateTools, einostate.Middleware("billing", nil)))
	if state.ListLen(st, notes) != 2*n || state.ListLen(st, state.Messages) != 3*n+2 {
		b.Fatal(state.ListLen(st, notes), state.ListLen(st, state.Messages))
	}
}
