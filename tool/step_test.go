package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/tool"
)

// stepIn is what the calls of the tests in this file do.
type stepIn struct {
	Sleep int    `json:"sleep,omitempty"` // seconds
	Do    string `json:"do,omitempty"`
}

type stepOut struct {
	Log   []string `json:"log"`
	Total int      `json:"total"`
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// told returns what a caller has been told of a call.
func told(r tool.Result, err error) (string, error) {
	if err == nil {
		err = r.Err
	}
	return r.Message.Text(), err
}

var errAway = errors.New("the clerk is away")

// stepFields are what the calls write: a log of all, a sum that must not pass
// ten, and what the last of them wrote.
type stepFields struct {
	log   *state.Field[[]string]
	total *state.Field[int]
	last  *state.Field[string]
}

func newStepFields() (*stepFields, *state.Schema) {
	f := &stepFields{
		log: &state.Field[[]string]{Name: "log"},
		total: &state.Field[int]{Name: "total", Handler: state.Sum[int](), Validate: func(n int) error {
			if n > 10 {
				return errors.New("more than ten")
			}
			return nil
		}},
		last: &state.Field[string]{Name: "last"},
	}
	return f, state.MustSchema(f.log, f.total, f.last, state.Limits{Journal: -1})
}

// tool returns the tool "act": a call logs its index. Its Do says what else it
// does.
func (f *stepFields) tool() *tool.Tool {
	act := func(ctx context.Context, in stepIn) (stepOut, error) {
		call, ok := tool.CallOf(ctx)
		if !ok {
			return stepOut{}, errors.New("no call")
		}
		time.Sleep(time.Duration(in.Sleep) * time.Second)
		out := stepOut{Log: []string{strconv.Itoa(call.Index)}}
		switch in.Do {
		case "fail":
			return out, errors.New("failed")
		case "panic":
			panic("oh no")
		case "goexit":
			runtime.Goexit()
		case "suspend":
			return out, tool.Suspend(errAway)
		case "add":
			out.Total = 4
		case "nothing":
			out.Log = nil
		}
		return out, nil
	}
	return tool.Must(tool.New("act", "", act, tool.To(f.log, "log"), tool.To(f.total, "total"),
		tool.ToFunc(f.last, "log", func(log []string) (string, error) { return log[0], nil })))
}

// calls returns calls of act.
func actCalls(todo ...stepIn) []state.ToolCall {
	calls := make([]state.ToolCall, len(todo))
	for i, in := range todo {
		args, err := state.JSONOf(in)
		if err != nil {
			panic(err)
		}
		calls[i] = state.ToolCall{ID: strconv.Itoa(i), Name: "act", Input: args}
	}
	return calls
}

// indexes returns the indexes of the calls that have a result.
func indexes(results []tool.Result) []int {
	list := []int{}
	for _, r := range results {
		list = append(list, r.Index)
	}
	return list
}

func TestStepWritesInTheOrderOfTheCalls(t *testing.T) {
	f, schema := newStepFields()
	st := state.New(schema)
	step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{}, stepIn{}, stepIn{})))
	for _, c := range []struct {
		call int
		log  []string
	}{{2, nil}, {1, nil}, {0, []string{"0", "1", "2"}}, {3, []string{"0", "1", "2", "3"}}} {
		out, err := told(step.Call(t.Context(), c.call))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`{"log":["%d"],"total":0}`, c.call), out)
		require.Equal(t, c.log, f.log.GetOr(st, nil))
	}
	results := step.End()
	require.Equal(t, []int{0, 1, 2, 3}, indexes(results))
	for i, r := range results {
		require.NoError(t, r.Err)
		require.Equal(t, fmt.Sprintf(`{"log":["%d"],"total":0}`, i), r.Message.Text())
		require.Equal(t, strconv.Itoa(i), r.Message.Call().ID)
	}
	require.Equal(t, results, step.End(), "a second End")
	require.EqualValues(t, 4, st.Version(), "one version for each call")
	require.Equal(t, []string{"0", "1", "2", "3"}, slices.Compact(causes(t, st)))
	require.Zero(t, state.ListLen(st, state.Messages))
}

