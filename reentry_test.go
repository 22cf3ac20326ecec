package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove that no code of users runs under a lock: every
// method of a value, and every function that a user gives, calls the State that
// is at work on it, and returns.

// reentry is what the code of users does in these tests.
type reentry struct {
	mu     sync.Mutex
	states []*state.State // that are called
	writes int            // left in this operation: each may overtake what called it
	called map[string]int // by the name of the method or function
	nested atomic.Int32   // a read of a value would call its methods again
}

// reenters is the present test's. Methods of values have no other way to it.
var reenters atomic.Pointer[reentry]

// reenter is called by all code of users.
func reenter(from string) {
	r := reenters.Load()
	if r == nil {
		return
	}
	if r.nested.Add(1) > 1 {
		r.nested.Add(-1)
		return
	}
	defer r.nested.Add(-1)
	r.mu.Lock()
	r.called[from]++
	states, write := r.states, r.writes > 0
	r.writes--
	r.mu.Unlock()
	for _, st := range states {
		st.Version()
		st.KV().Len()
		_, _ = st.KV().Get("other")
		_, _ = st.KV().Get("x")
		st.Snapshot().KV().Keys()
		_ = st.Fork().KV().Set("other", 1)
		if write {
			_ = st.KV().Set("other", from)
		}
	}
}

// reentryJSON codes itself as JSON, and has every other method that a library
// might call.
type reentryJSON struct{ s string }

func (v reentryJSON) MarshalJSON() ([]byte, error) {
	reenter("MarshalJSON")
	return json.Marshal(v.s)
}

func (v *reentryJSON) UnmarshalJSON(data []byte) error {
	reenter("UnmarshalJSON")
	return json.Unmarshal(data, &v.s)
}

func (v reentryJSON) String() string               { reenter("String"); return v.s }
func (v reentryJSON) GoString() string             { reenter("GoString"); return v.s }
func (v reentryJSON) Format(f fmt.State, _ rune)   { reenter("Format"); fmt.Fprint(f, v.s) }
func (v reentryJSON) Error() string                { reenter("Error"); return v.s }
func (v reentryJSON) Equal(other reentryJSON) bool { reenter("Equal"); return v == other }
func (v reentryJSON) IsZero() bool                 { reenter("IsZero"); return v.s == "" }

// reentryText codes itself as text.
type reentryText struct{ s string }

func (v reentryText) MarshalText() ([]byte, error) { reenter("MarshalText"); return []byte(v.s), nil }
func (v *reentryText) UnmarshalText(data []byte) error {
	reenter("UnmarshalText")
	v.s = string(data)
	return nil
}

// reentryClone has a pointer, and copies itself.
type reentryClone struct{ s *string }

func (v reentryClone) MarshalText() ([]byte, error) {
	reenter("MarshalText")
	return []byte(*v.s), nil
}

func (v *reentryClone) UnmarshalText(data []byte) error {
	reenter("UnmarshalText")
	s := string(data)
	v.s = &s
	return nil
}

func (v *reentryClone) Clone() *reentryClone {
	reenter("Clone")
	s := *v.s
	return &reentryClone{&s}
}

type reentryParts struct {
	JSON  reentryJSON          `json:"json,omitzero"`
	Text  *reentryText         `json:"text"`
	Clone []reentryClone       `json:"clone"`
	Any   any                  `json:"any"`
	Map   map[reentryText]bool `json:"map"`
}

// reentryAny is dynamic, but no type of it has methods.
type reentryAny struct {
	Any any `json:"any"`
}

// reentryTree contains itself, and methods behind that.
type reentryTree struct {
	Kids []reentryTree `json:"kids"`
	JSON reentryJSON   `json:"json"`
}

func reentryCloneOf(s string) reentryClone { return reentryClone{&s} }

func reentryPartsOf(s string) reentryParts {
	return reentryParts{
		JSON: reentryJSON{s}, Text: &reentryText{s}, Clone: []reentryClone{reentryCloneOf(s)},
		Any: []any{reentryJSON{s}}, Map: map[reentryText]bool{{s}: true},
	}
}

// reentryShape is one type of field with all operations on it.
type reentryShape struct {
	name  string
	setup func() (*state.State, []reentryOperation)
}

type reentryOperation struct {
	name string
	run  func(st *state.State) error
}

