package view

// pageRows is the number of rows of one page of a list.
const pageRows = 50

// window is the part of a list that a page shows.
type window struct {
	Name  string `json:"-"` // the parameter with the first row
	From  int    `json:"from"`
	To    int    `json:"to"`
	Count int    `json:"count"`
	rows  int    // of a page
}

// window returns the part of a list of n rows that the query asks for.
func (q Query) window(name string, n int) (window, error) { return q.windowOf(name, n, pageRows) }

// windowOf is window for pages of a number of rows.
func (q Query) windowOf(name string, n, rows int) (window, error) {
	skip, _, err := q.number(name)
	if err != nil {
		return window{}, err
	}
	from := int(min(skip, uint64(n)))
	return window{name, from, min(from+rows, n), n, rows}, nil
}

// Before is the parameter of the page before, "" if that is the first one.
func (w window) Before() any {
	if w.From <= w.rows {
		return ""
	}
	return w.From - w.rows
}

// More reports whether there is a page after this one.
func (w window) More() bool { return w.To < w.Count }
