package tool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/tool"
)

// tracedCall is what a recordingTracer was told of a call.
type tracedCall struct {
	Name   string
	Parent string // the call in whose context it was made
	Info   tool.CallInfo
	Ends   int
	Result tool.Result
}

type tracedKey struct{}

// recordingTracer records the calls that it is told of, in the order of their
// beginnings.
type recordingTracer struct {
	mu    sync.Mutex
	calls []*tracedCall
	start func(name string) // called by StartCall, if it is not nil
}

func (t *recordingTracer) StartCall(ctx context.Context, info tool.CallInfo) context.Context {
	if t.start != nil {
		t.start(info.Call.Name)
	}
	c := &tracedCall{Name: info.Call.Name, Info: info}
	if parent, ok := ctx.Value(tracedKey{}).(*tracedCall); ok {
		c.Parent = parent.Name
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
	return context.WithValue(ctx, tracedKey{}, c)
}

func (t *recordingTracer) EndCall(ctx context.Context, info tool.CallInfo, r tool.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := ctx.Value(tracedKey{}).(*tracedCall)
	if !cmp.Equal(c.Info, info, cmp.Comparer(func(a, b *tool.Tool) bool { return a == b }), cmpopts.IgnoreFields(info, "Redact")) {
		panic("another call ends than the one that began")
	}
	c.Ends++
	c.Result = r
}

// all returns the calls by name.
func (t *recordingTracer) all() []tracedCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []tracedCall
	for _, c := range t.calls {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b tracedCall) int { return strings.Compare(a.Name+a.Info.Call.ID, b.Name+b.Info.Call.ID) })
	return all
}

func (t *recordingTracer) only(tt *testing.T) tracedCall {
	all := t.all()
	require.Len(tt, all, 1)
	require.Equal(tt, 1, all[0].Ends)
	return all[0]
}

type tracedIn struct {
	Word string `json:"word"`
	User string `json:"user,omitempty"`
}

func tracedTool(name string, fn func(ctx context.Context, in tracedIn) (string, error), opts ...tool.Option) *tool.Tool {
	return tool.Must(tool.New(name, "", fn, opts...))
}

var (
	tracedUser = &state.Field[string]{Name: "user", Secret: true, Read: state.Public}
	tracedPIN  = &state.Field[string]{Name: "pin", Secret: true}
	tracedText = &state.Field[string]{Name: "text", Read: state.Public, Write: state.Public}
)

func tracedState(t require.TestingT) *state.State {
	st := state.New(state.MustSchema(state.Team{"support": {}}, tracedUser, tracedPIN, tracedText))
	require.NoError(t, tracedUser.Set(st, "ann-secret"))
	require.NoError(t, tracedPIN.Set(st, "pin-4711"))
	return st.As("support")
}

