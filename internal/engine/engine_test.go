package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/engine"
)

// intForm is the form of ints. A negative one fails the check.
type intForm struct{}

func (intForm) Same(a, b *engine.Cell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Value == b.Value
}

var errNegative = errors.New("negative")

func (intForm) Check(m engine.Merged) error {
	if m.Value.(int) < 0 {
		return errNegative
	}
	return nil
}

// sum adds the update to the current value.
type sum struct{}

func (sum) Merge(_ engine.Address, current *engine.Cell, u engine.Update) (engine.Merged, error) {
	n := u.Value.(int)
	if current != nil {
		n += current.Value.(int)
	}
	return engine.Merged{Value: n, Size: 8}, nil
}

// overwrite stores the update.
type overwrite struct{}

func (overwrite) Merge(_ engine.Address, _ *engine.Cell, u engine.Update) (engine.Merged, error) {
	return engine.Merged{Value: u.Value, Size: 8}, nil
}

// mergerFunc is a merger that tests make.
type mergerFunc func(current *engine.Cell) (engine.Merged, error)

func (f mergerFunc) Merge(_ engine.Address, current *engine.Cell, _ engine.Update) (engine.Merged, error) {
	return f(current)
}

// space is a layout of two slots of class 0, one of class 1, one with FirstWins and
// one with LastWins, and keys of class 0.
type space struct {
	layout    *engine.Layout
	addresses []engine.Address
}

func newSpace(keys ...string) *space {
	slot := func(number, class int, policy engine.Policy) *engine.Slot {
		return &engine.Slot{Number: number, Class: class, Counted: true, Policy: policy, Form: intForm{}}
	}
	s := &space{layout: &engine.Layout{
		Slots: []*engine.Slot{
			slot(0, 0, engine.PolicyConflict), slot(1, 0, engine.PolicyConflict), slot(2, 1, engine.PolicyConflict),
			slot(3, 0, engine.PolicyFirstWins), slot(4, 0, engine.PolicyLastWins),
		},
		Keys:    slot(5, 0, engine.PolicyConflict),
		Classes: 2,
	}}
	s.layout.Keys.Keyed = true
	for _, slot := range s.layout.Slots {
		s.addresses = append(s.addresses, engine.Address{Slot: slot})
	}
	for _, key := range keys {
		s.addresses = append(s.addresses, engine.Address{Slot: s.layout.Keys, Key: key})
	}
	return s
}

var everything, class0 engine.View

func init() {
	class0.Classes = engine.NewBits(2)
	class0.Classes.Add(0)
}

var author = &engine.Author{Agent: "a"}

func sumOp(at engine.Address, n int) *engine.Op {
	return &engine.Op{Address: at, Update: engine.Update{Value: n, Size: 8}, Merger: sum{}, Author: author}
}

func overwriteOp(at engine.Address, n int) *engine.Op {
	o := sumOp(at, n)
	o.Merger, o.Overwrites = overwrite{}, true
	return o
}

func deleteOp(at engine.Address) *engine.Op {
	return &engine.Op{Address: at, Overwrites: true, Author: author}
}

// read returns the value at an address, -1 if it is not set.
func read(b *engine.Branch, at engine.Address) int {
	if c := b.Get(at); c != nil {
		return c.Value.(int)
	}
	return -1
}

func allow(*engine.NetWrite) error { return nil }

func TestWritesAreVersionsThatAViewCountsByItsClasses(t *testing.T) {
	s := newSpace("k")
	b := engine.New(s.layout)
	require.NoError(t, b.Write(everything, sumOp(s.addresses[0], 2)))
	require.NoError(t, b.Write(everything, sumOp(s.addresses[0], 3)))
	require.NoError(t, b.Write(everything, sumOp(s.addresses[2], 7)))
	done, err := b.Delete(everything, deleteOp(s.addresses[5]))
	require.NoError(t, err)
	require.False(t, done, "it was not set")
	require.Equal(t, 5, read(b, s.addresses[0]))
	require.EqualValues(t, 3, b.Version(everything))
	require.EqualValues(t, 2, b.Version(class0))
	require.Equal(t, 2, b.CountSet(everything))
	require.Equal(t, 1, b.CountSet(class0))
	require.NoError(t, b.Commit(everything, func(tree *engine.Tree) ([]engine.Edit, error) {
		var edits []engine.Edit
		for _, at := range []engine.Address{s.addresses[0], s.addresses[2]} {
			o := overwriteOp(at, 1)
			edits = append(edits, engine.Edit{
				Address: at, From: tree.Get(at), To: &engine.Merged{Value: 1, Size: 8}, Ops: []engine.Op{*o}, Overwrites: true,
			})
		}
		return edits, nil
	}))
	require.EqualValues(t, 4, b.Version(everything), "one version")
	require.EqualValues(t, 3, b.Version(class0))
}

