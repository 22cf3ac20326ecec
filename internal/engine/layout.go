package engine

import "slices"

// Layout describes the addresses of a state. It is immutable.
type Layout struct {
	Slots   []*Slot // of single cells; each has its index as Number
	Keys    *Slot   // of the cells that have a key; the last Number
	MaxKeys int     // the most addresses that may be set; 0 is no limit
	Journal int     // the most records; 0 is no limit
}

// Slot is a place for one cell, or for one cell under each key.
type Slot struct {
	Number int // the order of slots in conflicts and logs
	Keyed  bool
	Class  int  // the visibility class: which views see changes here
	Secret bool // the journal holds no values of it
	// Kept slots are those whose writes a branch keeps: see [Branch.Keep].
	Kept bool
	// Counted slots count towards MaxKeys and are listed.
	Counted bool
	Policy  Policy
	Form    Form
	Gate    Gate // nil unless parts of the value have separate classes
}

// Policy says what a join does with overwrites that meet other writes.
type Policy uint8

// The policies. They belong to the slot and not to an op: a join follows what
// was declared, whatever a single write chose.
const (
	PolicyConflict  Policy = iota // they are a conflict
	PolicyFirstWins               // the earliest writer in the order of the join wins
	PolicyLastWins                // the last one wins
)

// Address identifies a cell. It is comparable.
type Address struct {
	Slot *Slot
	Key  string // empty unless Slot is keyed
}

// compare orders addresses by slot, and then by key.
func (a Address) compare(b Address) int {
	switch {
	case a.Slot.Number != b.Slot.Number:
		return a.Slot.Number - b.Slot.Number
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return 0
}

// Form knows the values of a slot.
type Form interface {
	// Same reports whether a reader can tell two cells apart. Either may be
	// nil, which is an address that is not set.
	//
	// It is not named Equal: go-cmp would call such a method.
	Same(a, b *Cell) bool
	// Check validates a result. It may call code of the user.
	Check(m Merged) error
}

// Merger combines an update with the current cell, which is nil if the address
// is not set. The update is passed by value: passed by address, the op that
// contains it would be allocated.
type Merger interface {
	Merge(at Address, current *Cell, u Update) (Merged, error)
}

// Gate is for a slot whose value has parts of several visibility classes.
type Gate interface {
	// Admit returns an error if a view may not replace the content of a cell.
	// Either may be nil.
	Admit(v View, from *Cell, to *Merged) error
	// Classes returns the visibility classes that see a difference between two
	// cells, and that of the slot. Either cell may be nil.
	Classes(from, to *Cell) Bits
}

// View is the set of visibility classes that is seen. The zero View sees all.
type View struct{ Classes Bits }

// Sees reports whether the view includes a class.
func (v View) Sees(class int) bool { return v.Classes == nil || v.Classes.Has(class) }

// seesAny reports whether the view includes one of some classes.
func (v View) seesAny(classes Bits) bool {
	if v.Classes == nil {
		return true
	}
	for i, word := range classes {
		if word&v.Classes[i] != 0 {
			return true
		}
	}
	return false
}

// Bits is a set of small numbers. Sets that are combined have the same length.
type Bits []uint64

// NewBits returns an empty set for the numbers below n.
func NewBits(n int) Bits { return make(Bits, n>>6+1) }

// Has reports whether the set contains i.
func (b Bits) Has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

// Add adds i to the set.
func (b Bits) Add(i int) { b[i>>6] |= 1 << (i & 63) }

// And returns the numbers that are in both sets.
func (b Bits) And(c Bits) Bits {
	both := make(Bits, len(b))
	for i := range both {
		both[i] = b[i] & c[i]
	}
	return both
}

// without returns the numbers in b that are not in c: b itself if none is.
func (b Bits) without(c Bits) Bits {
	var left Bits
	for i := range b {
		if left == nil && b[i]&c[i] != 0 {
			left = slices.Clone(b)
		}
		if left != nil {
			left[i] &^= c[i]
		}
	}
	if left == nil {
		return b
	}
	return left
}

// Within reports whether c contains all of b.
func (b Bits) Within(c Bits) bool {
	for i := range b {
		if b[i]&^c[i] != 0 {
			return false
		}
	}
	return true
}
