package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

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
	// state: "pets": unknown field
	// Lisbon 2 2027-03-01 at version 1
}

func ExampleGet() {
	type Point struct {
		X int `json:"x"`
		Y int `json:"y"`
	}
	st := state.New(nil) // any name, any value
	err := st.KV().Set("at", map[string]any{"x": 3, "y": 4})
	p, err2 := state.Get[Point](st, "at")
	fmt.Println(err, err2, p.X+p.Y)
	_, err = state.Get[bool](st, "at")
	var wrong *state.TypeError
	fmt.Println(errors.As(err, &wrong), wrong.Field, wrong.Want, wrong.Got, errors.Is(err, state.ErrWrongType))
	// Output:
	// <nil> <nil> 7
	// true at boolean object true
}

func ExampleItems() {
	log := &state.Field[[]string]{Name: "log"}
	st := state.New(state.MustSchema(log))
	for i := range 1000 {
		if err := log.Set(st, []string{fmt.Sprint("line ", i)}); err != nil {
			fmt.Println(err)
		}
	}
	for i, line := range state.Items(st, log, -2) {
		fmt.Println(i, line)
	}
	fmt.Println(state.Len(st, log))
	// Output:
	// 998 line 998
	// 999 line 999
	// 1000
}

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
	// state: "pipe": $: want a type that can be stored, got chan int
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
	arrival, _ := state.Get[state.Time](st, "arrival")
	wishes, _ := st.KV().Get("wishes")
	fmt.Println(err, arrival, wishes)
	data, err := json.Marshal(schema)
	fmt.Println(err, string(data))
	// Output:
	// <nil> 2027-03-01T09:00:00Z [sea view]
	// <nil> {"fields":[{"name":"city","type":"string","description":"Where to."},{"name":"arrival","type":"date"},{"name":"wishes","type":"list","handler":"union"}]}
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

func ExampleState_As() {
	order := &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	draft := &state.Field[string]{Name: "draft", Owner: "support"} // Private
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "general"}}, order, card, draft))
	if err := st.Patch(map[string]any{"order": "#1", "card": "4242", "draft": "Dear Ada"}); err != nil {
		fmt.Println(err)
	}
	for _, agent := range []string{"support", "billing", "general"} {
		fmt.Println(agent, st.As(agent).KV().Keys())
	}
	err := order.Set(st.As("general"), "#2")
	fmt.Println(err)
	var denied *state.AccessError
	fmt.Println(errors.As(err, &denied), denied.Agent, denied.Op, denied.Field)

	// A handle can be narrowed, never widened.
	fmt.Println(st.As("billing").As("general").As("billing").KV().Keys())
	// Output:
	// support [draft order]
	// billing [card order]
	// general [order]
	// state: set "order": access denied to agent "general"
	// true general set order
	// [order]
}

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
	fmt.Println(errors.Is(st.Join(branches[0]), state.ErrJoined))
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
	// <nil> Lisbon state: read-only
	// <nil> Lisbon at version 3
}

func ExampleState_At() {
	city := &state.Field[string]{Name: "city"}
	st := state.New(state.MustSchema(city))
	fmt.Println(city.Set(st, "Lisbon"), city.Set(st, "Porto"))
	for v := range st.Version() + 1 {
		past, err := st.At(v)
		fmt.Println(v, city.Or(past, "-"), err)
	}
	// Output:
	// <nil> <nil>
	// 0 - <nil>
	// 1 Lisbon <nil>
	// 2 Porto <nil>
}

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
	// An agent sees the changes to what it may read, without gaps.
	for c := range st.As("writer").Changes(1) {
		fmt.Println("writer:", c.Version, c.Op, c.Field)
	}
	// Output:
	// <nil>
	// 1 "" set key = [SECRET] "" <nil>
	// 2 "search" set notes = [found it] "call_7" <nil>
	// 3 "writer" replace notes = [] "" <nil>
	// writer: 2 replace notes
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

func ExampleHistory_Append() {
	st := state.New(state.MustSchema(state.Team{"writer": nil}))
	writer := st.As("writer")
	call := state.ToolCall{ID: "call_1", Name: "rhymes", Input: `{"word":"rain"}`}
	err := errors.Join(
		state.Messages.Set(st, []state.Message{state.UserText("A line about rain.")}),
		writer.History().Append(state.InferenceResult{
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, `["plain"]`)},
		}),
		writer.History().Append(state.InferenceResult{
			Output: []state.Message{state.AssistantText("Rain on the plain.")},
		}),
	)
	last, _ := st.History().Last()
	fmt.Println(err, st.History().Len(), last.Agent)
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// <nil> 2 writer
	// text "user": "A line about rain."
	// tool_call "assistant": "rhymes" id "call_1"
	// tool_result "rhymes" id "call_1": "[\"plain\"]"
	// text "assistant": "Rain on the plain."
}

func ExampleHistory_Format() {
	st := state.New(nil)
	for _, r := range []state.InferenceResult{
		{Agent: "writer", Output: []state.Message{state.AssistantText("Rain on the plain.")}},
		{Agent: "critic", Output: []state.Message{state.AssistantText("Too plain.")}},
	} {
		if err := st.History().Append(r); err != nil {
			fmt.Println(err)
		}
	}
	prompt := st.History().Format(func(r state.InferenceResult) []state.Message {
		var said []state.Message
		for _, m := range r.Output {
			if m, ok := m.(state.TextMessage); ok {
				said = append(said, state.UserText(r.Agent+" said: "+m.Text()))
			}
		}
		return said
	})
	for _, m := range prompt {
		fmt.Println(m)
	}
	// Output:
	// text "user": "writer said: Rain on the plain."
	// text "user": "critic said: Too plain."
}