func TestTracerIsToldOfEachCallOfAStep(t *testing.T) {
	errNo := errors.New("no")
	tools := []*tool.Tool{
		tracedTool("read", func(_ context.Context, in tracedIn) (string, error) { return in.Word + " for " + in.User, nil },
			tool.From(tracedUser, "user"), tool.From(tracedText, "word")),
		tracedTool("write", func(_ context.Context, in tracedIn) (string, error) { return in.Word, nil }, tool.To(tracedText, "")),
		tracedTool("fail", func(context.Context, tracedIn) (string, error) { return "", fmt.Errorf("ann-secret: %w", errNo) },
			tool.From(tracedUser, "user")),
		tracedTool("panic", func(context.Context, tracedIn) (string, error) { panic("x") }),
		tracedTool("exit", func(context.Context, tracedIn) (string, error) { runtime.Goexit(); return "", nil }),
	}
	calls := []state.ToolCall{
		{ID: "1", Name: "read", Input: `{}`},
		{ID: "2", Name: "write", Input: `{"word":"x"}`},
		{ID: "3", Name: "fail", Input: `{"word":"x"}`},
		{ID: "4", Name: "fail", Input: `{"wort":"x"}`},
		{ID: "5", Name: "made up", Input: `{}`},
		{ID: "6", Name: "panic", Input: `{"word":"x"}`},
		{ID: "7", Name: "exit", Input: `{"word":"x"}`},
	}
	tracer := &recordingTracer{}
	st := tracedState(t)
	results := must(tool.Run(tool.WithTracer(t.Context(), tracer), st, tools, calls))
	require.Len(t, results, len(calls))
	traced := tracer.all()
	require.Len(t, traced, len(calls))
	byID := map[string]tracedCall{}
	for _, c := range traced {
		byID[c.Info.Call.ID] = c
	}
	for i, call := range calls {
		c := byID[call.ID]
		require.NotEmpty(t, c.Info.Call.Key)
		c.Info.Call.Key = ""
		require.Equal(t, call, c.Info.Call, "as the model has written it")
		require.Equal(t, "support", c.Info.Agent)
		require.Equal(t, 1, c.Ends, call.Name)
		require.Equal(t, results[i], c.Result, "the result of the caller, without secrets")
		require.Equal(t, 2, c.Info.Batches)
		require.NotContains(t, c.Result.Message.Raw(), "ann-secret")
		require.Equal(t, "[SECRET]!", c.Info.Redact("pin-4711!"), "although the agent may not read it")
	}
	require.ErrorIs(t, byID["3"].Result.Err, errNo)
	require.Contains(t, byID["1"].Result.Message.Text(), "x for [SECRET]")
	require.Equal(t, []int{2, 1, 1, 1, 0, 1, 1}, []int{
		byID["1"].Info.Batch, byID["2"].Info.Batch, byID["3"].Info.Batch, byID["4"].Info.Batch,
		byID["5"].Info.Batch, byID["6"].Info.Batch, byID["7"].Info.Batch,
	}, "a reader is in the batch after its writer")
	require.Same(t, tools[0], byID["1"].Info.Tool)
	require.Nil(t, byID["5"].Info.Tool)
	require.ErrorIs(t, byID["5"].Result.Err, tool.ErrUnknownTool)
}

// A call that a function makes belongs to the call of the function.
func TestTracerSeesCallsWithinCalls(t *testing.T) {
	inner := tracedTool("inner", func(_ context.Context, in tracedIn) (string, error) { return "got " + in.Word, nil },
		tool.From(tracedUser, "user"), tool.To(tracedText, ""))
	outer := tool.Must(tool.NewStateful("outer", "", func(ctx context.Context, st *state.State, in tracedIn) (state.JSON, error) {
		return inner.Call(ctx, st, `{"word":"ann-secret"}`)
	}))
	tracer := &recordingTracer{}
	st := tracedState(t)
	results := must(tool.Run(tool.WithTracer(t.Context(), tracer), st, []*tool.Tool{outer}, []state.ToolCall{{ID: "1", Name: "outer", Input: `{"word":"x"}`}}))
	require.NoError(t, results[0].Err)
	traced := tracer.all()
	require.Len(t, traced, 2)
	require.Equal(t, "outer", traced[0].Parent)
	info := traced[0].Info
	require.Equal(t, "[SECRET]", info.Redact("pin-4711"))
	info.Redact = nil // not comparable
	require.Equal(t, tool.CallInfo{
		Tool: inner, Agent: "support",
		Call: state.ToolCall{Name: "inner", Input: `{"word":"ann-secret"}`, Key: traced[1].Info.Call.Key + ".1"},
	}, info)
	require.Equal(t, tool.Result{Message: state.ToolResult(traced[0].Info.Call, `"got [SECRET]"`)}, traced[0].Result)
	require.Equal(t, "", traced[1].Parent)
}

