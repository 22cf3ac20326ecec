package state_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

// The tests of this file prove that code of users may call runtime.Goexit, as
// t.FailNow does, wherever the State calls it: what the goroutine was about to
// do is not done, and everybody else can go on.

// exitPlace is where code of users ends its goroutine at present.
var exitPlace atomic.Pointer[string]

// exitHere is called by the code of users of these tests.
func exitHere(place string) {
	if p := exitPlace.Load(); p != nil && *p == place {
		runtime.Goexit()
	}
}

// exitAt lets code of users end its goroutine at a place, until it is called
// with "".
func exitAt(place string) { exitPlace.Store(&place) }

type exitJSON struct{ N int }

func (v exitJSON) MarshalJSON() ([]byte, error) {
	exitHere("MarshalJSON")
	return json.Marshal(v.N)
}

func (v *exitJSON) UnmarshalJSON(data []byte) error {
	exitHere("UnmarshalJSON")
	return json.Unmarshal(data, &v.N)
}

// exitLog is a writer, a handler of package slog, and a value that is logged.
type exitLog struct{ slog.Handler }

func (exitLog) Write(p []byte) (int, error)                { exitHere("Write"); return len(p), nil }
func (exitLog) Enabled(context.Context, slog.Level) bool   { exitHere("Enabled"); return true }
func (exitLog) Handle(context.Context, slog.Record) error  { exitHere("Handle"); return nil }
func (l exitLog) WithAttrs(attrs []slog.Attr) slog.Handler { exitHere("WithAttrs"); return l }
func (exitLog) LogValue() slog.Value                       { exitHere("LogValue"); return slog.IntValue(1) }

// exitFields are the fields that the rows of the test use.
type exitFields struct {
	sum, valid, convert, other *state.Field[int]
	list                       *state.Field[[]int]
	value                      *state.Field[exitJSON]
	any                        *state.Field[any]
	secret                     *state.Field[string]
	messages                   *state.Field[[]state.Message]
}

func exitSchema() (*exitFields, *state.Schema) {
	f := &exitFields{
		sum: &state.Field[int]{Name: "sum", Handler: state.NewHandler("add", func(current int, _ bool, update int) (int, error) {
			exitHere("handler")
			return current + update, nil
		})},
		valid:   &state.Field[int]{Name: "valid", Handler: state.Sum[int](), Validate: func(int) error { exitHere("Validate"); return nil }},
		convert: &state.Field[int]{Name: "convert", Convert: func(state.JSON) (int, error) { exitHere("Convert"); return 1, nil }},
		other:   &state.Field[int]{Name: "other"},
		list:    &state.Field[[]int]{Name: "list", Handler: state.MergeByID[[]int](func(n int) string { exitHere("key"); return strconv.Itoa(n) })},
		value:   &state.Field[exitJSON]{Name: "value"},
		any:     &state.Field[any]{Name: "any"},
		secret:  &state.Field[string]{Name: "secret", Secret: true},
		messages: &state.Field[[]state.Message]{Name: "messages", Read: state.Public, Write: state.Public, Validate: func([]state.Message) error {
			exitHere("Validate of messages")
			return nil
		}},
	}
	return f, state.MustSchema(f.sum, f.valid, f.convert, f.other, f.list, f.value, f.any, f.secret, f.messages, state.AllowUndeclared)
}

// add writes n to what merges: in the state itself, and in each of its branches.
func (f *exitFields) add(t testing.TB, st *state.State, n int) {
	t.Helper()
	require.NoError(t, f.sum.Set(st, n))
	require.NoError(t, f.valid.Set(st, n))
	require.NoError(t, f.list.Set(st, []int{n}))
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("said")}}))
}

// ended runs fn in a goroutine of its own, and reports whether fn returned.
func ended(t testing.TB, what string, fn func()) (returned bool) {
	reentryReturns(t, func() string { return what }, func() error {
		var wg sync.WaitGroup
		wg.Go(func() {
			fn()
			returned = true
		})
		wg.Wait()
		return nil
	})
	return returned
}

