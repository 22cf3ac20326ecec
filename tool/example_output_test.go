package tool_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// The model reads the documents, the state keeps their ids.
func ExampleToFunc() {
	seen := &state.Field[[]string]{Name: "seen", Handler: state.Union[[]string]()}
	st := state.New(state.MustSchema(seen))

	type document struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	search := tool.Must(tool.New("search", "Search the documents.",
		func(context.Context, struct{}) ([]document, error) {
			return []document{{"d1", "Returns take 30 days."}, {"d2", "Refunds take 5."}}, nil
		},
		tool.ToFunc(seen, "", func(found []document) ([]string, error) {
			var ids []string
			for _, d := range found {
				ids = append(ids, d.ID)
			}
			return ids, nil
		})))

	out, err := search.Call(context.Background(), st, "")
	fmt.Println(out, err)
	fmt.Println(seen.GetOr(st, nil))
	// Output:
	// [{"id":"d1","text":"Returns take 30 days."},{"id":"d2","text":"Refunds take 5."}] <nil>
	// [d1 d2]
}

// A null writes nothing, unless the output says that it deletes.
func ExampleOutput_OrDelete() {
	var (
		documents = &state.Field[[]string]{Name: "documents"}
		selected  = &state.Field[string]{Name: "selected"}
	)
	st := state.New(state.MustSchema(documents, selected))
	_ = documents.Set(st, []string{"d1"})
	_ = selected.Set(st, "d1")

	deselect := tool.Must(tool.Raw("deselect", "Clear the selection.", `{"type":"object"}`,
		func(context.Context, state.JSON) (state.JSON, error) {
			return `{"documents":null,"selected":null}`, nil
		},
		tool.To(documents, "documents"),
		tool.To(selected, "selected").OrDelete()))

	_, err := deselect.Call(context.Background(), st, "")
	fmt.Println(st.KV().All(), err)
	// Output: map[documents:[d1]] <nil>
}

// The card is injected, and neither the result nor the error shows it. The
// field has it: the rights to the field guard it.
func ExampleReveal() {
	var (
		card    = &state.Field[string]{Name: "card", Secret: true}
		charged = &state.Field[string]{Name: "charged"}
	)
	st := state.New(state.MustSchema(card, charged))
	_ = card.Set(st, "4242-4242-4242")

	charge := func(_ context.Context, in struct {
		Card   string `json:"card"`
		Amount int    `json:"amount"`
	}) (map[string]any, error) {
		if in.Amount > 100 {
			return nil, errors.New("cannot charge " + in.Card)
		}
		return map[string]any{"amount": in.Amount, "to": in.Card}, nil
	}
	masked := tool.Must(tool.New("charge", "Charge the card.", charge,
		tool.From(card, "card"), tool.To(charged, "to")))
	shown := tool.Must(tool.New("charge", "Charge the card.", charge,
		tool.From(card, "card"), tool.Reveal()))

	ctx := context.Background()
	fmt.Println(masked.Call(ctx, st, `{"amount":5}`))
	_, err := masked.Call(ctx, st, `{"amount":500}`)
	fmt.Println(err)
	fmt.Println(charged.GetOr(st, ""))
	fmt.Println(shown.Call(ctx, st, `{"amount":5}`))
	// Output:
	// {"amount":5,"to":"[SECRET]"} <nil>
	// tool "charge": cannot charge [SECRET]
	// 4242-4242-4242
	// {"amount":5,"to":"4242-4242-4242"} <nil>
}

// A tool of an MCP server that uses the state: it knows who asks.
func ExampleRawStateful() {
	greet := tool.Must(tool.RawStateful("greet", "Greet the caller.", `{"type":"object"}`,
		func(_ context.Context, st *state.State, _ state.JSON) (state.JSON, error) {
			return state.JSONText("Hello, " + st.Agent()), nil
		}))
	fmt.Println(greet.Call(context.Background(), state.New(nil).As("ann"), ""))
	// Output: "Hello, ann" <nil>
}

// Annotations are those of MCP.
func ExampleAnnotate() {
	count := &state.Field[int]{Name: "count"}
	look := tool.Must(tool.NewStateful("look", "Look at the counter.",
		func(_ context.Context, st *state.State, _ struct{}) (int, error) { return count.GetOr(st, 0), nil },
		tool.Annotate(tool.Annotations{Title: "Look", ReadOnly: true})))

	annotations, err := state.JSONOf(look.Annotations())
	fmt.Println(annotations, err)
	// Output: {"title":"Look","readOnlyHint":true} <nil>
}

// An argument for an injected parameter is refused in any spelling that some
// decoder would take for it.
func ExampleFrom_spelling() {
	user := &state.Field[string]{Name: "user"}
	orders := tool.Must(tool.Raw("orders", "List the orders.",
		`{"type":"object","properties":{"query":{"type":"string"},"user_id":{"type":"string"}}}`,
		func(_ context.Context, args state.JSON) (state.JSON, error) { return args, nil },
		tool.From(user, "user_id")))

	for _, args := range []state.JSON{`{"user_id":"mallory"}`, `{"User_ID":"mallory"}`, `{"userId":"mallory"}`} {
		_, err := orders.Call(context.Background(), state.New(state.MustSchema(user)), args)
		var refused *tool.ArgumentError
		fmt.Println(errors.As(err, &refused))
	}
	_, err := tool.Raw("orders", "List the orders.", `{"type":"object","properties":{"user_id":{"type":"string"}}}`,
		func(_ context.Context, args state.JSON) (state.JSON, error) { return args, nil },
		tool.From(user, "userid"))
	fmt.Println(err)
	// Output:
	// true
	// true
	// true
	// tool "orders": From: field "user", parameter "userid": the function has no such parameter, it is spelled "user_id"
}
