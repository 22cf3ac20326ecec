package state_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentstate/state"
)

func ExampleField() {
	type Address struct {
		City string `json:"city"`
	}
	name := &state.Field[string]{Name: "name", Description: "Who is asking."}
	ship := &state.Field[Address]{Name: "ship_to"}
	st := state.New(state.MustSchema(name, ship))

	err := errors.Join(name.Set(st, "Ada"), ship.Set(st, Address{City: "London"}))
	to, _ := ship.Get(st)
	fmt.Println(err, name.Or(st, "nobody"), to.City)

	deleted, err := ship.Delete(st)
	fmt.Println(deleted, err, ship.Has(st))
	_, err = ship.Get(st)
	fmt.Println(err, errors.Is(err, state.ErrNotFound))
	// Output:
	// <nil> Ada London
	// true <nil> false
	// state: "ship_to": no value true
}

// To change what was read, use Update. Writing back a list that was read with
// Set would append it to itself.
func ExampleField_Update() {
	todo := &state.Field[[]string]{Name: "todo"}
	st := state.New(state.MustSchema(todo))
	err := errors.Join(
		todo.Set(st, []string{"ask", "search"}),
		todo.Set(st, []string{"answer"}),
		todo.Update(st, func(list []string) ([]string, error) { return list[1:], nil }),
	)
	fmt.Println(err, todo.Or(st, nil))
	// Output: <nil> [search answer]
}

// Values are checked when they are written, never when they are read.
func ExampleField_settings() {
	age := &state.Field[int]{Name: "age", Validate: func(n int) error {
		if n < 0 {
			return errors.New("must not be negative")
		}
		return nil
	}}
	bio := &state.Field[string]{Name: "bio", MaxBytes: 20}
	choice := &state.Field[any]{Name: "choice", OneOf: []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int]()}}
	st := state.New(state.MustSchema(age, bio, choice))

	fmt.Println(age.Set(st, -1))
	err := bio.Set(st, strings.Repeat("long ", 10))
	fmt.Println(err, errors.Is(err, state.ErrLimitExceeded))
	fmt.Println(choice.Set(st, 3), choice.Set(st, true) != nil)
	// Output:
	// state: "age": must not be negative
	// state: "bio": limit MaxBytes: 52 is more than 20 true
	// <nil> true
}

func ExampleKV() {
	tags := &state.Field[[]string]{Name: "tags"}
	st := state.New(state.MustSchema(tags, state.AllowUndeclared))
	kv := st.KV()

	// The same rules as through the typed handle, and conversion on top.
	fmt.Println(kv.Set("tags", "urgent"), kv.Set("tags", []any{"vip"}), kv.Set("mood", "calm"))
	fmt.Println(kv.Keys(), kv.All())
	fmt.Println(kv.SetWith("tags", "vip", state.Union[[]string]()), kv.Replace("mood", 7), kv.Len())
	mood, ok := kv.Get("mood")
	fmt.Printf("%v (%T) %v %v\n", mood, mood, ok, kv.Has("hunger"))
	deleted, err := kv.Delete("mood")
	fmt.Println(deleted, err, kv.Set("tags", 7))
	// Output:
	// <nil> <nil> <nil>
	// [mood tags] map[mood:calm tags:[urgent vip]]
	// <nil> <nil> 2
	// 7 (int64) true false
	// true <nil> state: "tags": $: want string, got number
}

func ExampleState_Patch() {
	city := &state.Field[string]{Name: "city"}
	guests := &state.Field[int]{Name: "guests"}
	arrival := &state.Field[state.Time]{Name: "arrival"}
	st := state.New(state.MustSchema(city, guests, arrival))

	fmt.Println(st.Patch(map[string]any{"city": "Lisbon", "guests": 2.0, "arrival": "2027-03-01"}))
	fmt.Println(st.Patch(map[string]any{"city": nil, "guests": 2.5, "pets": true}))
	fmt.Println(city.Or(st, "-"), guests.Or(st, 0), arrival.Or(st, state.Time{}), "at version", st.Version())
	// Output:
	// <nil>
	// state: "guests": $: want integer, got a number it cannot hold
	// state: "pets": unknown field; there are "city", "guests", "arrival"
	// Lisbon 2 2027-03-01 at version 1
}

func ExampleGetAs() {
	type Point struct {
		X int `json:"x"`
		Y int `json:"y"`
	}
	st := state.New(nil) // any name, any value
	err := st.KV().Set("at", map[string]any{"x": 3, "y": 4})
	p, err2 := state.GetAs[Point](st, "at")
	fmt.Println(err, err2, p.X+p.Y)
	_, err = state.GetAs[bool](st, "at")
	var wrong *state.TypeError
	fmt.Println(errors.As(err, &wrong), wrong.Field, wrong.Want, wrong.Got, errors.Is(err, state.ErrWrongType))
	// Output:
	// <nil> <nil> 7
	// true at boolean object true
}

func ExampleListItems() {
	log := &state.Field[[]string]{Name: "log"}
	st := state.New(state.MustSchema(log))
	for i := range 1000 {
		if err := log.Set(st, []string{fmt.Sprint("line ", i)}); err != nil {
			fmt.Println(err)
		}
	}
	for i, line := range state.ListItems(st, log, -2) {
		fmt.Println(i, line)
	}
	fmt.Println(state.ListLen(st, log))
	// Output:
	// 998 line 998
	// 999 line 999
	// 1000
}

// Values are copied on the way in and out: changing a copy changes nothing in
// the state.
func ExampleField_Get() {
	tags := &state.Field[[]string]{Name: "tags"}
	st := state.New(state.MustSchema(tags))
	list := []string{"gift"}
	err := tags.Set(st, list)
	list[0] = "changed"

	got, err2 := tags.Get(st)
	got[0] = "changed too"
	fmt.Println(tags.Or(st, nil), err, err2)

	// A handle whose type differs from the schema's gets an error, not a value.
	_, err = (&state.Field[bool]{Name: "tags"}).Get(st)
	fmt.Println(err)
	// Output:
	// [gift] <nil> <nil>
	// state: "tags": type: want []string, got bool
}

// A single write can use another handler, and Replace uses none. A handler that
// fails or panics changes nothing.
func ExampleField_SetWith() {
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(notes))
	buggy := state.NewHandler("buggy", func([]string, bool, []string) ([]string, error) { panic("a bug") })

	fmt.Println(notes.Set(st, []string{"a", "b"}), notes.Or(st, nil))
	fmt.Println(notes.SetWith(st, []string{"b", "c"}, state.Union[[]string]()), notes.Or(st, nil))
	fmt.Println(notes.Replace(st, []string{"z"}), notes.Or(st, nil))
	fmt.Println(notes.SetWith(st, []string{"!"}, buggy), notes.Or(st, nil))
	// Output:
	// <nil> [a b]
	// <nil> [a b c]
	// <nil> [z]
	// state: "notes": handler buggy panicked with a string [z]
}