// TestStepDoesNotWaitForCallsThatWriteNothing has a first call that writes
// nothing: what is held behind it is written before the end.
func TestStepDoesNotWaitForCallsThatWriteNothing(t *testing.T) {
	for _, do := range []string{"suspend", "fail", "panic", "unknown"} {
		f, schema := newStepFields()
		st := state.New(schema)
		calls := actCalls(stepIn{Do: do}, stepIn{}, stepIn{})
		if do == "unknown" {
			calls[0].Name = "elsewhere"
		}
		step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, calls))
		for _, i := range []int{2, 0, 1} {
			_, err := told(step.Call(t.Context(), i))
			require.Equal(t, i == 0, err != nil, do)
			require.Equal(t, i == 0 && do == "suspend", errors.Is(err, tool.ErrSuspended), do)
		}
		require.Equal(t, []string{"1", "2"}, f.log.GetOr(st, nil), do)
		require.Equal(t, do != "suspend", slices.Contains(indexes(step.End()), 0), do)
	}
}

func TestStepRefusesCallsThatAreNotPending(t *testing.T) {
	f, schema := newStepFields()
	step := must(tool.BeginStep(t.Context(), state.New(schema), []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{Do: "suspend"}, stepIn{Do: "fail"}, stepIn{})))
	for _, i := range []int{-1, 4, 1 << 40} {
		_, err := told(step.Call(t.Context(), i))
		require.ErrorIs(t, err, tool.ErrNotPending)
		require.ErrorContains(t, err, "in a step of 4")
	}
	for i := range 3 {
		_, _ = step.Call(t.Context(), i)
		_, err := told(step.Call(t.Context(), i))
		require.ErrorIs(t, err, tool.ErrNotPending)
		require.ErrorContains(t, err, "made already")
	}
	step.End()
	_, err := told(step.Call(t.Context(), 3))
	require.ErrorIs(t, err, tool.ErrNotPending)
	require.ErrorContains(t, err, "the step has ended")

	step = must(tool.BeginStep(t.Context(), nil, nil, nil))
	_, err = told(step.Call(t.Context(), 0))
	require.ErrorIs(t, err, tool.ErrNotPending)
	require.Empty(t, step.End())
}

func TestStepCallIsMadeOnceByConcurrentCallers(t *testing.T) {
	var called atomic.Int32
	count := tool.Must(tool.New("count", "", func(context.Context, struct{}) (int32, error) { return called.Add(1), nil }))
	step := must(tool.BeginStep(t.Context(), state.New(nil), []*tool.Tool{count}, []state.ToolCall{{Name: "count"}}))
	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := told(step.Call(t.Context(), 0)); errors.Is(err, tool.ErrNotPending) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, called.Load())
	require.EqualValues(t, 15, refused.Load())
	require.Len(t, step.End(), 1)
}

func TestStepEndsWithItsContexts(t *testing.T) {
	f, schema := newStepFields()
	for _, whose := range []string{"of the step", "of the call"} {
		st := state.New(schema)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(io.EOF)
		ofStep, ofCall := ended, t.Context()
		if whose == "of the call" {
			ofStep, ofCall = ofCall, ofStep
		}
		step := must(tool.BeginStep(ofStep, st, []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{})))
		_, err := told(step.Call(ofCall, 0))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "not called")
		_, err = told(step.Call(t.Context(), 1))
		require.Equal(t, whose == "of the step", err != nil)
		results := step.End()
		require.ErrorIs(t, results[0].Err, context.Canceled)
		require.Equal(t, results[0].Err.Error(), results[0].Message.Text())
	}
	// What has returned when its context ends is a result.
	st := state.New(schema)
	ctx, cancel := context.WithCancel(t.Context())
	act := tool.Must(tool.New("act", "", func(context.Context, struct{}) ([]string, error) { cancel(); return []string{"x"}, nil }, tool.To(f.log, "")))
	step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{act}, []state.ToolCall{{Name: "act"}}))
	_, err := told(step.Call(ctx, 0))
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, f.log.GetOr(st, nil))
}