// reentryShapeOf returns the shape of a type. The handlers are tried besides
// those that every type has.
func reentryShapeOf[T any](name string, make func(s string) T, handlers ...state.Handler[T]) reentryShape {
	handlers = append(handlers, state.Handler[T]{}, state.Replace[T](), state.FirstWins[T](), state.LastWins[T](),
		state.NewHandler("own", func(_ T, _ bool, update T) (T, error) { reenter("handler"); return update, nil }))
	return reentryShape{name, func() (*state.State, []reentryOperation) {
		plain := &state.Field[T]{Name: "x"}
		shared := &state.Field[T]{Name: "shared", NoCopy: true}
		secret := &state.Field[T]{Name: "secret", Secret: true}
		valid := &state.Field[T]{Name: "valid", Validate: func(T) error { reenter("Validate"); return nil }}
		fields := []*state.Field[T]{plain, shared, secret, valid}
		parts := []state.Part{plain, shared, secret, valid, &state.Field[any]{Name: "other"}, state.AllowUndeclared}
		for i, h := range handlers {
			f := &state.Field[T]{Name: fmt.Sprintf("handler %d:%s", i, h.Name()), Handler: h}
			noCopy := &state.Field[T]{Name: f.Name + " shared", Handler: h, NoCopy: true}
			fields = append(fields, f, noCopy)
			parts = append(parts, f, noCopy)
		}
		st := state.New(state.MustSchema(parts...))
		n := 0
		value := func() T { n++; return make(fmt.Sprint(n % 3)) }

		var ops []reentryOperation
		add := func(name string, run func(*state.State) error) {
			ops = append(ops, reentryOperation{name, run})
		}
		for _, f := range fields {
			add("Set "+f.Name, func(st *state.State) error { return f.Set(st, value()) })
			add("Replace "+f.Name, func(st *state.State) error { return f.Replace(st, value()) })
			add("Update "+f.Name, func(st *state.State) error {
				return f.Update(st, func(T) (T, error) { reenter("Update"); return value(), nil })
			})
			add("KV.Set "+f.Name, func(st *state.State) error { return st.KV().Set(f.Name, value()) })
			add("Get "+f.Name, func(st *state.State) error { f.Or(st, value()); st.KV().Get(f.Name); return nil })
			add("Delete "+f.Name, func(st *state.State) error { _, err := f.Delete(st); return err })
			add("a transaction "+f.Name, func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					f.Or(tx, value())
					reenter("transaction")
					return f.Set(tx, value())
				})
			})
			add("a join "+f.Name, func(st *state.State) error {
				a, b := st.Fork(), st.Fork()
				err := errors.Join(f.Set(a, value()), f.Set(b, value()), f.Set(st, value()))
				var conflict *state.ConflictError
				if joined := st.Join(a, b); !errors.As(joined, &conflict) {
					err = errors.Join(err, joined)
				}
				return err
			})
		}
		for _, h := range handlers {
			add("SetWith "+h.Name(), func(st *state.State) error { return plain.SetWith(st, value(), h) })
			add("SetWith shared "+h.Name(), func(st *state.State) error { return shared.SetWith(st, value(), h) })
			add("KV.SetWith undeclared "+h.Name(), func(st *state.State) error {
				return st.KV().SetWith("key:"+h.Name(), value(), h)
			})
		}
		add("KV.Set undeclared", func(st *state.State) error { return st.KV().Set("key", value()) })
		add("Get undeclared as T", func(st *state.State) error { _, _ = state.GetAs[T](st, "key"); return nil })
		add("Patch", func(st *state.State) error {
			return st.Patch(map[string]any{"x": value(), "shared": value(), "valid": value(), "key": value()})
		})
		add("Revert", func(st *state.State) error {
			past := st.Snapshot()
			if err := st.Patch(map[string]any{"x": value(), "shared": value(), "key": value()}); err != nil {
				return err
			}
			return st.Revert(past)
		})
		add("Effects", func(st *state.State) error {
			past := st.Snapshot()
			if err := plain.Set(st, value()); err != nil {
				return err
			}
			_, err := st.Effects(past)
			return err
		})
		add("At", func(st *state.State) error {
			past, err := st.At(st.Version())
			if err == nil {
				past.KV().All()
			}
			return err
		})
		add("Export and Import", func(st *state.State) error { _, err := st.Export(); return err })
		add("rendered", func(st *state.State) error {
			_ = fmt.Sprintf("%+v %v %s", st, st, st.Describe()) + st.Redact("text")
			_, err := st.MarshalJSON()
			st.KV().All()
			return err
		})
		add("Changes", func(st *state.State) error {
			for range st.Changes(0) {
				reenter("Changes")
			}
			return nil
		})
		add("Watch", func(st *state.State) error {
			if err := plain.Set(st, value()); err != nil {
				return err
			}
			for _, err := range st.Watch(context.Background(), st.Version()-1) {
				reenter("Watch")
				return err
			}
			return nil
		})
		return st, ops
	}}
}