func TestAFullBranchRefusesWhatTheWriterSeesAsTooMuch(t *testing.T) {
	s := newSpace("k", "l")
	s.layout.MaxKeys = 2
	b := engine.New(s.layout)
	require.NoError(t, b.Write(everything, sumOp(s.addresses[2], 1)))
	require.NoError(t, b.Write(everything, sumOp(s.addresses[5], 1)))
	var full *engine.FullError
	require.ErrorAs(t, b.Write(everything, sumOp(s.addresses[6], 1)), &full)
	require.Equal(t, engine.FullError{Limit: 2, Got: 3}, *full)
	require.NoError(t, b.Write(class0, sumOp(s.addresses[6], 1)), "it does not see one of them")
}

func TestJoin(t *testing.T) {
	s := newSpace()
	type writes func(b *engine.Branch, at engine.Address) error
	add := func(n int) writes {
		return func(b *engine.Branch, at engine.Address) error { return b.Write(everything, sumOp(at, n)) }
	}
	set := func(n int) writes {
		return func(b *engine.Branch, at engine.Address) error { return b.Write(everything, overwriteOp(at, n)) }
	}
	remove := func(b *engine.Branch, at engine.Address) error {
		_, err := b.Delete(everything, deleteOp(at))
		return err
	}
	compute := func(n int) writes {
		return func(b *engine.Branch, at engine.Address) error {
			o := overwriteOp(at, 0)
			o.Computed = true
			return b.Rewrite(everything, *o, func(*engine.Cell) (engine.Update, error) { return engine.Update{Value: n, Size: 8}, nil })
		}
	}
	none := func(*engine.Branch, engine.Address) error { return nil }
	for name, tt := range map[string]struct {
		slot         int
		parent, a, b writes
		want         int // -2 is a conflict
	}{
		"sums add up":                   {0, add(1), add(10), add(100), 111 + 5},
		"one overwrite":                 {0, none, set(7), none, 7},
		"an overwrite and a sum":        {0, none, set(7), add(1), -2},
		"an overwrite and the parent":   {0, add(1), set(7), none, -2},
		"a sum and the parent's":        {0, set(7), add(1), none, -2},
		"equal overwrites":              {0, none, set(7), set(7), 7},
		"equal overwrites, computed":    {0, none, compute(7), compute(7), -2},
		"different overwrites":          {0, none, set(7), set(8), -2},
		"an overwrite that echoes":      {0, add(1), set(5), none, 6},
		"a deletion":                    {0, none, remove, none, -1},
		"two deletions":                 {0, remove, remove, remove, -1},
		"a deletion and a sum":          {0, none, remove, add(1), -2},
		"the parent deletes":            {0, remove, add(1), none, -2},
		"first wins: the parent":        {3, set(6), set(7), set(8), 6},
		"first wins: the first branch":  {3, none, set(7), set(8), 7},
		"last wins: the last branch":    {4, set(6), set(7), set(8), 8},
		"last wins: the branch":         {4, set(6), set(7), none, 7},
		"last wins: sums are done over": {4, none, add(1), add(1), 7},
	} {
		t.Run(name, func(t *testing.T) {
			at := s.addresses[tt.slot]
			parent := engine.New(s.layout)
			require.NoError(t, parent.Write(everything, overwriteOp(at, 5)))
			a, b := parent.Fork(), parent.Fork()
			require.NoError(t, tt.parent(parent, at))
			require.NoError(t, tt.a(a, at))
			require.NoError(t, tt.b(b, at))
			before := read(parent, at)
			_, err := parent.Join(everything, []*engine.Branch{a, b}, allow)
			if tt.want == -2 {
				var overlap *engine.OverlapError
				require.ErrorAs(t, err, &overlap)
				require.Equal(t, []engine.Address{at}, overlap.Addresses)
				require.Equal(t, before, read(parent, at))
				require.NoError(t, a.Alive(), "it stays usable")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, read(parent, at))
			require.ErrorIs(t, a.Alive(), engine.ErrJoined)
			side, err := parent.Join(everything, []*engine.Branch{b}, allow)
			require.Zero(t, side)
			require.ErrorIs(t, err, engine.ErrJoined)
		})
	}
}

