package page_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// A page follows a thread. It is told of the question, the answer as it comes, and
// what is stored in the end.
func ExampleSource_Follow() {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	told := make(chan bool)
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			run.EmitThought("They greet. ")
			run.Emit("Hello, ")
			run.Emit("Ann!")
			<-told
			return state.Messages.Set(run.State(), []state.Message{state.AssistantText("Hello, Ann!")})
		},
	})
	if err != nil {
		panic(err)
	}
	pages, thread := &page.Source{Manager: m}, workspace.Thread("ann", "1")
	var shown page.Page
	for c, err := range pages.Follow(ctx, thread, "") {
		if err != nil {
			panic(err)
		}
		shown.Apply(c)
		switch {
		case c.Page != nil:
			if _, err := pages.Send(ctx, thread, page.Input{ID: "q1", Content: state.UserText("Hello!")}); err != nil {
				panic(err)
			}
		case c.Delta != nil: // pieces may come together
			answer := shown.Pending[len(shown.Pending)-1]
			if last := answer.Parts[len(answer.Parts)-1]; last.Text == "Hello, Ann!" {
				fmt.Printf("it thinks %q and says %q\n", answer.Parts[0].Text, last.Text)
				told <- true
			}
		case len(shown.Items) == 2:
			for _, item := range shown.Items {
				fmt.Printf("%s to %s: %s\n", item.Role, item.Turn, item.Parts[0].Text)
			}
			leave()
		}
	}
	fmt.Println(m.Close())
	// Output:
	// it thinks "They greet. " and says "Hello, Ann!"
	// user to q1: Hello!
	// assistant to q1: Hello, Ann!
	// <nil>
}
