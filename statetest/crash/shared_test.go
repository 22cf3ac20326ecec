package crash_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

var (
	sharedVisits = &state.Field[int]{Name: "visits", Handler: state.Sum[int](), Shared: true}
	sharedTopics = &state.Field[[]string]{Name: "topics", Handler: state.Union[[]string](), Shared: true}
	sharedCredit = &state.Field[int]{Name: "credit", Shared: true}
	sharedSchema = state.MustSchema(sharedVisits, sharedTopics, sharedCredit)
)

// sharesFields writes what all threads of the user share, before and after a
// commit.
func sharesFields(ctx context.Context, run *workspace.Run) error {
	s := run.State()
	add := func(topic string) error {
		return errors.Join(
			sharedVisits.Set(s, 1), sharedTopics.Set(s, []string{topic}), run.Memory().Set(topic, run.Message().ID),
			sharedCredit.Update(s, func(n int) (int, error) { return n + 10, nil }),
		)
	}
	if !sharedTopics.Has(s) || len(sharedTopics.GetOr(s, nil))%2 == 0 {
		if err := errors.Join(add("first of "+run.Message().ID), run.Commit(ctx)); err != nil {
			return err
		}
	}
	return add("second of " + run.Message().ID)
}

// What a run has written to shared fields is applied once, wherever its process
// dies.
func TestSharedFieldsSurviveCrashes(t *testing.T) {
	crash.Test{
		Open: func(*crash.Process) *workspace.Options {
			return &workspace.Options{Schema: sharedSchema, Run: sharesFields}
		},
		Setup:    func(w *workspace.Workspace) error { return sharedCredit.Set(w.State(), 5) },
		Messages: []workspace.Message{{ID: "1", Content: state.UserText("Hello.")}, {ID: "2", Content: state.UserText("Hello again.")}},
		Check: func(t testing.TB, v *workspace.View) {
			require.Equal(t, 4, sharedVisits.GetOr(v.State(), 0))
			require.Equal(t, 45, sharedCredit.GetOr(v.State(), 0))
			require.Len(t, v.Memory().List(), 4)
		},
	}.Run(t)
}
