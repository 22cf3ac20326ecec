package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/tool"
)

// stepFunc is the function of a tool in a step. It is given the id of the call and
// the injected fields by name.
type stepFunc func(ctx context.Context, id string, fields map[string]any) (map[string]any, error)

// stepTool returns a tool from what it reads and writes, as in stepCases. The
// name of the tool is its notation.
func stepTool(t require.TestingT, notation string, fn stepFunc) *tool.Tool {
	call := func(ctx context.Context, args map[string]any) (map[string]any, error) {
		id, _ := args["id"].(string)
		delete(args, "id")
		if fn == nil {
			return nil, nil
		}
		return fn(ctx, id, args)
	}
	if notation == "-" {
		made, err := tool.NewStateful(notation, "", func(ctx context.Context, _ *state.State, args map[string]any) (map[string]any, error) {
			return call(ctx, args)
		})
		require.NoError(t, err)
		return made
	}
	from, to, _ := strings.Cut(notation, ":")
	properties := map[string]any{"id": map[string]any{"type": "string"}}
	var opts []tool.Option
	for _, field := range strings.Split(from, "") {
		properties[field] = map[string]any{}
		opts = append(opts, tool.FromName(field, field))
	}
	for _, field := range strings.Split(to, "") {
		opts = append(opts, tool.ToName(field, field))
	}
	schema, err := state.JSONOf(map[string]any{"type": "object", "properties": properties})
	require.NoError(t, err)
	made, err := tool.Raw(notation, "", schema, func(ctx context.Context, args state.JSON) (state.JSON, error) {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(args), &decoded); err != nil {
			return "", err
		}
		out, err := call(ctx, decoded)
		if err != nil || out == nil {
			return "{}", err
		}
		return state.JSONOf(out)
	}, opts...)
	require.NoError(t, err)
	return made
}

// writes returns a result with one value for each field that a tool writes.
func writes(notation string, value any) map[string]any {
	out := map[string]any{}
	_, to, _ := strings.Cut(notation, ":")
	for _, field := range strings.Split(to, "") {
		out[field] = value
	}
	return out
}

// stepState returns an empty state with the fields of the steps: lists, to which
// calls append.
func stepState() *state.State {
	var parts []state.Part
	for name := 'a'; name <= 'p'; name++ {
		parts = append(parts, &state.Field[[]string]{Name: string(name)})
	}
	return state.New(state.MustSchema(parts...))
}

// texts returns the text of each result that the model reads.
func texts(results []tool.Result) []string {
	var all []string
	for _, r := range results {
		all = append(all, r.Message.Text())
	}
	return all
}

// contents returns all fields as JSON.
func contents(t require.TestingT, st *state.State) string {
	data, err := json.Marshal(st.KV().All())
	require.NoError(t, err)
	return string(data)
}

// causes returns the causes of all writes, in their order.
func causes(t require.TestingT, st *state.State) []string {
	var all []string
	for c, err := range st.Changes(0) {
		require.NoError(t, err)
		all = append(all, c.Cause)
	}
	return all
}

// TestRunMakesTheCallsOfABatchAtTheSameTime runs the steps of TestPlan with
// calls that take a second, on a clock that moves when all of them wait. Calls
// that are on the clock in the same second run at the same time.
func TestRunMakesTheCallsOfABatchAtTheSameTime(t *testing.T) {
	for _, c := range stepCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				running := map[int]bool{}
				seen := map[int][][]int{} // what ran in each second, as each call saw it
				tools, calls := step(t, c.calls, func(string) stepFunc {
					return func(_ context.Context, id string, _ map[string]any) (map[string]any, error) {
						call, _ := strconv.Atoi(id)
						mu.Lock()
						running[call] = true
						second := int(time.Since(began) / time.Second)
						mu.Unlock()
						time.Sleep(time.Second / 2)
						mu.Lock()
						seen[second] = append(seen[second], slices.Sorted(maps.Keys(running)))
						mu.Unlock()
						time.Sleep(time.Second / 2)
						mu.Lock()
						delete(running, call)
						mu.Unlock()
						return nil, nil
					}
				})
				results := must(tool.Run(t.Context(), stepState(), tools, calls))
				require.Len(t, results, len(calls))
				want := map[int][][]int{}
				for second, batch := range c.want {
					for range batch {
						want[second] = append(want[second], batch)
					}
				}
				require.Empty(t, cmp.Diff(want, seen))
				require.Equal(t, time.Duration(len(c.want))*time.Second, time.Since(began))
			})
		})
	}
}

