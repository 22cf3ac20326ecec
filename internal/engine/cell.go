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