func ExampleHistory_All() {
	st := state.New(nil)
	history := st.History()
	for _, agent := range []string{"writer", "critic", "writer"} {
		if err := history.Append(state.InferenceResult{Agent: agent, Input: "draft"}); err != nil {
			fmt.Println(err)
		}
	}
	for i, r := range history.All() {
		fmt.Println(i, r.Agent)
	}
	n := 0
	for range history.By("writer") {
		n++
	}
	popped, ok, err := history.Pop()
	first, _ := history.At(0)
	fmt.Println(n, popped.Agent, ok, err, first.Agent, len(history.From(-1)), len(history.Results()))
	fmt.Println(history.Reset(nil), history.Len())
	// Output:
	// 0 writer
	// 1 critic
	// 2 writer
	// 2 writer true <nil> writer 1 2
	// <nil> 0
}

func ExampleDecodeMessage() {
	m, err := state.DecodeMessage([]byte(`{
		"type": "tool_call", "role": "assistant", "stop_reason": "tool", "signature": "c2ln",
		"tools": [{"type": "tool", "id": "c1", "name": "pay", "input": {"cents": 9007199254740993}}]
	}`))
	if call, ok := m.(state.ToolCallMessage); ok {
		signature, _ := call.Extra("signature")
		fmt.Println(err, call.Calls()[0].Name, call.Calls()[0].Input, signature.Text(), call.StopReason())
	}
	_, err = state.DecodeMessage([]byte(`{"type":"text","role":"user","role":"system","content":"hi"}`))
	fmt.Println(err)
	// Output:
	// <nil> pay {"cents":9007199254740993} c2ln tool
	// state: "message": $.role: the member occurs twice
}

func ExampleToolError() {
	call := state.ToolCall{ID: "c1", Name: "pay", Input: `{"cents":100}`}
	failed := state.ToolError(call, "the card was refused")
	receipt, err := state.JSONOf(map[string]any{"receipt": "<81>"})
	paid := state.ToolResult(call, receipt)
	fmt.Println(failed.IsError(), failed.Text())
	fmt.Println(err, paid.IsError(), paid.Content(), paid.Content().Valid(), paid.Call().ID)
	var content struct{ Receipt string }
	fmt.Println(paid.Content().Decode(&content), content.Receipt)
	// Output:
	// true the card was refused
	// <nil> false {"receipt":"<81>"} true c1
	// <nil> <81>
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

func ExampleState_Redact() {
	key := &state.Field[string]{Name: "api_key", Secret: true}
	st := state.New(state.MustSchema(key))
	fmt.Println(key.Set(st, "sk/82 Kd0+xyz"))
	fmt.Println(st.Redact("key sk/82 Kd0+xyz, in a URL sk%2F82+Kd0%2Bxyz"))
	fmt.Println(st.KV().All(), st)
	fmt.Println(st.KV().Set("api_key", state.Masked{}))
	// Output:
	// <nil>
	// key [SECRET], in a URL [SECRET]
	// map[api_key:[SECRET]] state: version 1, 1 set, 0 results
	// state: "api_key": $: want a value that can be stored, got a state.Masked
}

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

func ExampleNewContext() {
	visits := &state.Field[int]{Name: "visits", Read: state.Public, Write: state.Public}
	st := state.New(state.MustSchema(state.Team{"support": nil}, visits))

	// A tool deep down finds the handle of the agent that called it.
	tool := func(ctx context.Context) error {
		me, ok := state.FromContext(ctx)
		if !ok {
			return errors.New("no state")
		}
		return visits.Update(me, func(n int) (int, error) { return n + 1, nil })
	}
	ctx := state.NewContext(context.Background(), st.As("support"))
	fmt.Println(tool(ctx), tool(ctx), tool(context.Background()), visits.Or(st, 0))
	// Output:
	// <nil> <nil> no state 2
}

// A workflow that takes its state and its model as arguments is tested in the
// process: start anywhere, run a step, look at what has changed.
func Example_testing() {
	intent := &state.Field[string]{Name: "intent", Owner: "triage", Read: state.Public}
	answer := &state.Field[string]{Name: "answer", Owner: "clerk", Read: state.Public}
	schema := state.MustSchema(state.Team{"triage": {"clerk"}}, intent, answer)

	// The workflow.
	next := func(st *state.State) string {
		if !intent.Has(st) {
			return "triage"
		}
		return "clerk"
	}
	step := func(st *state.State, model func(prompt string) map[string]any) error {
		me := st.As(next(st))
		return me.Patch(model(me.Describe()))
	}

	// The test.
	st := state.New(schema)
	err := st.Patch(map[string]any{"intent": "refund"}) // as if triage had been
	before := st.Version()
	bad := step(st, func(string) map[string]any { return map[string]any{"intent": "other", "answer": "Yes."} })
	fmt.Println(err, next(st), bad, st.Version() == before)
	good := step(st, func(string) map[string]any { return map[string]any{"answer": "Yes."} })
	fmt.Println(good, answer.Or(st, ""))
	// Output:
	// <nil> clerk state: patch "intent": access denied to agent "clerk" true
	// <nil> Yes.
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