func TestAJoinThatIsNotAllowedAppliesNothing(t *testing.T) {
	s := newSpace()
	parent := engine.New(s.layout)
	fork := parent.Fork()
	require.NoError(t, fork.Write(everything, sumOp(s.addresses[0], 1)))
	denied := errors.New("denied")
	side, err := parent.Join(everything, []*engine.Branch{fork}, func(*engine.NetWrite) error { return denied })
	require.Equal(t, -1, side)
	require.ErrorIs(t, err, denied)
	require.NoError(t, fork.Alive())
	require.Zero(t, parent.Version(everything))
}

func TestATransactionRunsAgainIfWhatItReadHasChanged(t *testing.T) {
	s := newSpace("k")
	x, y, k := s.addresses[0], s.addresses[1], s.addresses[5]
	for name, tt := range map[string]struct {
		do      func(tx *engine.Branch) error
		between engine.Address // written by another, once
		runs    int
	}{
		"a read":                {func(tx *engine.Branch) error { tx.Get(x); return tx.Write(everything, sumOp(y, 1)) }, x, 2},
		"a look without noting": {func(tx *engine.Branch) error { tx.Peek(x); return tx.Write(everything, sumOp(y, 1)) }, x, 1},
		"a sum":                 {func(tx *engine.Branch) error { return tx.Write(everything, sumOp(x, 1)) }, x, 1},
		"an overwrite":          {func(tx *engine.Branch) error { return tx.Write(everything, overwriteOp(x, 1)) }, x, 2},
		"a listing":             {func(tx *engine.Branch) error { tx.CountSet(everything); return tx.Write(everything, sumOp(y, 1)) }, k, 2},
		"a scan":                {func(tx *engine.Branch) error { tx.Scan(); return tx.Write(everything, sumOp(y, 1)) }, k, 2},
		"a read of a fork":      {func(tx *engine.Branch) error { tx.Fork().Get(x); return tx.Write(everything, sumOp(y, 1)) }, x, 2},
		"only a read":           {func(tx *engine.Branch) error { tx.Get(x); return nil }, x, 1},
		"an inner transaction": {func(tx *engine.Branch) error {
			return tx.Update(everything, func(inner *engine.Branch) error { inner.Get(x); return inner.Write(everything, sumOp(y, 1)) })
		}, x, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := engine.New(s.layout)
			runs := 0
			var kept *engine.Branch
			require.NoError(t, b.Update(everything, func(tx *engine.Branch) error {
				kept = tx
				runs++
				if err := tt.do(tx); err != nil {
					return err
				}
				if runs == 1 {
					return b.Write(everything, sumOp(tt.between, 10))
				}
				return nil
			}))
			require.Equal(t, tt.runs, runs)
			require.ErrorIs(t, kept.Alive(), engine.ErrReadOnly, "it has ended")
		})
	}
}

func TestOneTransactionIsOneVersionOrNone(t *testing.T) {
	s := newSpace()
	b := engine.New(s.layout)
	write := func(tx *engine.Branch) error {
		require.NoError(t, tx.Write(everything, sumOp(s.addresses[0], 1)))
		require.NoError(t, tx.Write(everything, sumOp(s.addresses[1], 1)))
		return nil
	}
	require.NoError(t, b.Update(everything, write))
	require.EqualValues(t, 1, b.Version(everything))
	failed := errors.New("failed")
	require.ErrorIs(t, b.Update(everything, func(tx *engine.Branch) error { _ = write(tx); return failed }), failed)
	require.EqualValues(t, 1, b.Version(everything))
}

