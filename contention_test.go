package state_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
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
