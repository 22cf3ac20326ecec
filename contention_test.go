package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
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
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

// The tests of this file prove that a write whose own code overtakes it fails
// soon with an error that names the fields it writes, and that a write which
// others overtake succeeds however slow it is. They run in bubbles, where
// waiting takes no time but is counted.

var (
	ownCount  = &state.Field[int]{Name: "count"}
	ownOther  = &state.Field[int]{Name: "other"}
	ownLog    = &state.Field[[]string]{Name: "log"}
	ownSchema = state.MustSchema(ownCount, ownOther, ownLog, state.AllowUndeclared)
)

func ownInc(n int) (int, error) { return n + 1, nil }

func TestAWriteThroughTheOuterHandleIsFoundWithinASecond(t *testing.T) {
	n := 0
	for _, tt := range []struct {
		name   string
		inside func(st, tx *state.State) error // also reads through tx what it writes through st
		fields []string
	}{
		{"set", func(st, tx *state.State) error { ownLog.Or(tx, nil); return ownLog.Set(st, []string{"x"}) }, []string{"log"}},
		{"update", func(st, tx *state.State) error { ownCount.Or(tx, 0); return ownCount.Update(st, ownInc) }, []string{"count"}},
		{"overwritten on both sides", func(st, tx *state.State) error {
			return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
		}, []string{"count"}},
		{"by name", func(st, tx *state.State) error { tx.KV().Has("k"); return st.KV().Set("k", 1) }, []string{"k"}},
		{"delete", func(st, tx *state.State) error {
			tx.KV().Has("k")
			_, err := st.KV().Delete("k")
			return errors.Join(st.KV().Set("k", 1), err)
		}, []string{"k"}},
		{"patch", func(st, tx *state.State) error {
			ownCount.Or(tx, 0)
			ownLog.Or(tx, nil)
			n++
			return st.Patch(map[string]any{"count": n, "log": []string{}})
		}, []string{"count", "log"}},
		{"another transaction", func(st, tx *state.State) error {
			ownCount.Or(tx, 0)
			return st.Update(func(tx *state.State) error { return ownCount.Set(tx, ownCount.Or(tx, 0)+1) })
		}, []string{"count"}},
		{"join", func(st, tx *state.State) error {
			ownLog.Or(tx, nil)
			f := st.Fork()
			return errors.Join(ownLog.Set(f, []string{"x"}), st.Join(f))
		}, []string{"log"}},
		{"results", func(st, tx *state.State) error {
			tx.History().Len()
			return st.History().Append(state.InferenceResult{})
		}, []string{"history"}},
		{"from a goroutine that it waits for", func(st, tx *state.State) error {
			ownCount.Or(tx, 0)
			done := make(chan error)
			go func() { done <- ownCount.Update(st, ownInc) }()
			return <-done
		}, []string{"count"}},
		{"in a nested transaction", func(st, tx *state.State) error {
			return tx.Update(func(inner *state.State) error {
				ownCount.Or(inner, 0)
				return errors.Join(ownOther.Set(inner, 2), ownCount.Update(st, ownInc))
			})
		}, []string{"count"}},
		{"keys that it has listed", func(st, tx *state.State) error {
			n++
			tx.KV().Len()
			return st.KV().Set(fmt.Sprint("key ", n%2), 1+len(st.KV().Keys()))
		}, nil},
		{"the version", func(st, tx *state.State) error { tx.Version(); return ownLog.Set(st, []string{"x"}) }, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := state.New(ownSchema)
				start := time.Now()
				err := st.Update(func(tx *state.State) error {
					return errors.Join(ownOther.Set(tx, 1), tt.inside(st, tx))
				})
				if tt.fields == nil { // it wrote a new key twice and then was right
					require.NoError(t, err)
					return
				}
				require.LessOrEqual(t, time.Since(start), time.Second)
				var conflict *state.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.Equal(t, tt.fields, conflict.Fields)
				require.ErrorContains(t, err, "another handle than tx")
				require.Less(t, st.Version(), uint64(40), "few writes")
				require.False(t, ownOther.Has(st))
			})
		})
	}
}

// Others wait only in proportion to how long the function takes by itself.
func TestASlowWriteThroughTheOuterHandleIsFoundAfterAFewRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 300 * time.Millisecond
		st := state.New(ownSchema)
		start := time.Now()
		require.ErrorIs(t, st.Update(func(tx *state.State) error {
			time.Sleep(took)
			return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
		}), state.ErrConflict)
		require.LessOrEqual(t, time.Since(start), 8*took)
	})
}

