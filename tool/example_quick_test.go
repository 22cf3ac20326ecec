package tool_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A tool reads the user's name from the state, hidden from the model, and appends
// its result to the notes.
func Example() {
	var (
		UserName = &state.Field[string]{Name: "user_name"}
		Notes    = &state.Field[[]string]{Name: "notes"}
	)
	ctx, st := context.Background(), state.New(state.MustSchema(UserName, Notes))
	_ = UserName.Set(st, "Ada")

	search := tool.Must(tool.New("search", "Search the documents.",
		func(_ context.Context, in struct {
			Query string `json:"query"`
			User  string `json:"user"`
		}) ([]string, error) {
			return []string{"about " + in.Query + ", for " + in.User}, nil
		},
		tool.From(UserName, "user"), // injected: the model neither sees nor sets it
		tool.To(Notes, ""),          // the result is appended to the notes
	))
	calls := []state.ToolCall{{ID: "c1", Name: "search", Input: `{"query":"refunds"}`}}
	results, err := tool.Run(ctx, st, []*tool.Tool{search}, calls) // the calls of one step, in a safe order
	if err != nil {
		panic(err)
	}
	fmt.Println(search.Schema())
	fmt.Println(results[0].Message.Text(), Notes.GetOr(st, nil))
	// Output:
	// {"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}
	// ["about refunds, for Ada"] [about refunds, for Ada]
}
