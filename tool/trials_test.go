package tool_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/tool"
)

func forward(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func backward(from, to int) []int {
	list := forward(from, to)
	slices.Reverse(list)
	return list
}

// What is tried alone must fit together all the same, or fail.
func TestStepFindsWhatDoesNotFitInWhateverOrder(t *testing.T) {
	errOdd := errors.New("odd")
	small := &state.Field[int8]{Name: "small", Handler: state.Sum[int8]()}
	text := &state.Field[[]string]{Name: "text", MaxBytes: 30}
	even := &state.Field[int]{Name: "even", Validate: func(n int) error {
		if n%2 == 1 {
			return errOdd
		}
		return nil
	}, Handler: state.Sum[int]()}
	number := tool.Must(tool.New("number", "", func(context.Context, struct{}) (int8, error) { return 50, nil }, tool.To(small, "")))
	set := tool.Must(tool.New("set", "", func(context.Context, struct{}) (int8, error) { return 100, nil }, tool.To(small, "").With(state.Replace[int8]())))
	words := tool.Must(tool.New("words", "", func(context.Context, struct{}) ([]string, error) { return []string{"0123456789"}, nil }, tool.To(text, "")))
	odd := tool.Must(tool.New("odd", "", func(context.Context, struct{}) (int, error) { return 1, nil }, tool.To(even, "")))
	two := tool.Must(tool.New("two", "", func(context.Context, struct{}) (int, error) { return 2, nil }, tool.To(even, "")))
	both := tool.Must(tool.New("both", "", func(context.Context, struct{}) (map[string]int, error) { return map[string]int{"n": 1}, nil },
		tool.To(even, "n"), tool.ToName("small", "n")))
	clears := tool.Must(tool.Raw("clears", "", "{}", func(context.Context, state.JSON) (state.JSON, error) { return "null", nil },
		tool.To(text, "").OrDelete()))
	tools := []*tool.Tool{number, set, words, odd, two, both, clears}
	schema := state.MustSchema(small, text, even)
	seed := effort.LogSeed(t)
	refused := 0
	for run := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		st, reference := state.New(schema), state.New(schema)
		calls := make([]state.ToolCall, 1+rng.IntN(7))
		for i := range calls {
			calls[i].Name = tools[rng.IntN(len(tools))].Name()
		}
		step := must(tool.BeginStep(t.Context(), st, tools, calls))
		failed := map[int]bool{}
		for _, i := range rng.Perm(len(calls)) {
			r, err := step.Call(t.Context(), i)
			require.NoError(t, err)
			failed[i] = r.Err != nil
		}
		for _, r := range step.End() {
			require.True(t, r.Err != nil || !failed[r.Index], "program %d, %v: call %d", run, calls, r.Index)
			if r.Err == nil {
				one := must(tool.Run(t.Context(), reference, tools, calls[r.Index:r.Index+1]))
				require.NoError(t, one[0].Err)
				continue
			}
			refused++
			if !failed[r.Index] { // calls in front of it have made it impossible
				one := must(tool.Run(t.Context(), reference, tools, calls[r.Index:r.Index+1]))
				require.ErrorAs(t, one[0].Err, new(*tool.OutputError))
			}
		}
		require.Equal(t, contents(t, reference), contents(t, st))
	}
	require.NotZero(t, refused)
}
