package state_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The test of this file proves that transactions are serialisable, whatever they
// do with forks. Of two random transactions one runs while the other is under
// way. What they read and leave must be as if one had come after the other.

var (
	serialX     = &state.Field[int]{Name: "x"}
	serialY     = &state.Field[int]{Name: "y"}
	serialSum   = &state.Field[int]{Name: "sum", Handler: state.Sum[int]()}
	serialFirst = &state.Field[int]{Name: "first", Handler: state.FirstWins[int]()}
	serialLast  = &state.Field[int]{Name: "last", Handler: state.LastWins[int]()}
	serialList  = &state.Field[[]int]{Name: "list"}
	serialOwn   = &state.Field[int]{Name: "own", Handler: state.NewHandler("own", func(a int, _ bool, b int) (int, error) { return (2*a + b) % 7, nil })}
	serialInts  = []*state.Field[int]{serialX, serialX, serialY, serialY, serialSum, serialFirst, serialLast, serialOwn}
	serialState = state.MustSchema(serialX, serialY, serialSum, serialFirst, serialLast, serialList, serialOwn, state.AllowUndeclared)
)

// serialStep is one step of a transaction: on the transaction, or on one of the
// forks that it has made.
type serialStep struct {
	kind, on, field, value int
	derived                bool // the value depends on what was read before
	inner                  []serialStep
}

const serialKinds = 18

// serialPalette is what the steps of one program have to do with. With few
// kinds and fields they meet more often.
type serialPalette struct{ kinds, fields []int }

func serialPick(rng *rand.Rand) serialPalette {
	p := serialPalette{rng.Perm(serialKinds)[:3+rng.IntN(6)], rng.Perm(len(serialInts))[:1+rng.IntN(3)]}
	if rng.IntN(2) == 0 {
		p.kinds = []int{0, 4, 2 + rng.IntN(6)} // reads, overwrites and one more
	}
	return p
}

func (p serialPalette) draw(rng *rand.Rand, n, depth int) []serialStep {
	steps := make([]serialStep, n)
	for i := range steps {
		steps[i] = serialStep{
			kind: p.kinds[rng.IntN(len(p.kinds))], on: rng.IntN(4), field: p.fields[rng.IntN(len(p.fields))],
			value: rng.IntN(3), derived: rng.IntN(3) == 0,
		}
		switch rng.IntN(6) {
		case 0:
			steps[i].kind = 13 // fork
		case 1:
			steps[i].kind = 15 // join
		}
		if steps[i].kind == serialKinds-1 && depth > 0 {
			steps[i].inner = p.draw(rng, 1+rng.IntN(4), depth-1)
		}
	}
	return steps
}

// serialRun does the steps, calls between before one of them, and returns what
// was read.
func serialRun(tx *state.State, steps []serialStep, between func(i int)) string {
	handles := []*state.State{tx}
	seen := ""
	read := func(v ...any) { seen += fmt.Sprintln(v...) }
	for i, step := range steps {
		between(i)
		st, f, v := handles[step.on%len(handles)], serialInts[step.field], step.value
		if step.derived { // from all that was read
			v = int(crc32.ChecksumIEEE([]byte(seen)) % 3)
		}
		var err error
		switch step.kind {
		case 0, 1:
			read(f.Or(st, -1))
		case 2, 3:
			err = f.Set(st, v)
		case 4, 5:
			err = f.Replace(st, v)
		case 6:
			err = f.Update(st, func(n int) (int, error) { return n + v, nil })
		case 7:
			_, err = f.Delete(st)
		case 8:
			err = serialList.Set(st, []int{v})
		case 9:
			read(state.ListLen(st, serialList))
		case 10:
			err = st.KV().Set("k", v)
		case 11:
			read(st.KV().Len())
		case 12:
			read(st.Version())
		case 13, 14:
			handles = append(handles, st.Fork())
		case 15:
			read(errors.Is(tx.Join(handles[1+step.value%max(1, len(handles)-1):]...), state.ErrConflict))
		case 16:
			if v == 0 {
				_, _, err = st.History().Pop()
			} else {
				err = st.History().Append(state.InferenceResult{Input: fmt.Sprint(v)})
			}
		case 17:
			err = st.Update(func(inner *state.State) error {
				seen += serialRun(inner, step.inner, func(int) {})
				return nil
			})
		}
		if err != nil {
			read(errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrReadOnly))
		}
	}
	return seen
}

func TestTransactionsWithForksAreSerialisable(t *testing.T) {
	base := effort.Seed(0)
	for i := range uint64(effort.Runs(500)) {
		rng := rand.New(rand.NewPCG(base+i, 7))
		p := serialPick(rng)
		begin, one, two := p.draw(rng, 6, 0), p.draw(rng, 2+rng.IntN(10), 1), p.draw(rng, 1+rng.IntN(6), 1)
		at := rng.IntN(len(one))
		do := func(st *state.State, steps []serialStep, between func(int)) (seen string) {
			require.NoError(t, st.Update(func(tx *state.State) error {
				seen = serialRun(tx, steps, between)
				return nil
			}))
			return seen
		}
		nothing := func(int) {}
		outcome := func(st *state.State, one, two string) string {
			inputs := []string{}
			for _, r := range st.History().All() {
				inputs = append(inputs, r.Input)
			}
			return fmt.Sprint(st.KV().All(), inputs, "\nfirst:\n", one, "second:\n", two)
		}
		start := func() *state.State {
			st := state.New(serialState)
			do(st, begin, nothing)
			return st
		}
		st, second, ran := start(), "", false
		first := do(st, one, func(i int) {
			if i == at && !ran {
				ran = true
				second = do(st, two, nothing)
			}
		})
		got := outcome(st, first, second)
		st = start()
		first = do(st, one, nothing)
		oneTwo := outcome(st, first, do(st, two, nothing))
		st = start()
		second = do(st, two, nothing)
		twoOne := outcome(st, do(st, one, nothing), second)
		if got != oneTwo && got != twoOne {
			require.Failf(t, "not serialisable", "program %d, second before step %d of first\nfirst %+v\nsecond %+v\n%s\none by one\n%s\nor\n%s",
				base+i, at, one, two, got, oneTwo, twoOne)
		}
	}
}

// An echo in a fork is dropped by the join: that it is one was read.
func TestAnEchoInAForkIsARead(t *testing.T) {
	st := state.New(serialState)
	require.NoError(t, st.Patch(map[string]any{"x": 5, "y": 0}))
	first := true
	require.NoError(t, st.Update(func(tx *state.State) error { // x = 5, y = 1
		f := tx.Fork()
		require.NoError(t, errors.Join(serialX.Replace(f, 5), serialY.Replace(f, 1), tx.Join(f)))
		if first {
			first = false
			return st.Update(func(other *state.State) error { // if y == 0 then x = 6
				if serialY.Or(other, -1) == 0 {
					return serialX.Set(other, 6)
				}
				return nil
			})
		}
		return nil
	}))
	require.Equal(t, 5, serialX.Or(st, 0))
	require.Equal(t, 1, serialY.Or(st, 0))
}

func TestTheVersionIsARead(t *testing.T) {
	st := state.New(serialState)
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		runs++
		if err := serialX.Set(tx, int(tx.Version())); err != nil || runs > 1 {
			return err
		}
		return serialY.Set(st, 1)
	}))
	require.Equal(t, 2, runs)
	require.Equal(t, 1, serialX.Or(st, 0))
}
