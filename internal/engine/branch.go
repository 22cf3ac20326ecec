package engine

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/persist"
)

// The errors of writes and looks back.
var (
	ErrReadOnly  = errors.New("state: read-only")
	ErrConflict  = errors.New("state: conflict")
	ErrCompacted = errors.New("state: no longer in the journal")

	// ErrFrozen and ErrJoined say why a branch is read-only.
	ErrFrozen = fmt.Errorf("%w: a snapshot or a transaction that has ended", ErrReadOnly)
	ErrJoined = fmt.Errorf("%w: the branch is joined", ErrReadOnly)
)

// Branch is one line of versions: a state, a fork, a transaction or, frozen, a
// snapshot. All methods are safe for concurrent use.
type Branch struct {
	*trunk
	tree atomic.Pointer[Tree]

	transaction bool // Update made it
	frozen      bool // it is a snapshot

	mu      sync.Mutex    // guards what follows, and all writing to the tree
	owned   bool          // the tree may be changed in place
	joining bool          // a Join is at work on it
	ended   error         // what every write fails with
	wake    chan struct{} // the next commit closes it; nil while no goroutine waits
	version uint64

	turns map[Address]*turn // that are taken; nil until one is
	first *contender        // the write that others let go first

	id     uint64 // unique
	forked uint64 // the version it began with; the journal begins after it

	keeps bool // the writes to kept slots, in the tree

	*fork          // nil unless it is a fork or a transaction
	reads *readSet // of the transaction that it is, or comes from; nil if it does not
}

// fork is what a fork or a transaction has beside other branches.
type fork struct {
	parent uint64 // its id: a pointer would keep alive all branches before it

	// Without a base, it cannot be joined and keeps no record of what it does.
	base *Tree // of the parent, when it was forked; nil if the parent is frozen
	nets netWrites
}

// trunk is what a branch shares with those that come from it. It is immutable.
type trunk struct {
	layout *Layout
	bounds journalBounds // of the journal
	origin time.Time     // times in the journal count from here
}

// New returns an empty branch.
func New(layout *Layout) *Branch {
	b := &Branch{
		trunk: &trunk{layout: layout, bounds: layout.journalBounds(), origin: time.Now()},
		id:    persist.NewOwner(),
	}
	b.tree.Store(newTree(layout))
	return b
}

// Freeze returns a snapshot of the branch. The cost does not depend on the
// size.
func (b *Branch) Freeze() *Branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen {
		return b
	}
	b.owned = false
	return b.frozenAt(b.tree.Load(), b.version, b.forked)
}

// frozenAt returns a frozen branch with a tree, as of a version of this branch.
func (b *Branch) frozenAt(t *Tree, version, forked uint64) *Branch {
	f := &Branch{id: persist.NewOwner(), trunk: b.trunk, frozen: true, ended: ErrFrozen, forked: forked, reads: b.reads}
	f.tree.Store(t)
	f.version = version
	return f
}

// Scan is Freeze for a reader that lists which addresses are set, which a
// transaction notes.
func (b *Branch) Scan() *Branch {
	b.reads.list()
	return b.Freeze()
}

// With returns a copy of a frozen branch that has other cells, or none where
// they are nil, at some addresses.
func (b *Branch) With(cells map[Address]*Cell) *Branch {
	t := b.tree.Load().clone()
	for a, c := range cells {
		now := t.Get(a)
		t.put(a, c)
		t.noteSet(a.Slot, now, c)
	}
	return b.frozenAt(t, b.version, b.forked)
}

// Fork returns a branch that begins with the content of this one. The cost does
// not depend on the size.
func (b *Branch) Fork() *Branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tree.Load()
	b.owned = false
	var made struct {
		branch Branch
		fork   fork
	}
	f := &made.branch
	f.trunk, f.id, f.reads = b.trunk, persist.NewOwner(), b.reads
	f.forked, f.version = b.version, b.version
	f.fork = &made.fork
	f.parent = b.id
	if !b.frozen {
		f.base = t
	}
	f.tree.Store(t)
	return f
}

// ForkOf reports whether b is a fork, and not a transaction, and of parent.
func (b *Branch) ForkOf(parent *Branch) (fork, ofParent bool) {
	if b.fork == nil {
		return false, false
	}
	return !b.transaction, b.parent == parent.id
}