// TestStepSurvivesGoexit has functions, and a validation, that end the
// goroutine of the caller.
func TestStepSurvivesGoexit(t *testing.T) {
	t.Run("in a function", func(t *testing.T) {
		f, schema := newStepFields()
		st := state.New(schema)
		step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{Do: "goexit"}, stepIn{})))
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() { _, _ = step.Call(t.Context(), 1-i) })
		}
		wg.Wait()
		require.Equal(t, []string{"1"}, f.log.GetOr(st, nil))
		results := step.End()
		require.Len(t, results, 2)
		var panicked *tool.PanicError
		require.ErrorAs(t, results[0].Err, &panicked)
		require.Nil(t, panicked.Value)
		require.EqualError(t, panicked, `tool "act": the function did not return`)
		require.NoError(t, results[1].Err)
	})
	for first := range 2 { // the validation runs in a write and in a trial
		t.Run(fmt.Sprint("in a validation, call ", first, " first"), func(t *testing.T) {
			list := &state.Field[[]string]{Name: "list", Validate: func(l []string) error {
				if slices.Contains(l, "bad") {
					runtime.Goexit()
				}
				return nil
			}}
			st := state.New(state.MustSchema(list))
			write := tool.Must(tool.New("write", "", func(_ context.Context, in struct {
				Text string `json:"text"`
			}) ([]string, error) {
				return []string{in.Text}, nil
			}, tool.To(list, "")))
			step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{write}, []state.ToolCall{
				{ID: "0", Name: "write", Input: `{"text":"bad"}`}, {ID: "1", Name: "write", Input: `{"text":"good"}`}}))
			for _, i := range []int{first, 1 - first} {
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = step.Call(t.Context(), i) })
				wg.Wait()
			}
			results := step.End()
			require.Len(t, results, 2)
			require.Error(t, results[0].Err)
			require.NoError(t, results[1].Err)
			require.Equal(t, []string{"good"}, list.GetOr(st, nil))
		})
	}
}

// TestStepRefusesOneOfCallsThatExcludeEachOther adds four to a sum that must not
// pass ten. The last of the message is refused, whenever it returns.
func TestStepRefusesOneOfCallsThatExcludeEachOther(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		f, schema := newStepFields()
		st := state.New(schema)
		step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{Do: "add"}, stepIn{Do: "add"}, stepIn{Do: "add"})))
		for _, i := range order {
			_, err := told(step.Call(t.Context(), i))
			require.Equal(t, i == 2 && order[2] == 2, err != nil, "order %v, call %d", order, i)
		}
		results := step.End()
		require.Len(t, results, 3)
		require.NoError(t, errors.Join(results[0].Err, results[1].Err), "order %v", order)
		var refused *tool.OutputError
		require.ErrorAs(t, results[2].Err, &refused, "order %v", order)
		require.Equal(t, "total", refused.Field)
		require.Equal(t, "act", refused.Tool)
		require.NotContains(t, refused.Error(), "more than ten", "the text of a validation")
		require.Equal(t, 8, f.total.GetOr(st, 0))
		require.Equal(t, []string{"0", "1"}, f.log.GetOr(st, nil))
	}
}

// TestStepReportsWhatOthersHavePrevented lets others write between a call and
// the end of its step.
func TestStepReportsWhatOthersHavePrevented(t *testing.T) {
	f, schema := newStepFields()
	st := state.New(schema)
	step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{Do: "add"}, stepIn{}, stepIn{})))
	_, err := told(step.Call(t.Context(), 1))
	require.NoError(t, err)
	require.NoError(t, f.total.Set(st, 9))
	_, err = told(step.Call(t.Context(), 3))
	require.NoError(t, err, "it is not this call that others have prevented")
	_, err = told(step.Call(t.Context(), 2))
	require.NoError(t, err)
	results := step.End()
	require.Equal(t, []int{1, 2, 3}, indexes(results))
	var refused *tool.OutputError
	require.ErrorAs(t, results[0].Err, &refused)
	require.True(t, results[0].Message.IsError())
	require.NoError(t, results[1].Err)
	require.Equal(t, []string{"2", "3"}, f.log.GetOr(st, nil), "a call is one transaction")
	require.Equal(t, 9, f.total.GetOr(st, 0))
}

