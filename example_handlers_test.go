package state_test

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

func ExampleNewHandler() {
	// At most one correction per answer: the second is refused.
	once := state.NewHandler("once", func(current string, present bool, update string) (string, error) {
		if present {
			return "", errors.New("it has been set")
		}
		return update, nil
	})
	answer := &state.Field[string]{Name: "answer", Handler: once}
	st := state.New(state.MustSchema(answer))
	fmt.Println(answer.Set(st, "42"))
	fmt.Println(answer.Set(st, "43"))
	fmt.Println(answer.Or(st, ""))
	// Output:
	// <nil>
	// state: "answer": handler once: it has been set
	// 42
}

func ExampleReplace() {
	tags := &state.Field[[]string]{Name: "tags", Handler: state.Replace[[]string]()}
	st := state.New(state.MustSchema(tags))
	err := errors.Join(tags.Set(st, []string{"a", "b"}), tags.Set(st, []string{"c"}))
	fmt.Println(tags.Or(st, nil), err)
	// Output: [c] <nil>
}

func ExampleAppend() {
	// It is the default of lists. For a list that replaces by default, one call
	// can append.
	tags := &state.Field[[]string]{Name: "tags", Handler: state.Replace[[]string]()}
	st := state.New(state.MustSchema(tags))
	err := errors.Join(tags.Set(st, []string{"a"}), tags.SetWith(st, []string{"b"}, state.Append[[]string]()))
	fmt.Println(tags.Or(st, nil), err)
	// Output: [a b] <nil>
}

func ExampleKeepLast() {
	recent := &state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](2)}
	st := state.New(state.MustSchema(recent))
	for _, page := range []string{"home", "cart", "checkout"} {
		if err := recent.Set(st, []string{page}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(recent.Or(st, nil))
	// Output: [cart checkout]
}

func ExampleUnion() {
	ids := &state.Field[[]int]{Name: "ids", Handler: state.Union[[]int]()}
	st := state.New(state.MustSchema(ids))
	err := errors.Join(ids.Set(st, []int{3, 1}), ids.Set(st, []int{1, 2, 2}))
	fmt.Println(ids.Or(st, nil), err)
	// Output: [3 1 2] <nil>
}

func ExampleMergeByID() {
	type Task struct{ ID, Status string }
	tasks := &state.Field[[]Task]{Name: "tasks", Handler: state.MergeByID[[]Task](func(t Task) string { return t.ID })}
	st := state.New(state.MustSchema(tasks))
	err := errors.Join(
		tasks.Set(st, []Task{{"1", "open"}, {"2", "open"}}),
		tasks.Set(st, []Task{{"1", "done"}, {"3", "open"}}),
	)
	fmt.Println(tasks.Or(st, nil), err)
	// Output: [{1 done} {2 open} {3 open}] <nil>
}

func ExampleMergeMap() {
	scores := &state.Field[map[string]int]{Name: "scores", Handler: state.MergeMap[map[string]int]()}
	st := state.New(state.MustSchema(scores))
	err := errors.Join(
		scores.Set(st, map[string]int{"ada": 1, "alan": 1}),
		scores.Set(st, map[string]int{"alan": 2}),
	)
	fmt.Println(scores.Or(st, nil), err)
	// Output: map[ada:1 alan:2] <nil>
}

func ExampleSum() {
	tokens := &state.Field[int64]{Name: "tokens", Handler: state.Sum[int64]()}
	st := state.New(state.MustSchema(tokens))
	a, b := st.Fork(), st.Fork()
	err := errors.Join(tokens.Set(a, 120), tokens.Set(b, 80), st.Join(a, b))
	fmt.Println(tokens.Or(st, 0), err)
	// Output: 200 <nil>
}

func ExampleMax() {
	best := &state.Field[float64]{Name: "best", Handler: state.Max[float64]()}
	worst := &state.Field[float64]{Name: "worst", Handler: state.Min[float64]()}
	st := state.New(state.MustSchema(best, worst))
	for _, score := range []float64{0.4, 0.9, 0.7} {
		if err := errors.Join(best.Set(st, score), worst.Set(st, score)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(best.Or(st, 0), worst.Or(st, 0))
	// Output: 0.9 0.4
}

func ExampleFirstWins() {
	title := &state.Field[string]{Name: "title", Handler: state.FirstWins[string]()}
	mood := &state.Field[string]{Name: "mood", Handler: state.LastWins[string]()}
	st := state.New(state.MustSchema(title, mood))
	a, b := st.Fork(), st.Fork()
	err := errors.Join(
		title.Set(b, "from b"), mood.Set(b, "from b"),
		title.Set(a, "from a"), mood.Set(a, "from a"),
		st.Join(a, b),
	)
	fmt.Printf("%q %q %v\n", title.Or(st, ""), mood.Or(st, ""), err)
	// Output: "from a" "from b" <nil>
}

func ExampleMergeMap_counters() {
	tokens := &state.Field[map[string]int]{Name: "tokens", Handler: state.MergeMap[map[string]int](state.Sum[int]())}
	st := state.New(state.MustSchema(tokens))
	err := errors.Join(
		tokens.Set(st, map[string]int{"input": 120, "output": 30}),
		tokens.Set(st, map[string]int{"input": 200, "cached": 80}),
	)
	fmt.Println(tokens.Or(st, nil), err)
	// Output: map[cached:80 input:320 output:30] <nil>
}
