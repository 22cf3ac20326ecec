package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/lab/way/marks"
)

func TestEachFunctionIsMarkedAndNoLineMoves(t *testing.T) {
	marked, err := mark("cell/cell.go", []byte(`// Package cell has cells.
package cell

import "sort"

var by = func(a, b int) bool { return a < b }

func native()

func (c *Cell[T]) Sort(list []int) {
	sort.Slice(list, func(i, k int) bool {
		less := func() bool { return by(i, k) }
		return less()
	})
}

func New() *Cell[int] { return nil }
`))
	require.NoError(t, err)
	require.Equal(t, `// Package cell has cells.
package cell; import marks_ "github.com/agentstate/state/lab/way/marks"

import "sort"

var by = func(a, b int) bool {marks_.Pass("cell/cell.go:var:1");  return a < b }

func native()

func (c *Cell[T]) Sort(list []int) {marks_.Pass("cell/cell.go:Cell.Sort"); 
	sort.Slice(list, func(i, k int) bool {marks_.Pass("cell/cell.go:Cell.Sort:1"); 
		less := func() bool {marks_.Pass("cell/cell.go:Cell.Sort:2");  return by(i, k) }
		return less()
	})
}

func New() *Cell[int] {marks_.Pass("cell/cell.go:New");  return nil }
`, string(marked))

	const none = "package cell\n\ntype Cell[T any] struct{}\n"
	marked, err = mark("cell/cell.go", []byte(none))
	require.NoError(t, err)
	require.Equal(t, none, string(marked), "without a function there is nothing to import")
}

// calls returns calls of functions, each of a goroutine.
func calls(functions ...[2]string) (list []marks.Call) {
	for _, f := range functions {
		list = append(list, marks.Call{Goroutine: f[0], Function: f[1]})
	}
	return list
}

func TestChangesAreCountedInEachGoroutine(t *testing.T) {
	require.Equal(t, figures{}, count(nil))
	require.Equal(t, figures{7, 5, 4, 3, 3, 2, 2}, count(calls(
		[2]string{"1", "a/x.go:F"}, [2]string{"1", "a/x.go:G"}, [2]string{"2", "c/z.go:T.F"}, [2]string{"1", "a/y.go:F"},
		[2]string{"1", "b/y.go:F"}, [2]string{"2", "c/z.go:T.F"}, [2]string{"1", "a/x.go:F"},
	)))
}

func TestTheTableHasTripsWithoutLiteralsFirst(t *testing.T) {
	table := newTable([]trip{{"there", calls([2]string{"1", "a/x.go:F"}, [2]string{"1", "b/y.go:G:1"})}, {"back", nil}})
	require.Equal(t, `| trip | calls | functions | files | packages | changes of file | changes of package | goroutines |
|---|---|---|---|---|---|---|---|
| there | 1 | 1 | 1 | 1 | 0 | 0 | 1 |
| back | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
| there, with literals | 2 | 2 | 2 | 2 | 1 | 1 | 1 |
| back, with literals | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
`, table.String())
	read, err := parseTable("The way at 1234.\n\n" + table.String())
	require.NoError(t, err)
	require.Equal(t, table, read)
	for _, wrong := range []string{"| there | 1 | 2 |", "| there | 1 | 2 | 3 | 4 | 5 | 6 | x |"} {
		_, err := parseTable("\n" + wrong)
		require.ErrorContains(t, err, "line 2")
	}
}

func TestAWayThatIsLongerOrAnotherOneIsAnError(t *testing.T) {
	was := figures{200, 100, 49, 3, 200, 20, 2}
	compared := func(now figures, also ...string) (shorter []string, err error) {
		fixed, measured := &table{}, &table{}
		fixed.add("there", was)
		measured.add("there", now)
		for _, name := range also {
			measured.add(name, figures{})
		}
		return measured.compare(fixed)
	}
	for _, now := range []figures{was, {204, 102, 49, 3, 204, 20, 2}, {196, 98, 49, 3, 196, 20, 2}} {
		shorter, err := compared(now)
		require.NoError(t, err)
		require.Empty(t, shorter)
	}
	for i, column := range columns {
		longer := was
		longer[i] += was[i]/50 + 1
		_, err := compared(longer)
		require.ErrorContains(t, err, "there: "+column, "a figure below 50 may not grow at all")
	}
	shorter, err := compared(figures{200, 97, 49, 3, 200, 20, 2})
	require.NoError(t, err)
	require.Equal(t, []string{"there: functions 97, 100 before"}, shorter)
	_, err = compared(was, "back")
	require.EqualError(t, err, "back: is new")
	_, err = (&table{}).compare(&table{trips: []string{"there"}})
	require.EqualError(t, err, "there: is not made any more")
}