func TestStepOfAStateThatTakesNothing(t *testing.T) {
	f, schema := newStepFields()
	tx := state.New(schema)
	var ended *state.State
	require.NoError(t, tx.Update(func(tx *state.State) error { ended = tx; return nil }))
	for _, st := range []*state.State{state.New(schema).Snapshot(), nil, ended} {
		step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{})))
		for _, i := range []int{1, 0} {
			_, err := told(step.Call(t.Context(), i))
			var refused *tool.OutputError
			require.ErrorAs(t, err, &refused)
		}
		require.Len(t, step.End(), 2)
	}
}

func TestStepInATransactionAndInAFork(t *testing.T) {
	f, schema := newStepFields()
	act := f.tool()
	st := state.New(schema)
	all := func(st *state.State) {
		step := must(tool.BeginStep(t.Context(), st, []*tool.Tool{act}, actCalls(stepIn{}, stepIn{})))
		for _, i := range []int{1, 0} {
			_, err := told(step.Call(t.Context(), i))
			require.NoError(t, err)
		}
		require.Len(t, step.End(), 2)
	}
	require.NoError(t, st.Update(func(tx *state.State) error { all(tx); return nil }))
	require.EqualValues(t, 1, st.Version())
	fork := st.Fork()
	all(fork)
	require.NoError(t, st.Join(fork))
	require.Equal(t, []string{"0", "1", "0", "1"}, f.log.GetOr(st, nil))
}

// TestStepRunsNoCodeOfUsersUnderALock calls back into the step from all code
// that a call runs.
func TestStepRunsNoCodeOfUsersUnderALock(t *testing.T) {
	var step *tool.Step
	back := func() {
		_, err := told(step.Call(t.Context(), 99))
		require.ErrorIs(t, err, tool.ErrNotPending)
		_, err = told(step.Call(t.Context(), 0))
		if err != nil {
			require.ErrorIs(t, err, tool.ErrNotPending)
		}
	}
	list := &state.Field[[]string]{Name: "list", Validate: func([]string) error { back(); return nil }}
	own := &state.Field[string]{Name: "own", Handler: state.NewHandler("own", func(_ string, _ bool, update string) (string, error) {
		back()
		return update, nil
	})}
	st := state.New(state.MustSchema(list, own))
	act := tool.Must(tool.New("act", "", func(context.Context, struct{}) ([]string, error) { back(); return []string{"x"}, nil },
		tool.To(list, ""), tool.ToFunc(own, "", func([]string) (string, error) { back(); return "y", nil })))
	step = must(tool.BeginStep(t.Context(), st, []*tool.Tool{act}, []state.ToolCall{{Name: "act"}, {Name: "act"}, {Name: "act"}}))
	_, err := told(step.Call(t.Context(), 2))
	require.NoError(t, err)
	_, err = told(step.Call(t.Context(), 1))
	require.NoError(t, err)
	require.Len(t, step.End(), 3)
	require.Equal(t, []string{"x", "x", "x"}, list.GetOr(st, nil))
}

