package state_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

func ExampleState_Changes() {
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	key := &state.Field[string]{Name: "key", Read: state.Only("search"), Secret: true}
	st := state.New(state.MustSchema(state.Team{"search": nil, "writer": nil}, notes, key))
	err := errors.Join(
		key.Set(st, "sk_82Kd0xyz"),
		notes.Set(st.As("search").WithCause("call_7"), []string{"found it"}),
		notes.Replace(st.As("writer"), nil),
	)
	fmt.Println(err)
	for c, err := range st.Changes(0) {
		fmt.Printf("%d %q %s %s = %v %q %v\n", c.Version, c.Agent, c.Op, c.Field, c.Value, c.Cause, err)
	}
	// An agent sees the changes to what it may read.
	for c := range st.As("writer").Changes(1) {
		fmt.Println("writer:", c.Version, c.Op, c.Field)
	}
	// Output:
	// <nil>
	// 1 "" set key = [SECRET] "" <nil>
	// 2 "search" set notes = [found it] "call_7" <nil>
	// 3 "writer" replace notes = [] "" <nil>
	// writer: 2 set notes
	// writer: 3 replace notes
}

func ExampleState_Watch() {
	done := &state.Field[int]{Name: "done"}
	st := state.New(state.MustSchema(done))
	go func() {
		for i := range 3 {
			if err := done.Set(st, i+1); err != nil {
				fmt.Println(err)
			}
		}
	}()
	for c, err := range st.Watch(context.Background(), 0, "done") {
		fmt.Println(c.Version, c.Value, err)
		if c.Value == 3 {
			break
		}
	}
	// Output:
	// 1 1 <nil>
	// 2 2 <nil>
	// 3 3 <nil>
}

// Two snapshots are compared, by the rights of the handle.
func ExampleState_Changed() {
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public}
	key := &state.Field[string]{Name: "key", Secret: true}
	st := state.New(state.MustSchema(state.AllowUndeclared, state.Team{"search": nil}, notes, key))
	before := st.Snapshot()
	err := errors.Join(
		key.Set(st, "sk_82Kd0xyz"),
		notes.Set(st, []string{"found it"}),
		st.KV().Set("theme", "dark"),
	)
	names, _ := st.Changed(before)
	fmt.Println(names, err)
	fmt.Println(st.As("search").Changed(before))
	// Output:
	// [notes key theme] <nil>
	// [notes theme] <nil>
}

func ExampleState_At() {
	city := &state.Field[string]{Name: "city"}
	st := state.New(state.MustSchema(city))
	fmt.Println(city.Set(st, "Lisbon"), city.Set(st, "Porto"))
	for v := range st.Version() + 1 {
		past, err := st.At(v)
		fmt.Println(v, city.Or(past, "-"), err)
	}
	_, err := st.At(99)
	fmt.Println(err, errors.Is(err, state.ErrNotFound))
	// Output:
	// <nil> <nil>
	// 0 - <nil>
	// 1 Lisbon <nil>
	// 2 Porto <nil>
	// state: version 99: no such version; the last is 2 true
}

// Effects record the changes of a run as plain data.
func ExampleState_Effects() {
	title := &state.Field[string]{Name: "title"}
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(title, notes))
	fmt.Println(title.Set(st, "Order"), notes.Set(st, []string{"late", "paid"}))

	before := st.Snapshot()
	fmt.Println(title.Set(st, "Refund"), notes.Set(st, []string{"sent back"}))
	effects, err := st.Effects(before)
	for _, e := range effects {
		fmt.Println(e.Field, e.Kind, e.Value)
	}
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// title set "Refund"
	// notes append ["sent back"]
	// <nil>
}
