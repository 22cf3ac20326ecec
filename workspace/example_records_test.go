package workspace_test

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Records lists the changes of a workspace, ViewAt returns an earlier version, and
// Verify checks that what is stored is intact.
func ExampleManager_Records() {
	ctx := context.Background()
	visits := &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(visits),
		Run:    func(_ context.Context, run *workspace.Run) error { return visits.Set(run.State(), 1) },
	})
	if err != nil {
		panic(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := m.Handle(ctx, "ann", workspace.Message{ID: id, Content: state.UserText("Hello!")}); err != nil {
			panic(err)
		}
	}
	for record, err := range m.Records(ctx, "ann", 0) {
		fmt.Println(record.Version, record.Kind, record.Message, err)
	}
	past, err := m.ViewAt(ctx, "ann", 1)
	fmt.Println(visits.GetOr(past.State(), 0), err)
	report, err := m.Verify(ctx, "ann")
	fmt.Println(report.Version, report.Records, err)
	fmt.Println(m.Close())
	// Output:
	// 1 finish a <nil>
	// 2 finish b <nil>
	// 1 <nil>
	// 2 2 <nil>
	// <nil>
}