func TestCallOf(t *testing.T) {
	seen, keys := map[string]tool.Call{}, map[string]string{}
	var mu sync.Mutex
	inner := tool.Must(tool.New("inner", "", func(ctx context.Context, _ struct{}) (string, error) {
		call, ok := tool.CallOf(ctx)
		if !ok || call.Name != "inner" || call.ID != "" {
			return "", errors.New("no call")
		}
		return call.Key, nil
	}))
	note := func(ctx context.Context, _ state.JSON) (state.JSON, error) {
		call, ok := tool.CallOf(ctx)
		if !ok {
			return "", errors.New("no call")
		}
		mu.Lock()
		defer mu.Unlock()
		keys[call.ID], call.Key = call.Key, ""
		seen[call.ID] = call
		if _, err := inner.Call(ctx, nil, ""); err != nil {
			return "", err
		}
		return inner.Call(ctx, nil, "")
	}
	tools := []*tool.Tool{tool.Must(tool.Raw("a", "", `{}`, note)), tool.Must(tool.RawStateful("b", "", `{}`, func(ctx context.Context, _ *state.State, args state.JSON) (state.JSON, error) {
		return note(ctx, args)
	}))}
	st := state.New(state.MustSchema(state.Team{"ann": nil})).As("ann")
	calls := []state.ToolCall{{ID: "x", Name: "a"}, {ID: "y", Name: "b"}}
	want := map[string]tool.Call{"x": {ID: "x", Name: "a", Index: 0, Agent: "ann"}, "y": {ID: "y", Name: "b", Index: 1, Agent: "ann"}}
	for _, r := range must(tool.Run(t.Context(), st, tools, calls)) {
		require.Equal(t, keys[r.Message.Call().ID]+".2", r.Message.Text(), "a call inside a call has the key of its place")
		require.Empty(t, r.Message.Call().Key, "a call that is in no history has a key that ends with the process")
	}
	require.Equal(t, want, seen)
	require.NotEqual(t, keys["x"], keys["y"])
	before := maps.Clone(keys)
	clear(seen)
	step := must(tool.BeginStep(t.Context(), st, tools, calls))
	for i := range calls {
		_, err := told(step.Call(t.Context(), i))
		require.NoError(t, err)
	}
	require.Equal(t, want, seen)
	require.NotEqual(t, before, keys)
	_, ok := tool.CallOf(t.Context())
	require.False(t, ok)
	key, err := inner.Call(t.Context(), nil, "")
	require.NoError(t, err)
	require.Regexp(t, `^"c[A-Za-z0-9_-]{14}"$`, string(key), "a call by the program has a random one")
}

// The calls of an answer have their keys from the history, whether the program
// makes those that the model has said or those that the history has.
func TestCallsOfAStepHaveTheKeysOfTheHistory(t *testing.T) {
	type in struct {
		To string `json:"to"`
	}
	keys := map[string]string{}
	var mu sync.Mutex // calls of a step are made at the same time
	pay := tool.Must(tool.New("pay", "", func(ctx context.Context, in in) (string, error) {
		call, _ := tool.CallOf(ctx)
		mu.Lock()
		defer mu.Unlock()
		keys[in.To] = call.Key
		return in.To, nil
	}, tool.To(&state.Field[[]string]{Name: "log"}, "")))
	call := func(id, to string) state.ToolCall {
		return state.ToolCall{ID: id, Name: "pay", Input: state.JSON(`{"to": "` + to + `"}`)}
	}
	for name, calls := range map[string][]state.ToolCall{
		"ids":       {call("1", "ann"), call("2", "bob"), call("3", "cyd")},
		"one id":    {call("1", "ann"), call("1", "bob"), call("1", "cyd")},
		"no ids":    {call("", "ann"), call("", "bob"), call("", "cyd")},
		"one twice": {call("", "ann"), call("", "bob"), call("", "ann")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1}} {
				st := state.New(state.MustSchema(&state.Field[[]string]{Name: "log"}))
				said := state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}
				require.NoError(t, st.History().Append(said)) // an earlier answer, of which the calls are left open
				require.NoError(t, st.History().Append(said))
				last, _ := st.History().Last()
				recorded := last.Output[0].(state.ToolCallMessage).Calls()
				var made []state.ToolCall
				for _, i := range order {
					made = append(made, calls[i])
				}
				clear(keys)
				results, err := tool.Answer(t.Context(), st, []*tool.Tool{pay}, made)
				require.NoError(t, err)
				for i, r := range results {
					require.True(t, made[i].Input.Equal(r.Message.Call().Input))
				}
				for _, i := range order {
					open := slices.ContainsFunc(st.History().Pending(), func(c state.ToolCall) bool { return c.Key == recorded[i].Key })
					require.False(t, open)
					if name != "one twice" {
						require.Equal(t, recorded[i].Key, keys[strings.Trim(string(calls[i].Input[8:]), `"}`)])
					}
				}
				require.Len(t, st.History().Pending(), 6-len(order))
			}
		})
	}
}

