package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Two conversations of one user count what both have spent, and remember the same
// things.
func ExampleShared() {
	spent := &state.Field[int]{Name: "spent", Handler: state.Sum[int](), Shared: true}
	topic := &state.Field[string]{Name: "topic"}
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(spent, topic),
		Run: func(_ context.Context, run *workspace.Run) error {
			s := run.State()
			if err := topic.Set(s, run.Message().Content.(state.TextMessage).Text()); err != nil {
				return err
			}
			if err := run.Memory().Set("last topic", topic.GetOr(s, "")); err != nil {
				return err
			}
			return spent.Set(s, 10) // added to what the other conversations have spent
		},
	})
	if err != nil {
		panic(err)
	}
	work, home := workspace.Thread("ann", "work"), workspace.Thread("ann", "home")
	for _, thread := range []string{work, home} {
		_, topic := workspace.SplitThread(thread)
		if _, err := m.Handle(ctx, thread, workspace.Message{Content: state.UserText(topic)}); err != nil {
			panic(err)
		}
	}

	// Not in a conversation: whatever runs there are, at once.
	err = m.Update(ctx, workspace.Shared("ann"), func(w *workspace.Workspace) error { return spent.Set(w.State(), 5) })
	v, viewErr := m.View(ctx, work)
	last, _ := v.Memory().Get("last topic")
	fmt.Println(topic.GetOr(v.State(), ""), spent.GetOr(v.State(), 0), last, err, viewErr)
	// Output: work 25 home <nil> <nil>
}