// TestRunReadsOneVersion has the calls of a batch read two fields that are always
// written together.
func TestRunReadsOneVersion(t *testing.T) {
	one, two := &state.Field[int]{Name: "one"}, &state.Field[int]{Name: "two"}
	st := state.New(state.MustSchema(one, two))
	require.NoError(t, st.Patch(map[string]any{"one": 0, "two": 0}))
	type args struct {
		One int `json:"one"`
		Two int `json:"two"`
	}
	compare := tool.Must(tool.New("compare", "", func(_ context.Context, in args) (string, error) {
		return fmt.Sprint(in.One, " ", in.Two), nil
	}, tool.From(one, "one"), tool.From(two, "two")))
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := st.Patch(map[string]any{"one": i, "two": i}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writer.Wait()
	defer stop()
	calls := slices.Repeat([]state.ToolCall{{Name: "compare"}}, 8)
	for range 200 {
		saw := texts(must(tool.Run(t.Context(), st, []*tool.Tool{compare}, calls)))
		one, two, _ := strings.Cut(saw[0], " ")
		require.Equal(t, one, two)
		require.Equal(t, slices.Repeat(saw[:1], len(saw)), saw, "calls of one batch")
	}
}

// TestRunFailsOneCallOnly makes a call that fails between two that succeed, and
// one that waits for it.
func TestRunFailsOneCallOnly(t *testing.T) {
	number := &state.Field[int]{Name: "number", Read: state.Public, Validate: func(n int) error {
		if n < 0 {
			return errors.New("must not be negative")
		}
		return nil
	}}
	unset := &state.Field[int]{Name: "unset", Read: state.Public}
	locked := &state.Field[int]{Name: "locked", Read: state.Public}
	log := &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}
	schema := state.MustSchema(number, unset, locked, log, state.Team{"ann": nil})
	errBroken := errors.New("broken")
	type none struct{}
	type one struct {
		N int `json:"n"`
	}
	failing := func(name string, fn func() (int, error), opts ...tool.Option) *tool.Tool {
		return tool.Must(tool.New(name, "", func(context.Context, none) (int, error) { return fn() }, opts...))
	}
	stateful := func(name string, fn func()) *tool.Tool {
		return tool.Must(tool.NewStateful(name, "", func(context.Context, *state.State, none) (int, error) { fn(); return 1, nil }))
	}
	var called atomic.Bool
	takesOne := func(context.Context, one) (int, error) { called.Store(true); return 1, nil }
	write := tool.Must(tool.New("write", "", func(context.Context, none) ([]string, error) { return []string{"written"}, nil }, tool.To(log, "")))
	read := tool.Must(tool.New("read", "", func(_ context.Context, in struct {
		Log    []string `json:"log"`
		Number int      `json:"number,omitempty"`
		Locked int      `json:"locked,omitempty"`
	}) (int, error) {
		return len(in.Log), nil
	}, tool.From(log, "log"), tool.From(number, "number"), tool.From(locked, "locked")))
	for _, c := range []struct {
		name   string
		tool   *tool.Tool
		call   string // if it is not the tool's name
		input  state.JSON
		agent  string
		text   string // what the model reads of it
		is     error
		asArgs bool // an ArgumentError
	}{
		{name: "the function's error", tool: failing("fail", func() (int, error) { return 1, errBroken }, tool.To(number, "")), text: "broken", is: errBroken},
		{name: "a panic", tool: failing("fail", func() (int, error) { panic("oh no") }, tool.To(number, "")), text: `tool "fail"`},
		{name: "a runtime panic", tool: failing("fail", func() (int, error) { return []int{}[len(locked.Name)], nil }), text: `tool "fail"`},
		{name: "a panic with an error", tool: failing("fail", func() (int, error) { panic(errBroken) }), text: `tool "fail"`},
		{name: "the end of the goroutine", tool: failing("fail", func() (int, error) { runtime.Goexit(); return 1, nil }), text: `tool "fail": the function did not return`},
		{name: "a panic of a stateful tool", tool: stateful("fail", func() { panic("oh no") }), text: `tool "fail"`},
		{name: "the end of a stateful tool's goroutine", tool: stateful("fail", runtime.Goexit), text: `tool "fail": the function did not return`},
		{name: "a panic of a parameter's type", tool: tool.Must(tool.New("fail", "", func(context.Context, struct {
			N explosive `json:"n"`
		}) (int, error) {
			called.Store(true)
			return 1, nil
		})), input: `{"n":"x"}`, text: `tool "fail"`, asArgs: true},
		{name: "an unknown tool", call: "x", text: `tool "x" not found; there are write, read`},
		{name: "a tool without a name", call: "\x00", text: `tool "" not found; there are write, read`},
		{name: "a tool that is there twice", tool: tool.Must(tool.New("write", "", takesOne)), call: "write", text: `there are several tools "write"`},
		{name: "arguments that are not JSON", tool: tool.Must(tool.New("fail", "", takesOne)), input: `{"n":`, text: `fail`, asArgs: true},
		{name: "a bad argument", tool: tool.Must(tool.New("fail", "", takesOne)), input: `{"n":"1"}`, text: `n`, asArgs: true},
		{name: "an argument for an injected parameter", tool: tool.Must(tool.New("fail", "", takesOne, tool.From(number, "n"))), input: `{"n":1}`, text: `n`, asArgs: true},
		{name: "a field that is unset", tool: tool.Must(tool.New("fail", "", takesOne, tool.From(unset, "n"))), text: `unset`, is: state.ErrNotFound},
		{name: "a value that is refused", tool: failing("fail", func() (int, error) { return -1, nil }, tool.To(number, "")), text: `field "number": refused by its handler or validation`},
		{name: "a field that may not be written", tool: failing("fail", func() (int, error) { return 1, nil }, tool.To(locked, "")), agent: "ann", text: `locked`, is: state.ErrDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			called.Store(false)
			st := state.New(schema)
			if c.agent != "" {
				st = st.As(c.agent)
			}
			tools := []*tool.Tool{nil, write, read, c.tool}
			bad := state.ToolCall{ID: "bad", Name: strings.Trim(c.call, "\x00"), Input: c.input}
			if c.call == "" {
				bad.Name = c.tool.Name()
			}
			calls := []state.ToolCall{{ID: "w", Name: "write"}, bad, {ID: "r", Name: "read"}}
			results := must(tool.Run(t.Context(), st, tools, calls))

			require.Len(t, results, 3)
			failed := results[1]
			require.Error(t, failed.Err)
			require.True(t, failed.Message.IsError())
			require.Equal(t, bad.ID, failed.Message.Call().ID)
			require.Equal(t, failed.Err.Error(), failed.Message.Text())
			require.Contains(t, failed.Message.Text(), c.text)
			if c.is != nil {
				require.ErrorIs(t, failed.Err, c.is)
			}
			var args *tool.ArgumentError
			require.Equal(t, c.asArgs, errors.As(failed.Err, &args))
			require.False(t, called.Load(), "the function was called")
			require.NotContains(t, st.KV().Keys(), "number")
			require.NotContains(t, st.KV().Keys(), "locked")
			if bad.Name == "write" {
				require.Empty(t, st.KV().Keys(), "neither of the two may be called")
				return
			}
			for i, want := range map[int]string{0: `["written"]`, 2: "1"} {
				require.NoError(t, results[i].Err)
				require.False(t, results[i].Message.IsError())
				require.Equal(t, want, results[i].Message.Text())
			}
		})
	}
}

