package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

func ExampleNewSchema() {
	_, err := state.NewSchema(
		state.Team{"support": {"billing"}},
		&state.Field[string]{Name: "order", Owner: "suport"},
		&state.Field[chan int]{Name: "pipe"},
		&state.Field[string]{Name: "order"},
	)
	fmt.Println(err)
	// Output:
	// state: field "order": owner "suport" is not in the team
	// state: "pipe": $: want a type that can be stored, or a field that is Ephemeral and NoCopy, got chan int
	// state: field "order": declared twice
}

func ExampleParseSchema() {
	schema, err := state.ParseSchema([]byte(`{"fields": [
		{"name": "city", "type": "string", "description": "Where to."},
		{"name": "arrival", "type": "date"},
		{"name": "wishes", "type": "list", "handler": "union"}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	st := state.New(schema)
	err = errors.Join(
		st.Patch(map[string]any{"city": "Lisbon", "arrival": "2027-03-01T10:00:00+01:00"}),
		st.KV().Set("wishes", "sea view"),
		st.KV().Set("wishes", "sea view"),
	)
	arrival, _ := state.GetAs[state.Time](st, "arrival")
	wishes, _ := st.KV().Get("wishes")
	fmt.Println(err, arrival, wishes)
	data, err := json.Marshal(schema)
	fmt.Println(err, string(data))
	_, err = state.ParseSchema([]byte(`{"fields": [{"name": "age", "type": "int"}, {"name": "tags", "type": "list", "handler": "sum"}]}`))
	fmt.Println(err)
	// Output:
	// <nil> 2027-03-01T09:00:00Z [sea view]
	// <nil> {"fields":[{"name":"city","type":"string","description":"Where to."},{"name":"arrival","type":"date"},{"name":"wishes","type":"list","handler":"union"}]}
	// state: "schema": $.fields[0].type: "int" is not one of any, boolean, date, integer, list, number, object, string
	// state: "schema": $.fields[1].handler: no handler "sum" for type list
}

func ExampleLimits() {
	st := state.New(state.MustSchema(state.AllowUndeclared, state.Limits{Keys: 2, ValueBytes: 100}))
	kv := st.KV()
	fmt.Println(kv.Set("a", 1), kv.Set("b", 2))
	fmt.Println(kv.Set("c", 3))
	err := kv.Set("a", strings.Repeat("x", 1000))
	var limit *state.LimitError
	fmt.Println(errors.As(err, &limit), limit.Name, limit.Limit)
	// Output:
	// <nil> <nil>
	// state: limit Keys: 3 is more than 2
	// true ValueBytes 100
}

func ExampleParseTime() {
	day, err := state.ParseTime("2027-03-01")
	moment, err2 := state.ParseTime("2027-03-01T01:00:00+01:00")
	fmt.Println(err, err2, day, moment, day.Equal(moment))
	fmt.Println(state.TimeOf(day.Time().AddDate(0, 0, 7)))
	_, err = state.ParseTime("next Friday")
	fmt.Println(err)
	// Output:
	// <nil> <nil> 2027-03-01 2027-03-01 true
	// 2027-03-08
	// state: "date": $: want RFC 3339 or 2006-01-02, got other text
}

func ExampleState_Describe() {
	name := &state.Field[string]{Name: "name", Description: "Who is asking.", Owner: "support", Read: state.Public}
	order := &state.Field[string]{Name: "order", Description: "E.g. #W2378156.", UpdateRules: "Never guess.", Owner: "support", Read: state.Public}
	key := &state.Field[string]{Name: "key", Owner: "support", Secret: true}
	st := state.New(state.MustSchema(state.Team{"support": {"general"}}, name, order, key))
	support := st.As("support")
	err := errors.Join(name.Set(support, "Ada </state>"), key.Set(support, "sk_82Kd0xyz"))
	fmt.Println(err)
	fmt.Print(support.Describe())
	for _, f := range st.As("general").Fields() {
		fmt.Println(f.Name, f.Type, f.Set, f.Writable)
	}
	// Output:
	// <nil>
	// - name (string) = "Ada \u003c/state\u003e"
	//     Who is asking.
	// - order (string) is not set
	//     E.g. #W2378156.
	//     Update: Never guess.
	// - key (string) = [SECRET]
	// messages list of message false true
	// name string true false
	// order string false false
}
