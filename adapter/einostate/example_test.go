package einostate_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// An agent refunds to a card that its model never sees, when a person has
// approved. Days may lie between the two messages, and the end of the process.
func Example() {
	ctx := context.Background()
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	refunds := &state.Field[[]string]{Name: "refunds", Owner: "billing"}
	schema := state.MustSchema(card, refunds, einostate.CheckpointField, state.Team{"billing": nil})

	type in struct {
		Amount int    `json:"amount"`
		Card   string `json:"card"`
	}
	refund := tool.Must(tool.New("refund", "Refund an amount.", func(_ context.Context, in in) (string, error) {
		return fmt.Sprintf("refunded %d to %s", in.Amount, in.Card), nil
	}, tool.From(card, "card"), tool.ToFunc(refunds, "", func(text string) ([]string, error) { return []string{text}, nil }),
		tool.NeedsApproval(func(_ context.Context, in in) (string, bool) { return "more than 20 euros", in.Amount > 20 })))

	model := script(calls(call("c1", "refund", `{"amount":30}`)), said("I have refunded 30 euros."))
	db := store.NewMemory() // or sqlitestore.Open(ctx, "desk.db", nil)

	billing, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "billing", Description: "refunds", Model: model,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: einostate.Tools(refund)}},
		Handlers:    []adk.ChatModelAgentMiddleware{einostate.Middleware("billing", nil)},
	})
	must(err)
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: billing, CheckPointStore: einostate.Checkpoints()})
	manager, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: einostate.Handle(runner, nil)})
	must(err)
	defer manager.Close()

	must(manager.Update(ctx, "ann", func(w *workspace.Workspace) error { return card.Set(w.State(), "4242-4242") }))
	_, err = manager.Handle(ctx, "ann", workspace.Message{Content: state.UserText("Refund my order.")})
	must(err)
	view, err := manager.View(ctx, "ann")
	must(err)
	for _, call := range view.Suspended() { // the person says yes
		fmt.Println("to approve:", call.Name, call.Input, call.Reason)
		out, err := manager.Handle(ctx, "ann", workspace.Message{Decisions: []tool.Decision{tool.Approve(call.Key)}})
		must(err)
		fmt.Println(out.Reply)
	}
	view, err = manager.View(ctx, "ann")
	must(err)
	for _, m := range state.Messages.GetOr(view.State(), nil) {
		fmt.Println(m)
	}
	fmt.Println(refunds.GetOr(view.State(), nil))
	// Output:
	// to approve: refund {"amount":30} more than 20 euros
	// I have refunded 30 euros.
	// text "user": "Refund my order."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "refunded 30 to [SECRET]"
	// text "assistant": "I have refunded 30 euros."
	// [refunded 30 to 4242-4242]
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// TestReadme: the code in the README is that of the Example.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(err)
	example, err := os.ReadFile("example_test.go")
	must(err)
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	code, _, _ := strings.Cut(rest, "```")
	for line := range strings.Lines(code) {
		if line != "\n" && !strings.Contains(string(example), "\t"+line) {
			t.Errorf("not in the Example: %s", line)
		}
	}
	if strings.Count(code, "\n") < 5 {
		t.Error("the README has no code")
	}
}