func TestCodeOfUsersForOneAddressTakesTurns(t *testing.T) {
	s := newSpace()
	synctest.Test(t, func(t *testing.T) {
		b := engine.New(s.layout)
		slow := func(at engine.Address, wait time.Duration) *engine.Op {
			o := sumOp(at, 0)
			o.Callback = true
			o.Merger = mergerFunc(func(current *engine.Cell) (engine.Merged, error) {
				time.Sleep(wait)
				return sum{}.Merge(at, current, engine.Update{Value: 1})
			})
			return o
		}
		x, y := s.addresses[0], s.addresses[1]
		start := time.Now()
		errs := make(chan error, 4)
		for range 3 {
			go func() { errs <- b.Write(everything, slow(x, 400*time.Millisecond)) }()
		}
		go func() { errs <- b.Write(everything, slow(y, 400*time.Millisecond)) }()
		for range 4 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 1200*time.Millisecond, time.Since(start))
		require.Equal(t, 3, read(b, x))

		go func() { errs <- b.Write(everything, slow(x, time.Minute)) }()
		synctest.Wait()
		start = time.Now()
		var turn *engine.TurnError
		require.ErrorAs(t, b.Write(everything, slow(x, 0)), &turn)
		require.Equal(t, x, turn.Address)
		require.Equal(t, engine.MaxWait, time.Since(start))
		require.NoError(t, b.Write(everything, sumOp(x, 1)), "it calls no code of users")
		require.NoError(t, <-errs, "it runs again")
		require.NoError(t, b.Write(everything, slow(x, 0)), "the turn was released")
		require.Equal(t, 6, read(b, x))
	})
}

func TestACheckThatFailsStoresNothing(t *testing.T) {
	s := newSpace()
	b := engine.New(s.layout)
	o := overwriteOp(s.addresses[0], -5)
	o.Callback = true
	require.ErrorIs(t, b.Write(everything, o), errNegative)
	require.Zero(t, b.Version(everything))
}

func TestTheJournalForgetsTheOldestVersionsOfAClass(t *testing.T) {
	s := newSpace()
	s.layout.Journal = 10
	b := engine.New(s.layout)
	for i := range 100 {
		require.NoError(t, b.Write(everything, sumOp(s.addresses[0], 1)))
		if i == 0 {
			require.NoError(t, b.Write(everything, sumOp(s.addresses[2], 1)))
		}
	}
	require.ErrorIs(t, b.Entries(everything, 0, nil), engine.ErrCompacted)
	_, err := b.At(3)
	require.ErrorIs(t, err, engine.ErrCompacted)
	_, err = b.At(102)
	require.ErrorIs(t, err, engine.ErrNoVersion)
	past, err := b.At(95)
	require.NoError(t, err)
	require.Equal(t, 94, read(past, s.addresses[0]))
}

func TestWatchYieldsWhatAViewSeesUntilTheBranchEnds(t *testing.T) {
	s := newSpace()
	synctest.Test(t, func(t *testing.T) {
		b := engine.New(s.layout)
		var versions []uint64
		var values []any
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			done <- b.Watch(ctx, class0, 0, func(e engine.Entry) bool {
				versions, values = append(versions, e.Version), append(values, e.Written().Value)
				return true
			})
		}()
		for i := range 3 {
			require.NoError(t, b.Write(everything, sumOp(s.addresses[0], i)))
			require.NoError(t, b.Write(everything, sumOp(s.addresses[2], i)))
			synctest.Wait()
		}
		require.Equal(t, []uint64{1, 2, 3}, versions)
		require.Equal(t, []any{0, 1, 2}, values)
		cancel()
		require.NoError(t, <-done)
		seen := 0
		require.NoError(t, b.Freeze().Watch(t.Context(), everything, 2, func(engine.Entry) bool { seen++; return true }))
		require.Equal(t, 4, seen, "a frozen branch has ended")
	})
}

// modelCell is a cell of the model, and what has been done to it since a fork.
type modelCell struct {
	value             int // -1: not set
	wrote             bool
	overwrote, erased bool
}

func (c *modelCell) add(n int) {
	c.wrote = true
	c.value = max(c.value, 0) + n
}

func (c *modelCell) set(n int) { c.wrote, c.overwrote, c.value = true, true, n }

