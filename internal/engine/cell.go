package engine

// Cell is the value at an address as one write left it. It is immutable, and
// every tree that holds it shares it.
type Cell struct {
	Value any // in the form of its slot
	Size  int // of the value, towards limits

	born        uint64 // the version since which the address is set
	overwritten uint64 // the last version that did not merge with what was there
	computed    uint64 // the same version, if its value was computed from a read
}

// merged returns the content of the cell, nil if there is no cell.
func (c *Cell) merged() *Merged {
	if c == nil {
		return nil
	}
	return &Merged{Value: c.Value, Size: c.Size}
}

// Update is the value that an op writes, before it is merged.
type Update struct {
	Value any // in the form of its slot
	Size  int
	// Tail is greater than 0 if the update is only the last Tail elements of
	// the list in Value.
	Tail int32
	// Borrowed is set while Value belongs to the caller.
	Borrowed bool
}

// Merged is the result of an op: the next content of a cell.
type Merged struct {
	Value any // in the form of its slot
	Size  int
	// Tail is greater than 0 if Value is a list whose last Tail elements are
	// copies of those of a borrowed update.
	Tail int32
}

// Op is one write to one address.
type Op struct {
	Address
	Update
	Merger Merger // nil in a deletion, which cannot be merged
	Author *Author
	Kind   uint8 // the caller's; the engine does not read it
	// Classes are the visibility classes that see this op, or nil for that of the
	// slot. In a slot with a [Gate], they are set when an op without any is
	// committed that overwrites the cell.
	Classes Bits

	// The properties of the Merger are noted when an op is made: a join needs
	// them under the lock, and for ops whose Merger is no longer the slot's.

	Overwrites bool // the result takes no account of the current cell
	Shares     bool // the result shares memory with the current cell
	Computed   bool // the update was computed from a read
	Callback   bool // merging or checking it calls code of the user
}

// Author signs ops. The engine carries it and does not read it.
type Author struct{ Agent, Cause string }

// Apply returns the result of the op on the current cell. It does not check the
// result.
func (o *Op) Apply(current *Cell) (Merged, error) {
	return o.Merger.Merge(o.Address, current, o.Update)
}

// own replaces a borrowed update by what its merger has made of it.
func (o *Op) own(m *Merged) {
	switch {
	case !o.Borrowed:
		return
	case o.Overwrites:
		o.Value = m.Value
	case m.Tail > 0:
		o.Value, o.Tail = m.Value, m.Tail
	}
	o.Borrowed = false
}

// Edit is what a commit does to one cell: replace From by To, as the ops say. A
// nil cell is an address that is not set. Without ops, an edit only requires
// that the cell is still From.
type Edit struct {
	Address
	From *Cell
	To   *Merged
	Ops  []Op

	Overwrites bool // To takes no account of From
	Computed   bool // To was computed from a read
	Single     bool // To is what the only one of Ops has made of From
	Read       bool // a transaction has read From
}
