package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/test/effort/property"
)

// What a branch does with its content is tested through package state. The test
// of this file is about the numbers of versions, which the engine keeps for each
// view.

// intForm is the form of ints.
type intForm struct{}

func (intForm) Same(a, b *engine.Cell) bool { return a == b }

func (intForm) Check(engine.Merged) error { return nil }

// overwrite stores the update.
type overwrite struct{}

func (overwrite) Merge(_ engine.Address, _ *engine.Cell, u engine.Update) (engine.Merged, error) {
	return engine.Merged{Value: u.Value, Size: 8}, nil
}

var (
	everything engine.View
	author     = &engine.Author{Agent: "a"}
)

func overwriteOp(at engine.Address, n int) *engine.Op {
	return &engine.Op{
		Address: at, Update: engine.Update{Value: n, Size: 8}, Merger: overwrite{}, Author: author, Overwrites: true,
	}
}

// crowd is a layout with one slot for each visibility class, of which the
// readers are arbitrary.
type crowd struct {
	layout  *engine.Layout
	readers [][]int // by class
}

func drawCrowd(t *rapid.T) *crowd {
	n := rapid.IntRange(1, 5).Draw(t, "readers")
	sets := rapid.SliceOfNDistinct(rapid.IntRange(0, 1<<n-1), 1, 24, rapid.ID).Draw(t, "classes")
	c := &crowd{layout: &engine.Layout{Classes: len(sets), Readers: n}}
	for class, set := range sets {
		readBy, readers := engine.NewBits(n), []int{}
		for reader := range n {
			if set>>reader&1 != 0 {
				readBy.Add(reader)
				readers = append(readers, reader)
			}
		}
		c.readers = append(c.readers, readers)
		c.layout.ReadBy = append(c.layout.ReadBy, readBy)
		c.layout.Slots = append(c.layout.Slots, &engine.Slot{Number: class, Class: class, Counted: true, Form: intForm{}})
	}
	c.layout.Keys = &engine.Slot{Number: len(sets), Keyed: true, Form: intForm{}}
	return c
}

// view returns what readers have in common.
func (c *crowd) view(readers ...int) engine.View {
	v := engine.View{Classes: engine.NewBits(len(c.readers))}
	if len(readers) == 1 {
		v.Reader = readers[0] + 1
	}
	for class := range c.readers {
		if c.sees(class, readers) {
			v.Classes.Add(class)
		}
	}
	return v
}

func (c *crowd) sees(class int, readers []int) bool {
	return !slices.ContainsFunc(readers, func(r int) bool { return !slices.Contains(c.readers[class], r) })
}

// steps returns by how much a version that touches classes is to move the
// number of what readers have in common. It looks at nothing that is hidden
// from them.
func (c *crowd) steps(touched, readers []int) uint64 {
	var seen []int
	for _, class := range touched {
		if c.sees(class, readers) {
			seen = append(seen, class)
		}
	}
	if len(readers) == 1 {
		return uint64(min(len(seen), 1))
	}
	var n uint64
	for _, class := range seen {
		if !slices.ContainsFunc(seen, func(wider int) bool {
			return wider != class && !slices.ContainsFunc(c.readers[class], func(r int) bool { return !slices.Contains(c.readers[wider], r) })
		}) {
			n++
		}
	}
	return n
}

func (c *crowd) write(t require.TestingT, b *engine.Branch, touched []int) {
	require.NoError(t, b.Commit(everything, func(tree *engine.Tree) ([]engine.Edit, error) {
		var edits []engine.Edit
		for _, class := range touched {
			at := engine.Address{Slot: c.layout.Slots[class]}
			edits = append(edits, engine.Edit{
				Address: at, From: tree.Get(at), To: &engine.Merged{Value: 1, Size: 8},
				Ops: []engine.Op{*overwriteOp(at, 1)}, Overwrites: true,
			})
		}
		return edits, nil
	}))
}

func TestTheVersionsOfAViewFollowFromWhatItSees(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		c := drawCrowd(t)
		b := engine.New(c.layout)
		commits := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, len(c.readers)-1), 1, 6, rapid.ID), 0, 20).Draw(t, "commits")
		for i, touched := range commits {
			if i%5 == 3 {
				b.Freeze()
			}
			if len(touched) == 1 {
				require.NoError(t, b.Write(everything, overwriteOp(engine.Address{Slot: c.layout.Slots[touched[0]]}, 1)))
			} else {
				c.write(t, b, touched)
			}
		}
		readers := rapid.SliceOfNDistinct(rapid.IntRange(0, c.layout.Readers-1), 1, 3, rapid.ID).Draw(t, "view")
		v := c.view(readers...)
		numbers := []uint64{0} // of the view, by version
		for _, touched := range commits {
			numbers = append(numbers, numbers[len(numbers)-1]+c.steps(touched, readers))
		}
		last := numbers[len(commits)]
		require.Equal(t, last, b.Version(v))

		then := rapid.IntRange(0, len(commits)).Draw(t, "past version")
		past, err := b.At(uint64(then))
		require.NoError(t, err)
		require.Equal(t, numbers[then], past.Version(v))

		since := rapid.Uint64Range(0, last+1).Draw(t, "since")
		var want, got []uint64
		for i, touched := range commits {
			for range touched {
				want = append(want, numbers[i+1])
			}
		}
		require.NoError(t, b.Entries(engine.View{}, 0, func(e engine.Entry) bool {
			if !v.Sees(e.Slot.Class) {
				want[len(got)] = 0
			}
			got = append(got, e.Version)
			return true
		}))
		want = slices.DeleteFunc(want, func(n uint64) bool { return n <= since })
		got = nil
		require.NoError(t, b.Entries(v, since, func(e engine.Entry) bool { got = append(got, e.Version); return true }))
		require.ElementsMatch(t, want, got)

		back := engine.New(c.layout)
		l := engine.NewLoader(back, b.Version(everything))
		counts := b.Freeze().VersionCounts()
		require.LessOrEqual(t, len(counts), len(c.readers)+c.layout.Readers)
		for _, n := range counts {
			l.Count(n)
		}
		l.Done()
		require.Equal(t, last, back.Version(v))
	})
}
