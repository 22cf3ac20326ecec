package state_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state"
)

func ExampleState_Update() {
	from := &state.Field[int]{Name: "from"}
	to := &state.Field[int]{Name: "to"}
	st := state.New(state.MustSchema(from, to))
	fmt.Println(from.Set(st, 10))

	move := func(tx *state.State) error {
		n := from.Or(tx, 0)
		if n < 4 {
			return errors.New("not enough")
		}
		return errors.Join(from.Set(tx, n-4), to.Set(tx, to.Or(tx, 0)+4))
	}
	fmt.Println(st.Update(move), st.Update(move), st.Update(move))
	fmt.Println(from.Or(st, 0), to.Or(st, 0), "at version", st.Version())
	// Output:
	// <nil>
	// <nil> <nil> not enough
	// 2 8 at version 3
}

func ExampleState_Join() {
	docs := &state.Field[[]string]{Name: "documents"}
	st := state.New(state.MustSchema(docs))
	sources := []string{"wiki", "tickets", "manuals"}
	branches := make([]*state.State, len(sources))
	var wg sync.WaitGroup
	for i, source := range sources {
		branches[i] = st.Fork()
		wg.Go(func() {
			if err := docs.Set(branches[i], []string{"found in " + source}); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(st.Join(branches...), "at version", st.Version())
	for _, doc := range docs.Or(st, nil) {
		fmt.Println(doc)
	}
	fmt.Println(errors.Is(st.Join(branches[0]), state.ErrReadOnly))
	// Output:
	// <nil> at version 1
	// found in wiki
	// found in tickets
	// found in manuals
	// true
}

// Writes that do not combine are refused, and nothing of any branch is applied.
func ExampleState_Join_conflict() {
	title := &state.Field[string]{Name: "title"}
	st := state.New(state.MustSchema(title))
	a, b := st.Fork(), st.Fork()
	fmt.Println(title.Set(a, "Short"), title.Set(b, "Long"))
	err := st.Join(a, b)
	var conflict *state.ConflictError
	fmt.Println(errors.As(err, &conflict), conflict.Fields, title.Has(st))
	fmt.Println(st.Join(b), title.Or(st, "")) // one of them alone is fine
	// Output:
	// <nil> <nil>
	// true [title] false
	// <nil> Long
}

func ExampleState_Snapshot() {
	city := &state.Field[string]{Name: "city"}
	st := state.New(state.MustSchema(city))
	fmt.Println(city.Set(st, "Lisbon"))
	snap := st.Snapshot()
	fmt.Println(city.Set(st, "Porto"), city.Or(snap, ""), city.Set(snap, "Faro"))
	fmt.Println(st.Revert(snap), city.Or(st, ""), "at version", st.Version())
	// Output:
	// <nil>
	// <nil> Lisbon state: "city": read-only: a snapshot or a transaction that has ended
	// <nil> Lisbon at version 3
}

// After a conflict, a branch can take its own write back and be joined.
func ExampleState_Join_settled() {
	title := &state.Field[string]{Name: "title"}
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(title, notes))
	fmt.Println(title.Set(st, "Draft"))
	a, b := st.Fork(), st.Fork()
	fmt.Println(title.Set(a, "Short"), title.Set(b, "Long"), notes.Set(b, []string{"music"}))
	fmt.Println(errors.Is(st.Join(a, b), state.ErrConflict))

	fmt.Println(title.Set(b, "Draft"), st.Join(a, b)) // b withdraws its title
	fmt.Println(title.Or(st, ""), notes.Or(st, nil))
	// Output:
	// <nil>
	// <nil> <nil> <nil>
	// true
	// <nil> <nil>
	// Short [music]
}

// Ten goroutines want one of three items. Each transaction is applied once or
// not at all, whatever the others do.
func ExampleState_Update_concurrent() {
	stock := &state.Field[int]{Name: "stock"}
	reserved := &state.Field[int]{Name: "reserved"}
	st := state.New(state.MustSchema(stock, reserved))
	fmt.Println(stock.Set(st, 3))
	soldOut := errors.New("sold out")

	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			err := st.Update(func(tx *state.State) error {
				n := stock.Or(tx, 0)
				if n == 0 {
					return soldOut
				}
				return errors.Join(stock.Set(tx, n-1), reserved.Set(tx, reserved.Or(tx, 0)+1))
			})
			if errors.Is(err, soldOut) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	fmt.Println(stock.Or(st, 0), reserved.Or(st, 0), refused.Load(), "at version", st.Version())
	// Output:
	// <nil>
	// 0 3 7 at version 4
}

// Values for one request are read like any other, and never written.
func ExampleState_With() {
	user := &state.Field[string]{Name: "user"}
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(user, notes))

	req, err := st.With(map[string]any{"user": "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = notes.Set(req, []string{"asked by " + user.Or(req, "nobody")})

	fmt.Println(user.Or(req, "nobody"), user.Or(st, "nobody"), notes.Or(st, nil))
	fmt.Println(user.Set(req, "ben"))
	// Output:
	// ann nobody [asked by ann]
	// state: "user": read-only: the value was given to With
}

// A fork of a snapshot is a clone: it is never joined, and keeps no record of
// what is written to it.
func ExampleState_Fork_clone() {
	total := &state.Field[int]{Name: "total", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(total))
	_ = total.Set(st, 40)

	clone := st.Snapshot().Fork()
	_ = total.Set(clone, 2)

	fmt.Println(total.Or(clone, 0), total.Or(st, 0))
	fmt.Println(st.Join(clone))
	// Output:
	// 42 40
	// state: join: branch 0: a fork of a snapshot, which keeps no record of its writes
}