func reentryShapes() []reentryShape {
	parts, text := reentryPartsOf, func(s string) reentryText { return reentryText{s} }
	value := func(s string) reentryJSON { return reentryJSON{s} }
	own := state.MergeByID[[]reentryParts](func(v reentryParts) string { reenter("key"); return v.JSON.s })
	id := state.MergeByID[[]reentryParts](func(v reentryParts) string { reenter("id"); return v.JSON.s })
	return []reentryShape{
		reentryShapeOf("JSON", value),
		reentryShapeOf("text", text),
		reentryShapeOf("clone", reentryCloneOf),
		reentryShapeOf("a pointer", func(s string) *reentryJSON { return &reentryJSON{s} }),
		reentryShapeOf("parts", parts),
		reentryShapeOf("an array", func(s string) [2]reentryText { return [2]reentryText{{s}, {s}} }),
		reentryShapeOf("a list of JSON", func(s string) []reentryJSON { return []reentryJSON{{s}} },
			state.Append[[]reentryJSON](), state.KeepLast[[]reentryJSON](1), state.Union[[]reentryJSON]()),
		reentryShapeOf("a list of parts", func(s string) []reentryParts { return []reentryParts{parts(s)} },
			state.Append[[]reentryParts](), state.KeepLast[[]reentryParts](1), state.Union[[]reentryParts](), own, id),
		reentryShapeOf("a list of pointers", func(s string) []*reentryClone { v := reentryCloneOf(s); return []*reentryClone{&v} },
			state.Append[[]*reentryClone](), state.KeepLast[[]*reentryClone](1)),
		reentryShapeOf("a map", func(s string) map[string]reentryJSON { return map[string]reentryJSON{"a": {s}} },
			state.MergeMap[map[string]reentryJSON]()),
		reentryShapeOf("a map with keys of text", func(s string) map[reentryText]string { return map[reentryText]string{{s}: s} },
			state.MergeMap[map[reentryText]string]()),
		reentryShapeOf("any", func(s string) any { return value(s) }),
		reentryShapeOf("a list in any", func(s string) any { return []any{value(s), map[string]any{"a": text(s)}} }),
		reentryShapeOf("a list of any", func(s string) []any { return []any{value(s), parts(s)} },
			state.Append[[]any](), state.KeepLast[[]any](1), state.Union[[]any]()),
		reentryShapeOf("a map of any", func(s string) map[string]any { return map[string]any{"a": value(s)} },
			state.MergeMap[map[string]any]()),
		reentryShapeOf("a list of maps of any", func(s string) []map[string]any { return []map[string]any{{"a": []any{value(s)}}} },
			state.Append[[]map[string]any](), state.KeepLast[[]map[string]any](1), state.Union[[]map[string]any]()),
		reentryShapeOf("a list of structs of any", func(s string) []reentryAny { return []reentryAny{{value(s)}} },
			state.Append[[]reentryAny](), state.KeepLast[[]reentryAny](1), state.Union[[]reentryAny]()),
		reentryShapeOf("a tree", func(s string) reentryTree { return reentryTree{[]reentryTree{{JSON: reentryJSON{s}}}, reentryJSON{s}} }),
		reentryShapeOf("a list of trees", func(s string) []reentryTree {
			return []reentryTree{{[]reentryTree{{JSON: reentryJSON{s}}}, reentryJSON{s}}}
		},
			state.Append[[]reentryTree](), state.KeepLast[[]reentryTree](1), state.Union[[]reentryTree]()),
		reentryShapeOf("a list of lists of any", func(s string) [][]any { return [][]any{{value(s)}} },
			state.Append[[][]any](), state.KeepLast[[][]any](1)),
		reentryShapeOf("an array of any", func(s string) [2]any { return [2]any{value(s), text(s)} }),
		reentryShapeOf("a list of pointers to JSON", func(s string) []*reentryJSON { return []*reentryJSON{{s}} },
			state.Append[[]*reentryJSON](), state.KeepLast[[]*reentryJSON](1)),
	}
}

// reentryWait is the time after which a call that does nothing slow is taken
// for a deadlock.
const reentryWait = 30 * time.Second

