package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

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
	fmt.Println(err, name.GetOr(st, "nobody"), to.City)

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
	fmt.Println(err, todo.GetOr(st, nil))
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
	// true <nil> state: "tags": want string, got number
}

func ExampleState_Patch() {
	city := &state.Field[string]{Name: "city"}
	guests := &state.Field[int]{Name: "guests"}
	arrival := &state.Field[state.Time]{Name: "arrival"}
	st := state.New(state.MustSchema(city, guests, arrival))

	fmt.Println(st.Patch(map[string]any{"city": "Lisbon", "guests": 2.0, "arrival": "2027-03-01"}))
	fmt.Println(st.Patch(map[string]any{"city": nil, "guests": 2.5, "pets": true}))
	fmt.Println(city.GetOr(st, "-"), guests.GetOr(st, 0), arrival.GetOr(st, state.Time{}), "at version", st.Version())
	// Output:
	// <nil>
	// state: "guests": want integer, got a number it cannot hold
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
	fmt.Println(tags.GetOr(st, nil), err, err2)

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

	fmt.Println(notes.Set(st, []string{"a", "b"}), notes.GetOr(st, nil))
	fmt.Println(notes.SetWith(st, []string{"b", "c"}, state.Union[[]string]()), notes.GetOr(st, nil))
	fmt.Println(notes.Replace(st, []string{"z"}), notes.GetOr(st, nil))
	fmt.Println(notes.SetWith(st, []string{"!"}, buggy), notes.GetOr(st, nil))
	// Output:
	// <nil> [a b]
	// <nil> [a b c]
	// <nil> [z]
	// state: "notes": handler buggy panicked with a string [z]
}

// A search client has sockets and locks: nothing that could be copied, compared
// or stored.
type searchClient struct {
	answer func(query string) string
}

func (c *searchClient) Search(query string) string { return c.answer(query) }

func ExampleField_reference() {
	client := &state.Field[*searchClient]{Name: "client", Ephemeral: true, NoCopy: true}
	found := &state.Field[[]string]{Name: "found"}
	st := state.New(state.MustSchema(client, found))
	err := client.Set(st, &searchClient{answer: func(query string) string { return query + ": 3 pages" }})

	branch := st.Fork() // a branch has the same client
	search := client.GetOr(branch, nil)
	_ = found.Set(branch, []string{search.Search("otters")})
	_ = st.Join(branch)
	fmt.Print(st.Describe(), err)
	// Output:
	// - client (*state_test.searchClient) = "*state_test.searchClient"
	// - found (list of string) = ["otters: 3 pages"]
	// <nil>
}

func ExampleField_optional() {
	nickname := &state.Field[*string]{Name: "nickname"}
	st := state.New(state.MustSchema(nickname, state.AllowUndeclared))
	_ = nickname.Set(st, nil)
	v, known := st.KV().Get("nickname")
	fmt.Println(v == nil, known)

	name := "Ann"
	_ = nickname.Set(st, &name)
	v, _ = st.KV().Get("nickname")
	fmt.Println(v.(string))
	// Output:
	// true true
	// Ann
}

func ExampleKV_Get_numbers() {
	st := state.New(nil)
	_ = st.Patch(map[string]any{"price": 5.0, "pieces": 5})
	data, _ := st.Export()
	back, _ := state.Import(nil, data)
	price, _ := back.KV().Get("price")
	pieces, _ := back.KV().Get("pieces")
	fmt.Printf("%T %T\n", price, pieces)
	// Output: float64 int64
}

// A task may have tasks.
type task struct {
	Name string `json:"name"`
	Sub  []task `json:"sub"`
}

func ExampleField_recursive() {
	plan := &state.Field[task]{Name: "plan"}
	st := state.New(state.MustSchema(plan))
	err := plan.Set(st, task{"move", []task{{"pack", nil}, {"drive", nil}}})
	fmt.Print(st.Describe(), err)
	// Output:
	// - plan (object) = {"name":"move","sub":[{"name":"pack","sub":[]},{"name":"drive","sub":[]}]}
	// <nil>
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
	// state: "pipe": want a type that can be stored, or a field that is Ephemeral and NoCopy, got chan int
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
	// state: "date": want RFC 3339 or 2006-01-02, got other text
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

// Two agents with different rights work on branches, which are merged by the
// handlers. A secret is masked.
func Example_agents() {
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "search"}}, notes, card))

	search := st.As("search")    // a handle with the rights of the agent "search"
	a, b := st.Fork(), st.Fork() // branches, for example one for each goroutine
	err := errors.Join(
		card.Set(st, "4242-4242-4242"),
		notes.Set(a.As("search"), []string{"delivered on Monday"}), // a list: Set appends
		notes.Set(b.As("search"), []string{"refunds within 30 days"}),
		st.Join(a, b), // merges in this order, whichever branch was written first
	)
	fmt.Println(notes.GetOr(search, nil), err)
	_, err = card.Get(search)
	fmt.Println(err)
	fmt.Println(st.Redact("charged 4242-4242-4242"))
	// Output:
	// [delivered on Monday refunds within 30 days] <nil>
	// state: read "card": access denied to agent "search"
	// charged [SECRET]
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
	fmt.Println(tool(ctx), tool(ctx), tool(context.Background()), visits.GetOr(st, 0))
	// Output:
	// <nil> <nil> no state 2
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
	// state: "api_key": want a value that can be stored, got a state.Masked
}