func TestCodeOfUsersMayEndItsGoroutine(t *testing.T) {
	call := state.ToolCall{ID: "open", Name: "exit", Input: "{}"}
	answer := state.ToolResult(call, `1`)
	exit := tool.Must(tool.New("exit", "", func(context.Context, struct{}) (int, error) { exitHere("tool"); return 1, nil }))
	router := route.Must(route.New(route.When(route.Func("exit", func(*state.State) bool { exitHere("route"); return true }), "next")))
	for _, tt := range []struct {
		place string
		name  string
		// do is given the state, two branches of it that it may join, and
		// what Export has returned.
		do func(f *exitFields, st, a, b *state.State, exported []byte)
		// returns is whether do returns: the code runs in another goroutine.
		returns bool
	}{
		{place: "handler", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.sum.Set(st, 1) }},
		{place: "handler", name: "KV.SetWith of an undeclared name", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.KV().SetWith("key", 1, f.sum.Handler)
		}},
		{place: "handler", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "handler", name: "Join in a transaction", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				a, b := tx.Fork(), tx.Fork()
				exitAt("")
				_, _ = f.sum.Set(a, 1), f.sum.Set(b, 1)
				exitAt("handler")
				return tx.Join(a, b)
			})
		}},
		{place: "handler", name: "the commit of a transaction", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				exitAt("")
				_, _ = f.sum.Set(tx, 1), f.sum.Set(st, 0)
				exitAt("handler")
				return nil
			})
		}},
		{place: "key", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "Validate", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.valid.Set(st, 1) }},
		{place: "Validate", name: "Patch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Patch(map[string]any{"other": 1, "sum": 1, "valid": 1, "value": 1})
		}},
		{place: "Validate", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "Validate of messages", name: "History.Append", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("x")}})
		}},
		{place: "Validate of messages", name: "History.Answer", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _ = st.History().Answer(answer) }},
		{place: "function", name: "Update", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				_ = f.other.Set(tx, 1)
				exitHere("function")
				return nil
			})
		}},
		{place: "function", name: "Field.Update", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = f.sum.Update(st, func(n int) (int, error) { exitHere("function"); return n + 1, nil })
		}},
		{place: "body", name: "Watch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			for range st.Watch(context.Background(), 0) {
				exitHere("body")
			}
		}},
		{place: "Convert", name: "Import", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			former := state.New(state.MustSchema(&state.Field[string]{Name: "convert"}))
			_ = former.KV().Set("convert", "former")
			data, _ := former.Export()
			_, _ = state.Import(state.MustSchema(f.convert), data)
		}},
		{place: "MarshalJSON", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.value.Set(st, exitJSON{2}) }},
		{place: "MarshalJSON", name: "Patch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Patch(map[string]any{"other": 1, "value": exitJSON{2}, "valid": 1})
		}},
		{place: "MarshalJSON", name: "Export", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _, _ = st.Export() }},
		{place: "UnmarshalJSON", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.value.Set(st, exitJSON{2}) }},
		{place: "UnmarshalJSON", name: "Import", do: func(_ *exitFields, st, _, _ *state.State, exported []byte) {
			_, schema := exitSchema()
			_, _ = state.Import(schema, exported)
		}},
		{place: "tool", name: "Call", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _, _ = exit.Call(context.Background(), st, "{}") }},
		{place: "tool", name: "Run", returns: true, do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			must(tool.Run(context.Background(), st, []*tool.Tool{exit}, []state.ToolCall{call, call}))
		}},
		{place: "route", name: "Next", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { router.Next(st) }},
		{place: "Write", name: "Redactor.Writer", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_, _ = io.WriteString(st.Redactor().Writer(exitLog{}), "some text that is passed on at once, hidden-secret.")
		}},
		{place: "Handle", name: "RedactHandler", do: logExit},
		{place: "LogValue", name: "RedactHandler", do: logExit},
	} {
		t.Run(tt.place+" in "+tt.name, func(t *testing.T) {
			t.Cleanup(func() { exitAt("") })
			f, schema := exitSchema()
			st := state.New(schema)
			require.NoError(t, st.Patch(map[string]any{"value": 1, "any": 1, "other": 1, "key": 1, "secret": "hidden-secret"}))
			require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}))
			a, b := st.Fork(), st.Fork()
			for i, s := range []*state.State{st, a, b} {
				f.add(t, s, i+1)
			}
			exported, err := st.Export()
			require.NoError(t, err)

			exitAt(tt.place)
			require.Equal(t, tt.returns, ended(t, tt.name, func() { tt.do(f, st, a, b, exported) }))
			exitAt("")

			require.True(t, ended(t, "what follows", func() {
				after, err := st.Export()
				require.NoError(t, err)
				require.JSONEq(t, withoutVersion(t, exported), withoutVersion(t, after), "nothing was written")
				past := st.Snapshot()
				require.NoError(t, st.Join(a, b))
				require.Equal(t, 6, f.sum.Or(st, 0))
				require.Equal(t, 6, f.valid.Or(st, 0))
				require.Equal(t, []int{1, 2, 3}, f.list.Or(st, nil))
				require.ErrorIs(t, st.Join(a), state.ErrReadOnly)
				for _, info := range st.Fields() {
					v, ok := st.KV().Get(info.Name)
					if !ok {
						require.Equal(t, "convert", info.Name)
						v = 1
					}
					require.NoError(t, st.KV().Replace(info.Name, v), info.Name)
					require.NoError(t, st.Patch(map[string]any{info.Name: v}), info.Name)
				}
				require.NoError(t, st.Update(func(tx *state.State) error {
					f.add(t, tx, 4)
					return f.other.Update(tx, func(n int) (int, error) { return n + 1, nil })
				}))
				require.Equal(t, 10, f.sum.Or(st, 0))
				require.NoError(t, st.History().Answer(answer))
				_, err = st.Effects(past)
				require.NoError(t, err)
				require.NoError(t, st.Revert(past))
				require.Equal(t, 1, f.sum.Or(st, 0))
				_, err = state.Import(schema, after)
				require.NoError(t, err)
			}))
		})
	}
}