// Detached reports whether the branch is a fork of a frozen one, which keeps no
// record of its writes.
func (b *Branch) Detached() bool { return b.fork != nil && b.base == nil }

// recorded reports whether the branch keeps a record of its writes for a join.
func (b *Branch) recorded() bool { return b.fork != nil && b.base != nil }

// end makes every later write fail with err.
func (b *Branch) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.joining = err, false
	b.wakeWatchers()
}

// Slot returns the cell of a slot that is not keyed, or nil.
func (b *Branch) Slot(s *Slot) *Cell {
	if b.reads != nil {
		b.reads.add(Address{Slot: s})
	}
	return b.tree.Load().slot(s.Number)
}

// Get returns the cell at an address, or nil.
func (b *Branch) Get(a Address) *Cell {
	if b.reads != nil {
		b.reads.add(a)
	}
	return b.tree.Load().Get(a)
}

// Peek is Get for a caller that only asks whether the address is set, having
// listed all, or merges into the cell: a transaction does not note it as a
// read.
func (b *Branch) Peek(a Address) *Cell { return b.tree.Load().Get(a) }

// InTransaction reports whether reads of the branch are noted for a transaction.
func (b *Branch) InTransaction() bool { return b.reads != nil }

// Keys returns the keys that are set in a frozen branch, sorted.
func (b *Branch) Keys() []string {
	t := b.tree.Load()
	keys := make([]string, 0, t.keyed)
	for key := range t.keys.All() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// KeyedCell is a key that is set, with its cell.
type KeyedCell struct {
	Key  string
	Cell *Cell
}

// KeyedCells returns the keys that are set in a frozen branch with their cells,
// sorted.
func (b *Branch) KeyedCells() []KeyedCell {
	cells := make([]KeyedCell, 0, b.tree.Load().keyed)
	for key, cell := range b.All() {
		cells = append(cells, KeyedCell{key, cell})
	}
	slices.SortFunc(cells, func(x, y KeyedCell) int { return strings.Compare(x.Key, y.Key) })
	return cells
}

// All yields the keys that are set in a frozen branch with their cells, in no
// order.
func (b *Branch) All() iter.Seq2[string, *Cell] {
	return func(yield func(string, *Cell) bool) {
		for key, cell := range b.tree.Load().keys.All() {
			if b.reads != nil {
				b.reads.add(Address{Slot: b.layout.Keys, Key: key})
			}
			if !yield(key, cell) {
				return
			}
		}
	}
}

// ChangedKeys returns the keys, sorted, under which two frozen branches have
// different cells.
func (b *Branch) ChangedKeys(past *Branch) []string {
	now, then := b.tree.Load(), past.tree.Load()
	if now == then {
		return nil
	}
	var keys []string
	for key, cell := range now.keys.All() {
		if then.keys.Get(key) != cell {
			keys = append(keys, key)
		}
	}
	for key := range then.keys.All() {
		if now.keys.Get(key) == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// CountSet returns the number of set addresses that a view sees. A transaction
// notes it as a listing.
func (b *Branch) CountSet(v View) int {
	b.reads.list()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tree.Load().countSet(b.layout, v)
}

// Version returns the number of versions. A transaction notes it as a read of
// all of them.
func (b *Branch) Version() uint64 {
	b.reads.countVersions()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// Alive returns the error that a write would get.
func (b *Branch) Alive() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal()
}

// Unjoined returns the addresses that a branch has written, if it can be joined and was
// not.
func (b *Branch) Unjoined() (written []Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recorded() && !b.transaction && b.ended != ErrJoined {
		for _, n := range b.nets.sorted() {
			written = append(written, n.Address)
		}
	}
	return written
}

// End makes further writes fail with err.
func (b *Branch) End(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = err
	}
}

// refusal is Alive on a locked branch.
func (b *Branch) refusal() error {
	if b.joining {
		return ErrJoined
	}
	return b.ended
}

// publish makes a tree the present one. The branch is locked.
func (b *Branch) publish(t *Tree, version uint64) {
	b.owned = true
	if t != b.tree.Load() {
		b.tree.Store(t)
	}
	b.version = version
	b.wakeWatchers()
}

// wakeWatchers lets all that wait for a version look again. The branch is
// locked.
func (b *Branch) wakeWatchers() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}