func TestSuspendedCallsHaveNoResultInRun(t *testing.T) {
	f, schema := newStepFields()
	st := state.New(schema)
	results := must(tool.Run(t.Context(), st, []*tool.Tool{f.tool()}, actCalls(stepIn{}, stepIn{Do: "suspend"}, stepIn{})))
	require.Equal(t, []int{0, 2}, indexes(results))
	require.Equal(t, []string{"0", "2"}, f.log.GetOr(st, nil))
	require.ErrorIs(t, tool.Suspend(nil), tool.ErrSuspended)
	_, err := tool.Must(tool.New("x", "", func(context.Context, struct{}) (int, error) { return 0, fmt.Errorf("wait: %w", tool.Suspend(errAway)) })).Call(t.Context(), st, "")
	require.ErrorIs(t, err, tool.ErrSuspended)
	require.ErrorIs(t, err, errAway)
	require.EqualError(t, err, `tool "x": wait: the clerk is away`)
}

// A call that waits when the context ends is read while its goroutine still ends.
func TestSuspendedWhenTheContextEnds(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		wait := tool.Must(tool.New("wait", "", func(context.Context, struct{}) (int, error) {
			cancel()
			return 0, tool.Suspend(errAway)
		}))
		step := must(tool.BeginStep(ctx, state.New(nil), []*tool.Tool{wait}, []state.ToolCall{{ID: "1", Name: "wait"}}))
		step.Run(ctx)
		results := step.End()
		for c, s := range step.Suspended() {
			require.Equal(t, "1", c.ID)
			require.Equal(t, errAway.Error(), s.Reason)
			require.Empty(t, results)
			results = []tool.Result{{}}
		}
		require.Len(t, results, 1)
	}
}

// TestRunBoundsItsGoroutines makes a step of more calls than Run makes at once.
func TestRunBoundsItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		total := &state.Field[int]{Name: "total", Handler: state.Sum[int]()}
		st := state.New(state.MustSchema(total))
		add := tool.Must(tool.New("add", "", func(context.Context, struct{}) (int, error) {
			defer running.Add(-1)
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return 1, nil
		}, tool.To(total, "")))
		began := time.Now()
		results := must(tool.Run(t.Context(), st, []*tool.Tool{add}, slices.Repeat([]state.ToolCall{{Name: "add"}}, 1000)))
		require.Len(t, results, 1000)
		require.Equal(t, 1000, total.GetOr(st, 0))
		require.EqualValues(t, 128, most.Load())
		require.Equal(t, 8*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var notCalled, notFinished int
		for _, r := range must(tool.Run(ctx, st, []*tool.Tool{add}, slices.Repeat([]state.ToolCall{{Name: "add"}}, 1000))) {
			if r.Err != nil && strings.Contains(r.Err.Error(), "not called") {
				notCalled++
			}
			if r.Err != nil && strings.Contains(r.Err.Error(), "not finished") {
				notFinished++
			}
		}
		require.Equal(t, []int{1000 - 2*128, 128}, []int{notCalled, notFinished})
		time.Sleep(time.Minute)
	})
}