// Fields lists what a handle may read, and what it may write.
func ExampleState_Fields() {
	order := &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "general"}}, order, notes, card))
	for _, agent := range []string{"support", "billing", "general", "stranger"} {
		var rights []string
		for _, f := range st.As(agent).Fields() {
			if f.Writable {
				rights = append(rights, f.Name+" rw")
			} else {
				rights = append(rights, f.Name+" r")
			}
		}
		fmt.Printf("%-8s %s\n", agent, strings.Join(rights, ", "))
	}
	// Output:
	// support  messages rw, order rw, notes rw
	// billing  messages rw, order r, notes rw, card r
	// general  messages rw, order r, notes rw
	// stranger
}

// A refusal names the agent, the operation and the field. It is also an
// fs.ErrPermission.
func ExampleAccessError() {
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	st := state.New(state.MustSchema(state.Team{"billing": {"general"}}, card))
	_, err := card.Get(st.As("general"))
	var denied *state.AccessError
	fmt.Println(err)
	fmt.Println(errors.As(err, &denied), denied.Agent, denied.Op, denied.Field)
	fmt.Println(errors.Is(err, state.ErrDenied), errors.Is(err, fs.ErrPermission))
	// Output:
	// state: read "card": access denied to agent "general"
	// true general read card
	// true true
}

// Everything that is printed, logged or listed holds the mask of a secret. An
// error of a validation is replaced, because it may quote the value.
func ExampleState_LogValue() {
	host := &state.Field[string]{Name: "host"}
	key := &state.Field[string]{Name: "api_key", Secret: true, Validate: func(key string) error {
		if len(key) < 12 {
			return errors.New("too short: " + key)
		}
		return nil
	}}
	st := state.New(state.MustSchema(host, key))
	fmt.Println(host.Set(st, "api.example.com"), key.Set(st, "sk_82Kd0xyz99"))
	fmt.Println(key.Set(st, "sk_short"))
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger.Info("step", "state", st, "all", st.KV().All())
	// Output:
	// <nil> <nil>
	// state: "api_key": validation refused the value
	// level=INFO msg=step state.agent="" state.version=2 state.set=2 state.results=0 all="map[api_key:[SECRET] host:api.example.com]"
}

func ExampleNewHandler() {
	// At most one correction per answer: the second is refused.
	once := state.NewHandler("once", func(current string, present bool, update string) (string, error) {
		if present {
			return "", errors.New("it has been set")
		}
		return update, nil
	})
	answer := &state.Field[string]{Name: "answer", Handler: once}
	st := state.New(state.MustSchema(answer))
	fmt.Println(answer.Set(st, "42"))
	fmt.Println(answer.Set(st, "43"))
	fmt.Println(answer.GetOr(st, ""))
	// Output:
	// <nil>
	// state: "answer": handler once: it has been set
	// 42
}

func ExampleReplace() {
	tags := &state.Field[[]string]{Name: "tags", Handler: state.Replace[[]string]()}
	st := state.New(state.MustSchema(tags))
	err := errors.Join(tags.Set(st, []string{"a", "b"}), tags.Set(st, []string{"c"}))
	fmt.Println(tags.GetOr(st, nil), err)
	// Output: [c] <nil>
}

func ExampleAppend() {
	// It is the default of lists. For a list that replaces by default, one call
	// can append.
	tags := &state.Field[[]string]{Name: "tags", Handler: state.Replace[[]string]()}
	st := state.New(state.MustSchema(tags))
	err := errors.Join(tags.Set(st, []string{"a"}), tags.SetWith(st, []string{"b"}, state.Append[[]string]()))
	fmt.Println(tags.GetOr(st, nil), err)
	// Output: [a b] <nil>
}