func logExit(_ *exitFields, st, _, _ *state.State, _ []byte) {
	log := slog.New(state.RedactHandler(exitLog{}, st))
	log.With("a", "b").Info("text", "value", exitLog{}, "secret", "hidden-secret")
}

// withoutVersion returns an export without its number of versions.
func withoutVersion(t testing.TB, exported []byte) string {
	var members map[string]any
	require.NoError(t, json.Unmarshal(exported, &members))
	delete(members, "version")
	data, err := json.Marshal(members)
	require.NoError(t, err)
	return string(data)
}

// A writer that waits for its turn gets it when the goroutine of the holder
// ends, long before it would give up.
func TestTheEndOfAGoroutineGivesItsTurnAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, leave := make(chan struct{}), make(chan struct{})
		f := &state.Field[int]{Name: "x", Validate: func(n int) error {
			if n == 1 {
				close(begun)
				<-leave
				runtime.Goexit()
			}
			return nil
		}}
		st := state.New(state.MustSchema(f))
		go func() { _ = f.Set(st, 1) }()
		<-begun
		written := make(chan error, 3)
		go func() { written <- f.Set(st, 2) }()
		go func() { written <- st.Patch(map[string]any{"x": 2}) }()
		go func() { written <- f.Update(st, func(int) (int, error) { return 2, nil }) }()
		synctest.Wait()
		require.Empty(t, written)
		close(leave)
		synctest.Wait()
		require.Len(t, written, 3)
		for range 3 {
			require.NoError(t, <-written)
		}
		require.EqualValues(t, 3, st.Version())
	})
}