// TestStepEqualsCallsOneByOne makes random steps with random timing: calls are
// made at random moments or never, take their time, fail, panic, end their
// goroutine, suspend, exclude each other, and the step ends at a random moment.
// What is stored must be what the calls with a result, one by one in their
// order, would have stored.
func TestStepEqualsCallsOneByOne(t *testing.T) {
	seed := effort.LogSeed(t)
	outOfOrder, succeeded := 0, 0
	for run := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		synctest.Test(t, func(t *testing.T) {
			f, schema := newStepFields()
			st := state.New(schema)
			todo := make([]stepIn, 1+rng.IntN(8))
			for i := range todo {
				does := []string{"", "", "", "add", "add", "nothing", "fail", "panic", "goexit", "suspend"}
				todo[i] = stepIn{Sleep: rng.IntN(4), Do: does[rng.IntN(len(does))]}
			}
			calls := actCalls(todo...)
			for i := range calls {
				if rng.IntN(12) == 0 {
					calls[i].Name = "elsewhere"
				}
			}
			tools := []*tool.Tool{f.tool()}
			step := must(tool.BeginStep(t.Context(), st, tools, calls))
			const notMade, ended, lost = "not made", "ended", "lost"
			outcomes := make([]string, len(calls)) // what the caller was told
			var mu sync.Mutex
			for i := range calls {
				outcomes[i] = notMade
				if rng.IntN(8) == 0 {
					continue
				}
				begin := time.Duration(rng.IntN(4)) * time.Second
				outcomes[i] = lost
				go func() {
					time.Sleep(begin)
					out, err := told(step.Call(t.Context(), i))
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, tool.ErrNotPending):
						outcomes[i] = ended
					case err != nil:
						outcomes[i] = "error " + err.Error()
					default:
						outcomes[i] = out
					}
				}()
			}
			time.Sleep(time.Duration(rng.IntN(8))*time.Second + time.Millisecond)
			results := step.End()
			stored := contents(t, st)
			log := f.log.GetOr(st, nil)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, stored, contents(t, st), "nothing is written after End")

			mu.Lock()
			defer mu.Unlock()
			reference := state.New(schema)
			byIndex := map[int]tool.Result{}
			for _, r := range results {
				byIndex[r.Index] = r
				require.Equal(t, calls[r.Index].ID, r.Message.Call().ID)
				if r.Err != nil {
					if told := outcomes[r.Index]; told != "error "+r.Err.Error() && told != lost {
						// It was told a result, which calls in front of it then made impossible.
						require.NotContains(t, told, "error")
						one := must(tool.BeginStep(t.Context(), reference, tools, calls[:r.Index+1]))
						_, err := one.Call(t.Context(), r.Index)
						require.NoError(t, err)
						last := one.End()
						require.ErrorAs(t, last[len(last)-1].Err, new(*tool.OutputError))
					}
					require.Equal(t, r.Err.Error(), r.Message.Text())
					continue
				}
				succeeded++
				require.Equal(t, r.Message.Text(), outcomes[r.Index], "told and stored")
				one := must(tool.BeginStep(t.Context(), reference, tools, calls[:r.Index+1]))
				_, err := told(one.Call(t.Context(), r.Index))
				require.NoError(t, err)
				one.End()
			}
			for i, outcome := range outcomes {
				r, found := byIndex[i]
				switch {
				case outcome == notMade || outcome == ended:
					require.False(t, found, "call %d: %s", i, outcome)
				case todo[i].Do == "suspend" && calls[i].Name == "act":
					require.False(t, found, "call %d is suspended", i)
				case outcome == lost:
					require.True(t, !found || r.Err != nil)
				default:
					require.True(t, found, "call %d has been answered: %s", i, outcome)
				}
			}
			require.Equal(t, contents(t, reference), stored)
			if !slices.IsSorted(log) {
				outOfOrder++
			}
			all := causes(t, st)
			require.True(t, slices.IsSorted(all), "%v", all)
		})
	}
	require.Zero(t, outOfOrder)
	require.NotZero(t, succeeded)
}

func TestPanicErrorsHideTheirValue(t *testing.T) {
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (int, error) { panic(canary) }))
	_, err := x.Call(t.Context(), nil, "")
	var panicked *tool.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, canary, panicked.Value)
	data, err := json.Marshal(panicked)
	require.NoError(t, err)
	require.JSONEq(t, `{"Tool":"x"}`, string(data))
}