func TestTracerSeesTheErrorsOfSingleCalls(t *testing.T) {
	refused := state.MustSchema(&state.Field[string]{Name: "text", Validate: func(string) error { return errors.New("no") }})
	for name, c := range map[string]struct {
		fn   func(context.Context, tracedIn) (string, error)
		st   *state.State
		args state.JSON
		want any
	}{
		"arguments": {nil, tracedState(t), `{"x":1}`, new(*tool.ArgumentError)},
		"panic":     {func(context.Context, tracedIn) (string, error) { panic("x") }, tracedState(t), `{"word":"x"}`, new(*tool.PanicError)},
		"exit":      {func(context.Context, tracedIn) (string, error) { runtime.Goexit(); return "", nil }, tracedState(t), `{"word":"x"}`, new(*tool.PanicError)},
		"output":    {nil, state.New(refused), `{"word":"x"}`, new(*tool.OutputError)},
		"nil state": {nil, nil, `{"word":"x"}`, new(*tool.OutputError)},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fn == nil {
				c.fn = func(context.Context, tracedIn) (string, error) { return "x", nil }
			}
			made, tracer := tracedTool("t", c.fn, tool.To(tracedText, "")), &recordingTracer{}
			var err error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err = made.Call(tool.WithTracer(t.Context(), tracer), c.st, c.args)
			}()
			<-ended
			only := tracer.only(t)
			got := only.Result
			if name != "exit" {
				require.Equal(t, err, got.Err)
			}
			require.ErrorAs(t, got.Err, c.want)
			require.Equal(t, []state.ToolCall{{Name: "t", Input: c.args}}, callkeys.Calls(only.Info.Call))
			require.Equal(t, state.ToolError(only.Info.Call, got.Err.Error()), got.Message)
		})
	}
}

// StartCall sets what belongs to a goroutine, such as the regions of an
// execution trace.
func TestStartCallIsOnTheGoroutineOfTheCall(t *testing.T) {
	var started sync.WaitGroup
	started.Add(3)
	tracer := &recordingTracer{start: func(string) { started.Done(); started.Wait() }}
	wait := tracedTool("wait", func(context.Context, tracedIn) (string, error) { return "", nil })
	call := state.ToolCall{Name: "wait", Input: `{"word":"x"}`}
	must(tool.Run(tool.WithTracer(t.Context(), tracer), state.New(nil), []*tool.Tool{wait}, []state.ToolCall{call, call, call}))
	require.Len(t, tracer.all(), 3)
}

func TestTracerIsToldOnceOfAnAbandonedCall(t *testing.T) {
	for _, in := range []string{"the function", "StartCall"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release, block := make(chan struct{}), func() {}
				tracer := &recordingTracer{start: func(string) { block() }}
				called := false
				slow := tracedTool("slow", func(context.Context, tracedIn) (string, error) {
					called = true
					<-release
					return "late", nil
				})
				if in == "StartCall" {
					block = func() { <-release }
				}
				ctx, cancel := context.WithCancel(tool.WithTracer(t.Context(), tracer))
				var results []tool.Result
				go func() {
					results = must(tool.Run(ctx, state.New(nil), []*tool.Tool{slow}, []state.ToolCall{{ID: "1", Name: "slow", Input: `{"word":"x"}`}}))
				}()
				synctest.Wait()
				cancel()
				synctest.Wait()
				require.ErrorIs(t, results[0].Err, context.Canceled)
				if in == "the function" {
					require.Equal(t, results[0], tracer.only(t).Result, "when Run returns")
				}
				close(release)
				synctest.Wait()
				require.Equal(t, results[0], tracer.only(t).Result)
				require.Equal(t, in == "the function", called)
			})
		})
	}
}

func TestCallsThatAreNotMadeAreNotTraced(t *testing.T) {
	tracer := &recordingTracer{}
	ctx, cancel := context.WithCancel(tool.WithTracer(t.Context(), tracer))
	cancel()
	made := tracedTool("t", func(context.Context, tracedIn) (string, error) { return "", nil })
	calls := []state.ToolCall{{Name: "t", Input: `{"word":"x"}`}}
	require.ErrorIs(t, must(tool.Run(ctx, state.New(nil), []*tool.Tool{made}, calls))[0].Err, context.Canceled)
	r, err := must(tool.BeginStep(ctx, state.New(nil), []*tool.Tool{made}, calls)).Call(t.Context(), 0)
	require.NoError(t, err)
	require.ErrorIs(t, r.Err, context.Canceled)
	var none context.Context
	require.Error(t, must(tool.Run(none, state.New(nil), nil, calls))[0].Err)
	require.Empty(t, tracer.all())
}

