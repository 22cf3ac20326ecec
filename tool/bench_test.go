package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

var (
	benchUser   = &state.Field[string]{Name: "user_name"}
	benchAnswer = &state.Field[string]{Name: "answer"}
)

type benchIn struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
	User  string `json:"user,omitempty"`
}

type benchOut struct {
	Answer  string   `json:"answer"`
	Sources []string `json:"sources"`
}

func benchSearch(_ context.Context, in benchIn) (benchOut, error) {
	return benchOut{Answer: in.User + ": within thirty days", Sources: []string{"returns.md", "faq.md"}}, nil
}

const benchArgs = `{"query":"How long can items be returned?","limit":5}`

// BenchmarkGoal measures the speed goal of this package: a call of a tool with
// one input and one output, against the function with encoding/json around it.
func BenchmarkGoal(b *testing.B) {
	b.Run("tool-plan", benchPlan)
	b.Run("tool-call", func(b *testing.B) {
		b.Run("baseline", func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				var in benchIn
				if err := json.Unmarshal([]byte(benchArgs), &in); err != nil {
					b.Fatal(err)
				}
				in.User = "Ada"
				out, err := benchSearch(ctx, in)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(out); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("subject", func(b *testing.B) {
			ctx := b.Context()
			st := state.New(state.MustSchema(benchUser, benchAnswer))
			if err := benchUser.Set(st, "Ada"); err != nil {
				b.Fatal(err)
			}
			t := tool.Must(tool.New("search", "", benchSearch, tool.From(benchUser, "user"), tool.To(benchAnswer, "answer")))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := t.Call(ctx, st, benchArgs); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// benchPlan is the row tool-plan: the plan of a step of 32 calls with chains,
// cycles and a barrier.
func benchPlan(b *testing.B) {
	b.Run("subject", func(b *testing.B) {
		const part = ":a :b a:c b:c c:d :e e:f f: :g g:g g:g h:i i:h :j jk:l "
		tools, calls := step(b, part+"- "+part+":k", idle)
		if len(calls) != 32 {
			b.Fatal("a step of ", len(calls), " calls")
		}
		b.ReportAllocs()
		for b.Loop() {
			tool.Plan(tools, calls)
		}
	})
}