func ExampleKeepLast() {
	recent := &state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](2)}
	st := state.New(state.MustSchema(recent))
	for _, page := range []string{"home", "cart", "checkout"} {
		if err := recent.Set(st, []string{page}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(recent.GetOr(st, nil))
	// Output: [cart checkout]
}

func ExampleUnion() {
	ids := &state.Field[[]int]{Name: "ids", Handler: state.Union[[]int]()}
	st := state.New(state.MustSchema(ids))
	err := errors.Join(ids.Set(st, []int{3, 1}), ids.Set(st, []int{1, 2, 2}))
	fmt.Println(ids.GetOr(st, nil), err)
	// Output: [3 1 2] <nil>
}

func ExampleMergeByID() {
	type Task struct{ ID, Status string }
	tasks := &state.Field[[]Task]{Name: "tasks", Handler: state.MergeByID[[]Task](func(t Task) string { return t.ID })}
	st := state.New(state.MustSchema(tasks))
	err := errors.Join(
		tasks.Set(st, []Task{{"1", "open"}, {"2", "open"}}),
		tasks.Set(st, []Task{{"1", "done"}, {"3", "open"}}),
	)
	fmt.Println(tasks.GetOr(st, nil), err)
	// Output: [{1 done} {2 open} {3 open}] <nil>
}

func ExampleMergeMap() {
	scores := &state.Field[map[string]int]{Name: "scores", Handler: state.MergeMap[map[string]int]()}
	st := state.New(state.MustSchema(scores))
	err := errors.Join(
		scores.Set(st, map[string]int{"ada": 1, "alan": 1}),
		scores.Set(st, map[string]int{"alan": 2}),
	)
	fmt.Println(scores.GetOr(st, nil), err)
	// Output: map[ada:1 alan:2] <nil>
}

func ExampleSum() {
	tokens := &state.Field[int64]{Name: "tokens", Handler: state.Sum[int64]()}
	st := state.New(state.MustSchema(tokens))
	a, b := st.Fork(), st.Fork()
	err := errors.Join(tokens.Set(a, 120), tokens.Set(b, 80), st.Join(a, b))
	fmt.Println(tokens.GetOr(st, 0), err)
	// Output: 200 <nil>
}

func ExampleMax() {
	best := &state.Field[float64]{Name: "best", Handler: state.Max[float64]()}
	worst := &state.Field[float64]{Name: "worst", Handler: state.Min[float64]()}
	st := state.New(state.MustSchema(best, worst))
	for _, score := range []float64{0.4, 0.9, 0.7} {
		if err := errors.Join(best.Set(st, score), worst.Set(st, score)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(best.GetOr(st, 0), worst.GetOr(st, 0))
	// Output: 0.9 0.4
}

func ExampleFirstWins() {
	title := &state.Field[string]{Name: "title", Handler: state.FirstWins[string]()}
	mood := &state.Field[string]{Name: "mood", Handler: state.LastWins[string]()}
	st := state.New(state.MustSchema(title, mood))
	a, b := st.Fork(), st.Fork()
	err := errors.Join(
		title.Set(b, "from b"), mood.Set(b, "from b"),
		title.Set(a, "from a"), mood.Set(a, "from a"),
		st.Join(a, b),
	)
	fmt.Printf("%q %q %v\n", title.GetOr(st, ""), mood.GetOr(st, ""), err)
	// Output: "from a" "from b" <nil>
}

func ExampleMergeMap_counters() {
	tokens := &state.Field[map[string]int]{Name: "tokens", Handler: state.MergeMap[map[string]int](state.Sum[int]())}
	st := state.New(state.MustSchema(tokens))
	err := errors.Join(
		tokens.Set(st, map[string]int{"input": 120, "output": 30}),
		tokens.Set(st, map[string]int{"input": 200, "cached": 80}),
	)
	fmt.Println(tokens.GetOr(st, nil), err)
	// Output: map[cached:80 input:320 output:30] <nil>
}

func ExampleState_Update() {
	from := &state.Field[int]{Name: "from"}
	to := &state.Field[int]{Name: "to"}
	st := state.New(state.MustSchema(from, to))
	fmt.Println(from.Set(st, 10))

	move := func(tx *state.State) error {
		n := from.GetOr(tx, 0)
		if n < 4 {
			return errors.New("not enough")
		}
		return errors.Join(from.Set(tx, n-4), to.Set(tx, to.GetOr(tx, 0)+4))
	}
	fmt.Println(st.Update(move), st.Update(move), st.Update(move))
	fmt.Println(from.GetOr(st, 0), to.GetOr(st, 0), "at version", st.Version())
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
	for _, doc := range docs.GetOr(st, nil) {
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
	fmt.Println(st.Join(b), title.GetOr(st, "")) // one of them alone is fine
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
	fmt.Println(city.Set(st, "Porto"), city.GetOr(snap, ""), city.Set(snap, "Faro"))
	fmt.Println(st.Revert(snap), city.GetOr(st, ""), "at version", st.Version())
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
	fmt.Println(title.GetOr(st, ""), notes.GetOr(st, nil))
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
				n := stock.GetOr(tx, 0)
				if n == 0 {
					return soldOut
				}
				return errors.Join(stock.Set(tx, n-1), reserved.Set(tx, reserved.GetOr(tx, 0)+1))
			})
			if errors.Is(err, soldOut) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	fmt.Println(stock.GetOr(st, 0), reserved.GetOr(st, 0), refused.Load(), "at version", st.Version())
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
	_ = notes.Set(req, []string{"asked by " + user.GetOr(req, "nobody")})

	fmt.Println(user.GetOr(req, "nobody"), user.GetOr(st, "nobody"), notes.GetOr(st, nil))
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

	fmt.Println(total.GetOr(clone, 0), total.GetOr(st, 0))
	fmt.Println(st.Join(clone))
	// Output:
	// 42 40
	// state: join: branch 0: a fork of a snapshot, which keeps no record of its writes
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

func ExampleState_At() {
	city := &state.Field[string]{Name: "city"}
	st := state.New(state.MustSchema(city))
	fmt.Println(city.Set(st, "Lisbon"), city.Set(st, "Porto"))
	for v := range st.Version() + 1 {
		past, err := st.At(v)
		fmt.Println(v, city.GetOr(past, "-"), err)
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

// A sentinel tells the kind of an error, and a type has the details.
func Example_errors() {
	order := &state.Field[string]{Name: "order_id", Owner: "support"}
	amount := &state.Field[int]{Name: "amount", Owner: "support", Validate: func(n int) error {
		if n < 0 {
			return errors.New("an amount is not negative")
		}
		return nil
	}}
	st := state.New(state.MustSchema(state.Team{"support": {"billing"}}, order, amount))
	support, billing := st.As("support"), st.As("billing")

	for _, err := range []error{
		support.KV().Set("order-id", "A-1"),
		support.KV().Set("amount", "12"),
		amount.Set(support, -1),
		amount.Set(billing, 12),
	} {
		var typeError *state.TypeError
		switch {
		case errors.Is(err, state.ErrUnknownField), errors.Is(err, state.ErrRefused):
			fmt.Println("tell the model:", err)
		case errors.As(err, &typeError):
			fmt.Println("tell the model:", typeError.Field, "is", typeError.Want)
		case errors.Is(err, state.ErrDenied):
			fmt.Println("a mistake of the program:", err)
		}
	}
	// Output:
	// tell the model: state: "order-id": unknown field; did you mean "order_id"?
	// tell the model: amount is integer
	// tell the model: state: "amount": an amount is not negative
	// a mistake of the program: state: set "amount": access denied to agent "billing"
}

// The text of a panic is not in the error, which may be logged or shown to a
// model.
func ExamplePanicError() {
	total := &state.Field[int]{Name: "total", Handler: state.NewHandler("average", func(current int, _ bool, update int) (int, error) {
		return (current + update) / (update - 1), nil
	})}
	st := state.New(state.MustSchema(total))
	err := total.Set(st, 1)
	fmt.Println(err)
	var p *state.PanicError
	fmt.Println(errors.As(err, &p), p.Func, "-", p.Value, len(p.Stack) > 0)
	// Output:
	// state: "total": handler average panicked with a runtime.errorString
	// true handler average - runtime error: integer divide by zero true
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
	fmt.Println(err, score.GetOr(back, 0), scratch.Has(back), back.Version())

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
	fmt.Println(err, points.GetOr(back, 0), date.GetOr(back, state.Time{}).Time().Weekday(), "at version", back.Version())

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
	// state: import: "score": want number, got string
	// state: "import": format 2; this package reads format 1
	// true
}

func ExampleField_evolution() {
	// The program that wrote this had a field "order", and "amount" was a text.
	stored := []byte(`{"format":1,"version":2,"fields":[{"name":"order","value":"W2378156"},{"name":"amount","value":"119.90"}]}`)

	orderID := &state.Field[string]{Name: "order_id", Was: []string{"order"}}
	amount := &state.Field[int]{Name: "amount", Convert: func(former state.JSON) (int, error) {
		var euros string
		if err := json.Unmarshal([]byte(former), &euros); err != nil {
			return 0, err
		}
		value, err := strconv.ParseFloat(euros, 64)
		return int(math.Round(100 * value)), err
	}}
	st, err := state.Import(state.MustSchema(orderID, amount), stored)
	fmt.Println(orderID.GetOr(st, ""), amount.GetOr(st, 0), err)
	// Output: W2378156 11990 <nil>
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
	fmt.Println(good, answer.GetOr(st, ""))
	// Output:
	// <nil> clerk state: patch "intent": access denied to agent "clerk" true
	// <nil> Yes.
}