// A write that waits for one that goes first goes on when that is done.
func TestAWriteWaitsNoLongerThanAnotherOneTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Millisecond
		st := state.New(ownSchema)
		runs := 0
		waited := make(chan time.Duration, 1)
		require.NoError(t, st.Update(func(tx *state.State) error {
			if runs++; runs <= 8 {
				return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
			}
			go func() {
				start := time.Now()
				require.NoError(t, ownCount.Set(st, 3))
				waited <- time.Since(start)
			}()
			time.Sleep(took)
			return ownCount.Set(tx, 1)
		}))
		require.Equal(t, 9, runs)
		require.Equal(t, took, <-waited)
		require.Equal(t, 3, ownCount.Or(st, 0))
	})
}

// A handler of the messages that changes the results overtakes Append.
func TestAHandlerThatOvertakesItsOwnAppendIsTold(t *testing.T) {
	for name, do := range map[string]func(*state.State) error{
		"reset": func(st *state.State) error { return st.History().Reset([]state.InferenceResult{{Agent: "x"}}) },
		"append and pop": func(st *state.State) error {
			_, _, err := st.History().Pop()
			return errors.Join(st.History().Append(state.InferenceResult{}), err)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var st *state.State
			messages := &state.Field[[]state.Message]{Name: "messages", Handler: state.NewHandler("talks",
				func(cur []state.Message, _ bool, upd []state.Message) ([]state.Message, error) {
					return append(cur, upd...), do(st)
				})}
			st = state.New(state.MustSchema(messages))
			start := time.Now()
			var conflict *state.ConflictError
			err := st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("hi")}})
			require.ErrorAs(t, err, &conflict, name)
			require.Equal(t, []string{"history"}, conflict.Fields)
			require.LessOrEqual(t, time.Since(start), time.Second)
			require.Less(t, st.Version(), uint64(60))
		})
	}
}

// Writes of others do not make a write fail.
func TestAWriteThatOthersOvertakeSucceeds(t *testing.T) {
	for _, took := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		for name, write := range map[string]func(st *state.State) error{
			"transaction": func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					n := ownCount.Or(tx, 0)
					time.Sleep(took)
					return ownOther.Set(tx, n)
				})
			},
			"Field.Update": func(st *state.State) error {
				return ownCount.Update(st, func(n int) (int, error) {
					time.Sleep(took)
					return n + 1, nil
				})
			},
			"transaction that lists": func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					n := tx.KV().Len()
					time.Sleep(took)
					return ownOther.Set(tx, n)
				})
			},
		} {
			t.Run(fmt.Sprint(name, " of ", took), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := state.New(ownSchema)
					done := make(chan struct{})
					var wg sync.WaitGroup
					for i := range 3 {
						wg.Go(func() {
							for n := 0; ; n++ {
								select {
								case <-done:
									return
								case <-time.After(time.Duration(1+i) * 100 * time.Microsecond):
								}
								require.NoError(t, ownCount.Set(st, n))
								_, err := st.KV().Delete("k")
								require.NoError(t, errors.Join(st.KV().Set("k", n), err))
							}
						})
					}
					start := time.Now()
					for range 3 {
						require.NoError(t, write(st))
					}
					require.Less(t, time.Since(start), 3*(4*took+500*time.Millisecond))
					close(done)
					wg.Wait()
				})
			})
		}
	}
}

func TestSlowTransactionsOfOneFieldAllSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(ownSchema)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				require.NoError(t, st.Update(func(tx *state.State) error {
					n := ownCount.Or(tx, 0)
					time.Sleep(time.Duration(20+10*i) * time.Millisecond)
					return ownCount.Set(tx, n+1)
				}))
			})
		}
		wg.Wait()
		require.Equal(t, 8, ownCount.Or(st, 0))
	})
}

// Handlers that write the fields of each other, and try again, end: none of them
// waits for a field more than once.
func TestAChainOfHandlersThatWaitForEachOtherEnds(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			var st *state.State
			fields := make([]*state.Field[int], n)
			var parts []state.Part
			for i := range fields {
				fields[i] = &state.Field[int]{Name: fmt.Sprint("f", i), Handler: state.NewHandler("next", func(_ int, _ bool, update int) (int, error) {
					for range 3 {
						_ = fields[(i+1)%n].Set(st, update)
					}
					return update, nil
				})}
				parts = append(parts, fields[i])
			}
			st = state.New(state.MustSchema(parts...))
			start := time.Now()
			var wg sync.WaitGroup
			for _, f := range fields {
				wg.Go(func() { _ = f.Set(st, 1) })
			}
			wg.Wait()
			require.LessOrEqual(t, time.Since(start), time.Duration(n)*time.Second, "%d handlers", n)
		})
	}
}

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
