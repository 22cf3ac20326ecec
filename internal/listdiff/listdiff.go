// Package listdiff finds a short sequence of edits that turns one list into
// another.
//
// It takes what differs to be one part of the list, from which elements were
// removed and to which others were added, and recognizes a window that moved
// on: elements that left at the front while others came at the end. It runs in
// linear time. It does not search for the shortest edits of arbitrary changes.
package listdiff

import "slices"

// Edit is one edit of a list. Its kinds are spelled like those of state.Effect.
type Edit struct {
	Kind string
	// N is the number of elements that go (drop_first) or stay (truncate), or
	// the place of the edit (insert, remove_at).
	N int
	// From and To delimit the elements of the new list that set, append and
	// insert put into the list.
	From, To int
}

// Change says how an old list becomes a new one. The old list consists of
// Dropped, Kept, Removed and Tail elements, in this order, and the new one of
// the Kept and the Tail elements, with Added elements between them, or after
// the tail if Appended.
type Change struct {
	Dropped, Kept, Removed, Added, Tail int
	Appended                            bool
}

// Between returns the edits that turn from into to.
func Between[T comparable](from, to []T) []Edit {
	return Narrow(Change{Removed: len(from), Added: len(to)}, from, to).Edits()
}

// Narrow looks for elements that stay among those that a change removes and
// adds. The change has no tail yet.
func Narrow[T comparable](c Change, removed, added []T) Change {
	prefix := 0
	for prefix < min(len(removed), len(added)) && removed[prefix] == added[prefix] {
		prefix++
	}
	removed, added = removed[prefix:], added[prefix:]
	suffix := 0
	for suffix < min(len(removed), len(added)) &&
		removed[len(removed)-1-suffix] == added[len(added)-1-suffix] {
		suffix++
	}
	moved := overlap(removed, added)
	c.Kept += prefix
	c.Tail = max(moved, suffix)
	c.Removed, c.Added = len(removed)-c.Tail, len(added)-c.Tail
	c.Appended = moved >= suffix
	return c
}

// Edits returns the edits of a change. Elements are removed one by one from the
// middle of a list, so a list that would lose more there than it keeps is set
// as a whole, like a list of which nothing stays.
func (c Change) Edits() []Edit {
	stay := c.Kept + c.Tail
	before, after := c.Dropped+stay+c.Removed, stay+c.Added
	middle := c.Kept > 0 && c.Tail > 0
	if stay == 0 && before > 0 && after > 0 || middle && c.Removed > stay {
		return []Edit{{Kind: "set", To: after}}
	}
	var edits []Edit
	if c.Kept == 0 && c.Tail > 0 {
		c.Dropped, c.Removed = c.Dropped+c.Removed, 0
	}
	if c.Dropped > 0 {
		edits = append(edits, Edit{Kind: "drop_first", N: c.Dropped})
	}
	switch {
	case c.Removed == 0:
	case middle:
		edits = append(edits, slices.Repeat([]Edit{{Kind: "remove_at", N: c.Kept}}, c.Removed)...)
	default:
		edits = append(edits, Edit{Kind: "truncate", N: c.Kept})
	}
	switch {
	case c.Added == 0:
	case c.Appended || c.Tail == 0:
		edits = append(edits, Edit{Kind: "append", From: stay, To: after})
	default:
		edits = append(edits, Edit{Kind: "insert", N: c.Kept, From: c.Kept, To: c.Kept + c.Added})
	}
	return edits
}

// overlap returns the length of the longest end of a that is a beginning of b.
// It is the search of Knuth, Morris and Pratt for b in a, so that lists of many
// equal elements take linear time.
func overlap[T comparable](a, b []T) int {
	most := min(len(a), len(b))
	a, b = a[len(a)-most:], b[:most]
	// border[i] is the length of the longest beginning of b that ends at b[i]
	// and is shorter than b[:i+1].
	border := make([]int, most)
	extend := func(n int, x T) int {
		for n > 0 && b[n] != x {
			n = border[n-1]
		}
		if b[n] == x {
			n++
		}
		return n
	}
	for i, n := 1, 0; i < most; i++ {
		n = extend(n, b[i])
		border[i] = n
	}
	n := 0
	for _, x := range a {
		n = extend(n, x)
	}
	return n
}
