package tool_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

// The programs of docs/coming-from.

// says is an agent whose model gives the answers in order.
func says(answers ...state.Message) func(context.Context, *loop.Turn) error {
	return func(ctx context.Context, turn *loop.Turn) error {
		answer := answers[0]
		answers = answers[1:]
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{answer}})
	}
}

// A network of AgentKit: a router over the state, and a tool that writes it.
func ExampleLoop_agentKit() {
	askPlanner := says(state.ToolCalls(state.ToolCall{ID: "1", Name: "save_plan", Input: `{"steps":["read","write"]}`}))
	askWriter := says(state.AssistantText("Written."))
	ctx := context.Background()

	plan := &state.Field[[]string]{Name: "plan", Handler: state.Replace[[]string](), Read: state.Public, Write: state.Only("planner")}
	st := state.New(state.MustSchema(state.Team{"planner": nil, "writer": nil}, plan))

	type steps struct {
		Steps []string `json:"steps"`
	}
	savePlan := tool.Must(tool.New("save_plan", "Save the plan.",
		func(_ context.Context, in steps) ([]string, error) { return in.Steps, nil }, tool.To(plan, "")))
	router := route.Must(route.New(
		route.When(route.Not(route.Has(plan)), "planner"),
		route.When(route.Func("unanswered", unanswered), "writer"), // otherwise nobody: the loop ends
	))
	network := &loop.Loop{Route: router.Next, Agents: map[string]loop.Agent{
		"planner": {Ask: askPlanner, Tools: []*tool.Tool{savePlan}},
		"writer":  {Ask: askWriter},
	}}
	_ = st.UserSays("Write about trains.")
	fmt.Println(network.Run(ctx, st))
	fmt.Println(plan.GetOr(st, nil), st.History().Len())
	// Output:
	// Written. <nil>
	// [read write] 2
}

// unanswered reports whether the conversation has no last word yet.
func unanswered(st *state.State) bool {
	msgs := state.Messages.GetOr(st, nil)
	text, ok := msgs[len(msgs)-1].(state.TextMessage)
	return !ok || text.Role() == "user"
}

// Tools of Haystack: parameters from the state, results into it.
func ExampleRun_haystack() {
	ctx := context.Background()

	user := &state.Field[string]{Name: "user_name"}
	documents := &state.Field[[]string]{Name: "documents"} // a list: outputs append
	st := state.New(state.MustSchema(user, documents))
	_ = user.Set(st, "Ada")

	type query struct {
		Query string `json:"query"`
		User  string `json:"user_context"`
	}
	type found struct {
		Documents []string `json:"documents"`
	}
	search := tool.Must(tool.New("search", "Search the documents.",
		func(_ context.Context, in query) (found, error) {
			return found{[]string{in.Query + " for " + in.User}}, nil
		},
		tool.From(user, "user_context"),
		tool.To(documents, "documents"),
	))
	_, err := tool.Run(ctx, st, []*tool.Tool{search}, []state.ToolCall{
		{ID: "1", Name: "search", Input: `{"query":"returns"}`},
		{ID: "2", Name: "search", Input: `{"query":"refunds"}`},
	})
	fmt.Println(documents.GetOr(st, nil), err)
	// Output: [returns for Ada refunds for Ada] <nil>
}

// Nodes of LangGraph that run at the same time, and reducers that combine what they
// write.
func ExampleNew_langGraph() {
	notes := &state.Field[[]string]{Name: "notes"}
	cost := &state.Field[int]{Name: "cost", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(notes, cost))

	node := func(st *state.State, topic string) {
		_ = notes.Set(st, []string{"read about " + topic})
		_ = cost.Set(st, 2)
	}
	var wait sync.WaitGroup
	branches := []*state.State{st.Fork(), st.Fork()}
	for i, topic := range []string{"trains", "mountains"} {
		wait.Go(func() { node(branches[i], topic) })
	}
	wait.Wait()
	err := st.Join(branches...) // in this order, whichever was faster
	fmt.Println(notes.GetOr(st, nil), cost.GetOr(st, 0), err)

	before, err := st.At(0) // a State as it was, to look at or to fork
	fmt.Println(notes.Has(before), err)
	// Output:
	// [read about trains read about mountains] 4 <nil>
	// false <nil>
}

// A tool of adk that writes to the state of its session.
func ExampleNew_adk() {
	ctx := context.Background()

	notes := &state.Field[[]string]{Name: "notes"}
	visits := &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	client := &state.Field[string]{Name: "client", Ephemeral: true} // temp: in adk
	st := state.New(state.MustSchema(notes, visits, client))

	type note struct {
		Text string `json:"text"`
	}
	write := tool.Must(tool.New("note", "Write a note.",
		func(_ context.Context, in note) ([]string, error) { return []string{in.Text}, nil },
		tool.To(notes, ""),
	))
	_, err := tool.Run(ctx, st, []*tool.Tool{write}, []state.ToolCall{
		{ID: "1", Name: "note", Input: `{"text":"slow"}`},
		{ID: "2", Name: "note", Input: `{"text":"fast"}`},
	})
	_ = visits.Set(st, 1)
	fmt.Println(notes.GetOr(st, nil), visits.GetOr(st, 0), client.GetOr(st, "none"), err)
	// Output: [slow fast] 1 none <nil>
}
