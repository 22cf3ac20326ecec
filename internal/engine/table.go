package engine

// table is an array of values that belong to visibility classes or readers. It
// is in pages that trees share, as they share cells: a tree changes pages that
// bear its owner number and copies others.
type table[E any] struct {
	first *tablePage[E]   // most tables have one page
	more  []*tablePage[E] // the others
}

const tablePageLen = 16

type tablePage[E any] struct {
	owner    uint64
	elements []E
	one      [1]E // the array of a page of one element
}

// newTable returns a table of n zero values.
func newTable[E any](n int) table[E] {
	zero := &tablePage[E]{}
	zero.elements = zero.one[:]
	if n > 1 {
		zero.elements = make([]E, min(n, tablePageLen))
	}
	t := table[E]{first: zero}
	if n > tablePageLen {
		t.more = make([]*tablePage[E], (n-1)/tablePageLen)
		for i := range t.more {
			t.more[i] = zero
		}
	}
	return t
}

// clone returns a table for a tree with this owner number. If taken is set, it
// is the same number, and t is not used any more. If the table has one element,
// its page is the one given, if any.
func (t *table[E]) clone(owner uint64, taken bool, page *tablePage[E]) table[E] {
	c := *t
	if t.more != nil && !taken {
		c.more = append([]*tablePage[E](nil), t.more...)
	}
	if page != nil && len(t.first.elements) == 1 {
		page.owner, page.one = owner, t.first.one
		page.elements = page.one[:]
		c.first = page
	}
	return c
}

// at returns element i, which the caller must not change.
func (t *table[E]) at(i int) *E {
	if i < tablePageLen {
		return &t.first.elements[i]
	}
	return &t.more[i/tablePageLen-1].elements[i%tablePageLen]
}

// own returns element i for the owner of the tree to change.
func (t *table[E]) own(owner uint64, i int) *E {
	at := &t.first
	if i >= tablePageLen {
		at = &t.more[i/tablePageLen-1]
	}
	if (*at).owner != owner {
		*at = (*at).clone(owner)
	}
	return &(*at).elements[i%tablePageLen]
}

func (p *tablePage[E]) clone(owner uint64) *tablePage[E] {
	c := &tablePage[E]{owner: owner}
	c.elements = c.one[:0]
	if n := len(p.elements); n > 1 {
		c.elements = make([]E, 0, n)
	}
	c.elements = append(c.elements, p.elements...)
	return c
}