func (c *modelCell) remove() {
	if c.value >= 0 {
		c.wrote, c.overwrote, c.erased, c.value = true, false, true, -1
	}
}

// joinModel returns the value after the join of one branch, and whether there is
// one. delta is the sum of what the branch has added.
func joinModel(base int, parent, branch modelCell, delta int, branchOver bool) (int, bool) {
	parentOver := parent.overwrote || parent.erased && base >= 0
	parentWrote := parent.wrote && !(base < 0 && parent.value < 0) && !(parentOver && parent.value == base)
	switch {
	case !branch.wrote || branchOver && branch.value == base:
		return parent.value, true
	case !parentWrote && !branchOver && parent.value == base, !parentWrote && branchOver:
		return branch.value, true
	case !branchOver && !parentOver:
		return max(parent.value, 0) + delta, true
	case branchOver && parentOver && branch.value == parent.value:
		return branch.value, true
	}
	return 0, false
}

func TestModel(t *testing.T) {
	s := newSpace("a", "b", "c", "d", "e", "f", "g")
	addresses := slices.DeleteFunc(slices.Clone(s.addresses), func(a engine.Address) bool {
		return a.Slot.Policy != engine.PolicyConflict
	})
	rapid.Check(t, func(t *rapid.T) {
		b := engine.New(s.layout)
		cells := make([]modelCell, len(addresses))
		for i := range cells {
			cells[i].value = -1
		}
		past := [][]modelCell{slices.Clone(cells)} // by version
		write := func(b *engine.Branch, cells []modelCell, deltas []int) {
			i := rapid.IntRange(0, len(addresses)-1).Draw(t, "address")
			n := rapid.IntRange(0, 3).Draw(t, "n")
			at, c := addresses[i], &cells[i]
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				require.NoError(t, b.Write(everything, overwriteOp(at, n)))
				c.set(n)
			case 1:
				done, err := b.Delete(everything, deleteOp(at))
				require.NoError(t, err)
				require.Equal(t, c.value >= 0, done)
				c.remove()
			default:
				require.NoError(t, b.Write(everything, sumOp(at, n)))
				c.add(n)
				deltas[i] += n
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			// A branch and its parent write, and the branch is joined.
			for i := range cells {
				cells[i] = modelCell{value: cells[i].value}
			}
			base, theirs := slices.Clone(cells), slices.Clone(cells)
			fork := b.Fork()
			deltas := make([]int, len(addresses))
			for range rapid.IntRange(0, 4).Draw(t, "writes of the parent") {
				before := b.Version(everything)
				write(b, cells, make([]int, len(addresses)))
				if b.Version(everything) > before {
					past = append(past, slices.Clone(cells))
				}
			}
			overwrote := make([]bool, len(addresses))
			for range rapid.IntRange(0, 4).Draw(t, "writes of the branch") {
				write(fork, theirs, deltas)
				for i := range theirs {
					overwrote[i] = overwrote[i] || theirs[i].overwrote || theirs[i].erased
				}
			}
			joined, conflict := slices.Clone(cells), false
			for i := range cells {
				value, ok := joinModel(base[i].value, cells[i], theirs[i], deltas[i], overwrote[i])
				joined[i].value = value
				conflict = conflict || !ok
			}
			before := b.Version(everything)
			_, err := b.Join(everything, []*engine.Branch{fork}, allow)
			require.Equal(t, conflict, err != nil, "%v", err)
			if err == nil {
				cells = joined
			}
			if b.Version(everything) > before {
				past = append(past, slices.Clone(cells))
			}
			set := 0
			for i, at := range addresses {
				require.Equal(t, cells[i].value, read(b, at), "address %d", i)
				if cells[i].value >= 0 {
					set++
				}
			}
			require.Equal(t, set, b.CountSet(everything))
			require.EqualValues(t, len(past)-1, b.Version(everything))
		}
		version := rapid.IntRange(0, len(past)-1).Draw(t, "version")
		then, err := b.At(uint64(version))
		require.NoError(t, err)
		for i, at := range addresses {
			require.Equal(t, past[version][i].value, read(then, at), "address %d at version %s", i, strconv.Itoa(version))
		}
	})
}