func TestRunWithoutToolsOrCalls(t *testing.T) {
	st := stepState()
	for _, tools := range [][]*tool.Tool{nil, {}, {nil}, {{}}} {
		results := must(tool.Run(t.Context(), st, tools, []state.ToolCall{{ID: "1", Name: "x"}, {}}))
		require.Equal(t, []string{`tool "x" not found; there are none`, `tool "" not found; there are none`}, texts(results))
		require.Error(t, results[1].Err)
	}
	require.Empty(t, must(tool.Run(t.Context(), st, []*tool.Tool{stepTool(t, ":a", nil)}, nil)))
	results := must(tool.Run(t.Context(), nil, []*tool.Tool{stepTool(t, ":a", func(context.Context, string, map[string]any) (map[string]any, error) {
		return writes(":a", []string{"x"}), nil
	})}, []state.ToolCall{{Name: ":a"}}))
	require.Error(t, results[0].Err, "a nil state takes nothing")
}

// TestRunEndsWithItsContext ends the context at several moments of a step of
// five calls in two batches: quick returns after a second, heedful when its
// context ends, deaf after an hour, later waits for quick, and x does not exist.
func TestRunEndsWithItsContext(t *testing.T) {
	never := func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	after := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	const (
		notCalled   = `not called: context `
		notFinished = `not finished: context `
	)
	for _, c := range []struct {
		name  string
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		texts [4]string // of quick, heedful, deaf, later: what they hold, "" for a result
		took  time.Duration
		state string
	}{
		{"before", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, [4]string{notCalled, notCalled, notCalled, notCalled}, 0, `{}`},
		{"before any has returned", after(time.Second / 2), [4]string{notFinished, "context", notFinished, notCalled}, time.Second / 2, `{}`},
		{"when one has returned", after(time.Minute), [4]string{"", "context", notFinished, notCalled}, time.Minute, `{"a":["0"]}`},
		{"during the second batch", after(time.Hour + time.Minute), [4]string{"", "", "", notFinished}, time.Hour + time.Minute, `{"a":["0"],"b":["1"],"c":["2"]}`},
		{"never", never, [4]string{}, 3 * time.Hour, `{"a":["0"],"b":["1"],"c":["2"],"d":["4"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var calledLater atomic.Bool
				tools, calls := step(t, ":a :b :c ? a:d", func(notation string) stepFunc {
					return func(ctx context.Context, id string, _ map[string]any) (map[string]any, error) {
						switch notation {
						case ":a":
							time.Sleep(time.Second)
						case ":b":
							select {
							case <-ctx.Done():
								return nil, ctx.Err()
							case <-time.After(time.Hour):
							}
						case ":c":
							time.Sleep(time.Hour)
						case "a:d":
							calledLater.Store(true)
							time.Sleep(2 * time.Hour)
						}
						return writes(notation, []string{id}), nil
					}
				})
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				st := stepState()
				results := must(tool.Run(ctx, st, tools, calls))
				require.Equal(t, c.took, time.Since(began), "Run waits for nobody once its context has ended")

				require.Len(t, results, len(calls))
				for i, call := range []int{0, 1, 2, 4} {
					r := results[call]
					require.Equal(t, calls[call].ID, r.Message.Call().ID)
					if c.texts[i] == "" {
						require.NoError(t, r.Err)
						require.Equal(t, writes(calls[call].Name, []any{calls[call].ID}), decoded(t, r.Message.Content()))
						continue
					}
					require.ErrorIs(t, r.Err, ctx.Err())
					require.True(t, r.Message.IsError())
					require.Contains(t, r.Message.Text(), c.texts[i])
				}
				require.Contains(t, results[3].Message.Text(), "not found")
				require.Equal(t, c.texts[3] != notCalled, calledLater.Load())
				require.Equal(t, c.state, contents(t, st))
				time.Sleep(4 * time.Hour)
				synctest.Wait() // all functions have returned
				require.Equal(t, c.state, contents(t, st), "what comes late is dropped")
			})
		})
	}
}

// lateContext has ended some time before its Done channel is closed.
type lateContext struct {
	context.Context
	cancel context.CancelFunc
}

func (c lateContext) Done() <-chan struct{} {
	time.Sleep(time.Second)
	c.cancel()
	return c.Context.Done()
}

// TestRunKeepsWhatReturnedBeforeTheEnd has all calls return before the context
// ends, and Run see both at once.
func TestRunKeepsWhatReturnedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notation := strings.TrimSpace(strings.Repeat(":a ", 16))
		tools, calls := step(t, notation, func(notation string) stepFunc {
			return func(_ context.Context, id string, _ map[string]any) (map[string]any, error) {
				return writes(notation, []string{id}), nil
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, r := range must(tool.Run(lateContext{ctx, cancel}, stepState(), tools, calls)) {
			require.NoError(t, r.Err)
		}
	})
}

// explosive panics when it is decoded.
type explosive struct{ text string }

func (e *explosive) UnmarshalText([]byte) error  { panic("oh no") }
func (e explosive) MarshalText() ([]byte, error) { return []byte(e.text), nil }

func decoded(t require.TestingT, j state.JSON) map[string]any {
	var v map[string]any
	require.NoError(t, j.Decode(&v))
	return v
}

// mixedFields are sixteen fields that combine their values in several ways.
var mixedFields, mixedSchema = func() ([]string, *state.Schema) {
	var names []string
	var parts []state.Part
	for i := range 16 {
		name := string(rune('a' + i))
		names = append(names, name)
		switch i % 4 {
		case 0:
			parts = append(parts, &state.Field[int]{Name: name})
		case 1:
			parts = append(parts, &state.Field[int]{Name: name, Handler: state.Sum[int]()})
		case 2:
			parts = append(parts, &state.Field[[]int]{Name: name, Handler: state.KeepLast[[]int](5)})
		case 3:
			parts = append(parts, &state.Field[map[string]int]{Name: name, Handler: state.MergeMap[map[string]int]()})
		}
	}
	return names, state.MustSchema(append(parts, state.Limits{Journal: -1})...)
}()

// mixedFunc returns a function whose result depends on its whole input. Some calls
// fail.
func mixedFunc(notation string) stepFunc {
	return func(_ context.Context, id string, fields map[string]any) (map[string]any, error) {
		runtime.Gosched()
		data, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		h := fnv.New32a()
		fmt.Fprint(h, notation, id, string(data))
		n := int(h.Sum32() % 1000)
		switch {
		case n < 20:
			return nil, fmt.Errorf("call %s fails", id)
		case n < 40:
			panic("oh no")
		}
		out := map[string]any{}
		_, to, _ := strings.Cut(notation, ":")
		for _, name := range strings.Split(to, "") {
			switch (name[0] - 'a') % 4 {
			case 0, 1:
				out[name] = n
			case 2:
				out[name] = []int{n}
			case 3:
				out[name] = map[string]int{strconv.Itoa(n % 7): n}
			}
		}
		return out, nil
	}
}

// mixedStateful reads all fields and writes one, through the state.
func mixedStateful(t require.TestingT) *tool.Tool {
	made, err := tool.NewStateful("-", "", func(ctx context.Context, st *state.State, args struct {
		ID string `json:"id"`
	}) (map[string]any, error) {
		field := mixedFields[len(args.ID)%len(mixedFields)]
		out, err := mixedFunc(":"+field)(ctx, args.ID, st.KV().All())
		if err != nil {
			return nil, err
		}
		return out, st.KV().Set(field, out[field])
	})
	require.NoError(t, err)
	return made
}

// TestRunEqualsCallsOneByOne compares steps of 64 calls over 16 fields with the
// same calls made one after the other, batch by batch.
func TestRunEqualsCallsOneByOne(t *testing.T) {
	const steps = 3 // of each of the checks
	property.Check(t, func(t *rapid.T) {
		tools := []*tool.Tool{mixedStateful(t)}
		names := []string{"-", "?"}
		kinds := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			return letters(drawFewOf16(t, "reads")) + ":" + letters(drawFewOf16(t, "writes"))
		}), 8, 24, rapid.ID[string]).Draw(t, "tools")
		for range 5 { // so that few calls are barriers or of no tool
			names = append(names, kinds...)
		}
		for _, kind := range kinds {
			tools = append(tools, stepTool(t, kind, mixedFunc(kind)))
		}
		together, oneByOne := state.New(mixedSchema), state.New(mixedSchema)
		for s := range steps {
			picked := rapid.SliceOfN(rapid.SampledFrom(names), 64, 64).Draw(t, "calls")
			calls := make([]state.ToolCall, len(picked))
			for i, name := range picked {
				id := fmt.Sprintf("%d/%d", s, i)
				calls[i] = state.ToolCall{ID: id, Name: name, Input: state.JSON(fmt.Sprintf(`{"id":%q}`, id))}
			}
			want := make([]string, len(calls))
			for _, batch := range tool.Plan(tools, calls) {
				for _, i := range batch {
					at := slices.IndexFunc(tools, func(t *tool.Tool) bool { return t.Name() == calls[i].Name })
					out, err := tools[at].Call(t.Context(), oneByOne.WithCause(calls[i].ID), calls[i].Input)
					if want[i] = string(out); err != nil {
						want[i] = err.Error()
					}
				}
			}
			for i, r := range must(tool.Run(t.Context(), together, tools, calls)) {
				if picked[i] != "?" {
					require.Equal(t, want[i], r.Message.Text(), "call %d of %v", i, picked)
				}
			}
			require.Equal(t, contents(t, oneByOne), contents(t, together), "after %v", picked)
		}
		require.Equal(t, causes(t, oneByOne), causes(t, together))
		require.Equal(t, oneByOne.Version(), together.Version())
	})
}

// drawFewOf16 draws a set of at most two of sixteen fields.
func drawFewOf16(t *rapid.T, label string) uint16 {
	n := rapid.IntRange(0, 16*16-1).Draw(t, label)
	if n%3 == 0 {
		return 0
	}
	return 1<<(n/16) | 1<<(n%16)
}
