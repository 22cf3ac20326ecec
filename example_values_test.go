package state_test

import (
	"fmt"

	"github.com/agentstate/state"
)

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
	search := client.Or(branch, nil)
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