// reentryReturns fails the test if fn does not return.
func reentryReturns(t testing.TB, what func() string, fn func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		require.NoError(t, err, "%s", what())
	case <-time.After(reentryWait):
		stacks := make([]byte, 1<<16)
		t.Fatalf("%s does not return\n%s", what(), stacks[:runtime.Stack(stacks, true)])
	}
}

// reentryBegin lets code of users call states until the test ends.
func reentryBegin(t testing.TB) *reentry {
	r := &reentry{called: map[string]int{}}
	reenters.Store(r)
	t.Cleanup(func() { reenters.Store(nil) })
	return r
}

// next begins an operation in which code of users calls the given states.
func (r *reentry) next(states ...*state.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states, r.writes = states, 3
}

func TestCodeOfUsersMayCallTheState(t *testing.T) {
	r := reentryBegin(t)
	for _, shape := range reentryShapes() {
		t.Run(shape.name, func(t *testing.T) {
			st, ops := shape.setup()
			for range 2 { // the first time most fields are unset
				for _, op := range ops {
					reentryReturns(t, func() string { return op.name }, func() error {
						r.next(st)
						return op.run(st)
					})
				}
			}
		})
	}
	for _, name := range []string{
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "Clone", "IsZero", "handler", "key", "id", "Validate",
		"Update", "transaction", "Changes", "Watch",
	} {
		require.NotZero(t, r.called[name], "%s was called", name)
	}
	for _, name := range []string{"String", "GoString", "Format", "Error", "Equal"} {
		require.Zero(t, r.called[name], "%s is never called", name)
	}
}

// Programs of random operations, on a state and on forks of it.
func TestCodeOfUsersMayCallTheStateInRandomPrograms(t *testing.T) {
	seed := effort.LogSeed(t)
	r := reentryBegin(t)
	shapes := reentryShapes()
	for n := range effort.Runs(500) {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		shape := shapes[rnd.IntN(len(shapes))]
		st, ops := shape.setup()
		var program []string
		what := func() string { return fmt.Sprintf("program %d: %s: %s", n, shape.name, strings.Join(program, ", ")) }
		reentryReturns(t, what, func() error {
			branches := []*state.State{st}
			for range 1 + rnd.IntN(12) {
				branch := branches[rnd.IntN(len(branches))]
				if rnd.IntN(6) == 0 {
					program = append(program, "Fork")
					branches = append(branches, branch.Fork())
					continue
				}
				op := ops[rnd.IntN(len(ops))]
				program = append(program, op.name)
				r.next(st, branch)
				if err := op.run(branch); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// reentryBlock is a value that takes a long time to code.
type reentryBlock struct{ begun, end chan struct{} }

func (v reentryBlock) MarshalJSON() ([]byte, error) {
	select {
	case v.begun <- struct{}{}:
	default:
	}
	<-v.end
	return []byte("1"), nil
}

func TestASlowMethodBlocksNoOtherWriter(t *testing.T) {
	list := &state.Field[[]any]{Name: "list"}
	shared := &state.Field[[]any]{Name: "shared", NoCopy: true, Handler: state.KeepLast[[]any](1)}
	maps := &state.Field[[]map[string]any]{Name: "maps"}
	other := &state.Field[int]{Name: "other"}
	for name, write := range map[string]func(*state.State, any) error{
		"Set":       func(st *state.State, v any) error { return list.Set(st, []any{v}) },
		"Replace":   func(st *state.State, v any) error { return list.Replace(st, []any{v}) },
		"KeepLast":  func(st *state.State, v any) error { return shared.Set(st, []any{v}) },
		"maps":      func(st *state.State, v any) error { return maps.Set(st, []map[string]any{{"a": v}}) },
		"KV.Set":    func(st *state.State, v any) error { return st.KV().Set("list", []any{v}) },
		"Patch":     func(st *state.State, v any) error { return st.Patch(map[string]any{"list": []any{v}}) },
		"FirstWins": func(st *state.State, v any) error { return st.KV().SetWith("key", v, state.FirstWins[any]()) },
	} {
		st := state.New(state.MustSchema(list, shared, maps, other, state.AllowUndeclared))
		require.NoError(t, list.Set(st, []any{1}))
		require.NoError(t, shared.Set(st, []any{1}))
		v := reentryBlock{make(chan struct{}, 1), make(chan struct{})}
		written := make(chan error, 1)
		go func() { written <- write(st, v) }()
		<-v.begun
		reentryReturns(t, func() string { return name }, func() error { return other.Set(st, 1) })
		close(v.end)
		require.NoError(t, <-written, name)
	}
}
