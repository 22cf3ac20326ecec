package tool_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/tool"
)

// The outputs of each call used to be tried together with all that were held:
// the allocations of a step grew with the square of its calls.
func TestTheCostOfAStepIsLinearInWhateverOrderItsCallsReturn(t *testing.T) {
	effort.Cost(t)
	log := &state.Field[[]string]{Name: "log"}
	total := &state.Field[int]{Name: "total", Handler: state.Sum[int]()}
	labels := &state.Field[map[string]int]{Name: "labels", Handler: state.MergeMap[map[string]int]()}
	last := &state.Field[string]{Name: "last"}
	schema := state.MustSchema(log, total, labels, last, state.Limits{Journal: 16})
	type out struct {
		Log    []string       `json:"log"`
		Total  int            `json:"total"`
		Labels map[string]int `json:"labels"`
	}
	act := tool.Must(tool.New("act", "", func(ctx context.Context, _ struct{}) (out, error) {
		call, _ := tool.CallOf(ctx)
		return out{[]string{fmt.Sprint(call.Index)}, 1, map[string]int{fmt.Sprint(call.Index % 5): 1}}, nil
	}, tool.To(log, "log"), tool.To(total, "total"), tool.To(labels, "labels"),
		tool.ToFunc(last, "log", func(l []string) (string, error) { return l[0], nil })))
	for name, order := range map[string]func(n int) []int{
		"in reverse":          func(n int) []int { return backward(0, n) },
		"the first is last":   func(n int) []int { return append(forward(1, n), 0) },
		"from the middle out": func(n int) []int { return append(forward(n/2, n), backward(0, n/2)...) },
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) uint64 {
				st := state.New(schema)
				step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{act}, slices.Repeat([]state.ToolCall{{ID: "x", Name: "act"}}, n)))
				calls := order(n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for _, i := range calls {
					r, err := step.Call(t.Context(), i)
					if err != nil || r.Err != nil {
						t.Fatal(i, err, r.Err)
					}
				}
				results := step.End()
				runtime.ReadMemStats(&after)
				require.Len(t, results, n)
				require.Equal(t, n, total.GetOr(st, 0))
				require.Equal(t, fmt.Sprint(n-1), last.GetOr(st, ""))
				return after.Mallocs - before.Mallocs
			}
			cost(10)
			few, many := cost(100), cost(1000)
			t.Logf("%d allocations for 100 calls, %d for 1 000: %.2f times", few, many, float64(many)/float64(few))
			require.LessOrEqual(t, many, 12*few)
		})
	}
}
