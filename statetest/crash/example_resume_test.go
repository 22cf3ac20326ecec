package crash_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// The desk of today goes on with all that version 1 has stored. Test.Save has
// written the files when version 1 was released.
func ExampleResume() {
	amount := &state.Field[string]{Name: "amount"}
	steps := &state.Field[[]string]{Name: "steps"}
	schema := state.MustSchema(amount, steps)
	test := func(t *testing.T) { // TestVersionsResume
		crash.Resume(t, "testdata/workspaces/v1/*.json", func(p *crash.Process) *workspace.Options {
			m := p.Model(provider.OpenAI, statetest.Say("Done.").Times(-1))
			return &workspace.Options{Schema: schema, Run: func(ctx context.Context, run *workspace.Run) error {
				result, err := m.Next(ctx, "desk", state.Messages.GetOr(run.State(), nil))
				if err != nil {
					return err
				}
				return run.State().History().Append(result)
			}}
		}, workspace.Message{ID: "next", Content: state.UserText("And now?")})
	}
	fmt.Println("passes:", passes(test))
	// Output: passes: true
}
