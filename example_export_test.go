package state_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentstate/state"
)

func ExampleState_Export() {
	score := &state.Field[int]{Name: "score"}
	scratch := &state.Field[string]{Name: "scratch", Ephemeral: true}
	schema := state.MustSchema(score, scratch)
	st := state.New(schema)
	fmt.Println(score.Set(st, 7), scratch.Set(st, "for this run"))

	data, err := st.Export()
	fmt.Println(err, string(data))
	back, err := state.Import(schema, data)
	fmt.Println(err, score.Or(back, 0), scratch.Has(back), back.Version())

	fmt.Println(st.EndRun(), scratch.Has(st))
	// Output:
	// <nil> <nil>
	// <nil> {"format":1,"version":2,"fields":[{"name":"score","value":7}]}
	// <nil> 7 false 2
	// <nil> false
}

func ExampleState_MarshalJSON() {
	city := &state.Field[string]{Name: "city"}
	key := &state.Field[string]{Name: "key", Secret: true}
	st := state.New(state.MustSchema(city, key))
	fmt.Println(city.Set(st, "Lisbon"), key.Set(st, "sk_82Kd0xyz"))
	enc := json.NewEncoder(os.Stdout)
	fmt.Println(enc.Encode(st))
	fmt.Printf("%v\n%+v", st, st)
	// Output:
	// <nil> <nil>
	// {"version":2,"values":{"city":"Lisbon","key":"[SECRET]"},"results":0}
	// <nil>
	// state: version 2, 2 set, 0 results
	// state: version 2, 2 set, 0 results
	// - city (string) = "Lisbon"
	// - key (string) = [SECRET]
}

// Import converts values to the types of a newer schema if the conversion is
// lossless. Damage is an error that says where, never an empty state.
func ExampleImport() {
	score := &state.Field[int]{Name: "score"}
	due := &state.Field[string]{Name: "due"}
	st := state.New(state.MustSchema(score, due))
	fmt.Println(st.Patch(map[string]any{"score": 7, "due": "2027-01-31"}))
	data, err := st.Export()
	fmt.Println(err)

	points := &state.Field[float64]{Name: "score"}
	date := &state.Field[state.Time]{Name: "due"}
	newer := state.MustSchema(points, date, &state.Field[string]{Name: "level"})
	back, err := state.Import(newer, data)
	fmt.Println(err, points.Or(back, 0), date.Or(back, state.Time{}).Time().Weekday(), "at version", back.Version())

	_, err = state.Import(newer, []byte(`{"format":1,"version":3,"fields":[{"name":"score","value":"seven"}]}`))
	fmt.Println(err)
	_, err = state.Import(newer, []byte(`{"format":2}`))
	fmt.Println(err)
	_, err = state.Import(newer, data[:len(data)/2])
	fmt.Println(err != nil)
	// Output:
	// <nil>
	// <nil>
	// <nil> 7 Sunday at version 1
	// state: import: "score": $: want number, got string
	// state: "import": $: format 2; this package reads format 1
	// true
}