// The calls of a step are those of the step's context, whatever contexts a
// framework has for each.
func TestTracerOfTheStepIsFoundInEachCall(t *testing.T) {
	outer, own := &recordingTracer{}, &recordingTracer{}
	made := tracedTool("t", func(context.Context, tracedIn) (string, error) { return "", nil })
	call := state.ToolCall{Name: "t", Input: `{"word":"x"}`}
	step := must(tool.BeginStep(tool.WithTracer(t.Context(), outer), state.New(nil), []*tool.Tool{made}, []state.ToolCall{call, call, call}))
	for i, ctx := range []context.Context{t.Context(), tool.WithTracer(t.Context(), own)} {
		_, err := step.Call(ctx, i)
		require.NoError(t, err)
	}
	require.Zero(t, outer.only(t).Info.Batches)
	require.Equal(t, 1, own.only(t).Result.Index)
}

func TestTracerIsToldOfCallsWithoutAResult(t *testing.T) {
	ask := tracedTool("ask", func(context.Context, tracedIn) (string, error) { return "", tool.Suspend(errors.New("ann must agree")) })
	calls := []state.ToolCall{{ID: "1", Name: "ask", Input: `{"word":"x"}`}}
	suspended := &recordingTracer{}
	require.Empty(t, must(tool.Run(tool.WithTracer(t.Context(), suspended), state.New(nil), []*tool.Tool{ask}, calls)))
	r := suspended.only(t).Result
	require.ErrorIs(t, r.Err, tool.ErrSuspended)
	require.Equal(t, tool.Result{Err: r.Err}, r)

	late := &recordingTracer{}
	var step *tool.Step
	end := tracedTool("end", func(context.Context, tracedIn) (string, error) { step.End(); return "", nil })
	step = must(tool.BeginStep(tool.WithTracer(t.Context(), late), state.New(nil), []*tool.Tool{end}, []state.ToolCall{{Name: "end", Input: `{"word":"x"}`}}))
	_, err := step.Call(t.Context(), 0)
	require.ErrorIs(t, err, tool.ErrNotPending)
	require.Equal(t, tool.Result{Err: err}, late.only(t).Result)

	_, err = step.Call(t.Context(), 0)
	require.ErrorIs(t, err, tool.ErrNotPending)
	late.only(t)
}

// brokenTracer panics, or returns no context.
type brokenTracer struct{ start, end bool }

func (b brokenTracer) StartCall(context.Context, tool.CallInfo) context.Context {
	if b.start {
		panic("start")
	}
	return nil
}

func (b brokenTracer) EndCall(ctx context.Context, _ tool.CallInfo, _ tool.Result) {
	if b.end || ctx == nil {
		panic("end")
	}
}

func TestTracerThatPanicsChangesNothing(t *testing.T) {
	made := tracedTool("t", func(_ context.Context, in tracedIn) (string, error) { return in.Word, nil })
	calls := []state.ToolCall{{ID: "1", Name: "t", Input: `{"word":"x"}`}, {Name: "none"}}
	want := must(tool.Run(t.Context(), state.New(nil), []*tool.Tool{made}, calls))
	for _, tracer := range []tool.Tracer{brokenTracer{}, brokenTracer{start: true}, brokenTracer{end: true}, (*recordingTracer)(nil)} {
		ctx := tool.WithTracer(t.Context(), tracer)
		require.Equal(t, want, must(tool.Run(ctx, state.New(nil), []*tool.Tool{made}, calls)))
		text, err := made.Call(ctx, state.New(nil), `{"word":"x"}`)
		require.NoError(t, err)
		require.Equal(t, state.JSON(`"x"`), text)
	}
}

func TestNilTracerEndsTracing(t *testing.T) {
	tracer := &recordingTracer{}
	ctx := tool.WithTracer(tool.WithTracer(t.Context(), tracer), nil)
	must(tool.Run(ctx, state.New(nil), nil, []state.ToolCall{{Name: "none"}}))
	require.Empty(t, tracer.all())
}
