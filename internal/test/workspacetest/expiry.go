package workspacetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// A call that waits is answered when it has expired, by the process that is there
// then, and no key is left of it.
func (s *suite) Expiry(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		wait := tool.Must(tool.New("refund", "", func(context.Context, struct{}) (string, error) {
			return "", tool.Suspend(errors.New("a person has to look"))
		}, tool.Expires(ttl)))
		ask := func(ctx context.Context, turn *tool.Turn) error {
			prompt, err := turn.Prompt(ctx, state.Messages.Or(turn.State(), nil))
			if err != nil {
				return err
			}
			said := state.Message(state.AssistantText("re " + prompt[len(prompt)-1].Text()))
			if len(prompt) == 1 {
				said = state.ToolCalls(state.ToolCall{ID: "1", Name: "refund", Input: "{}"})
			}
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
		}
		opts := workspace.Options{TTL: ttl, Run: workspace.Loop(&tool.Loop{
			Agents: map[string]tool.Agent{"": {Ask: ask, Tools: []*tool.Tool{wait}}},
		})}
		process, kill := AsProcess(db)
		_, err := Open(t, process, opts).Handle(t.Context(), "ann", Text("1"))
		require.NoError(t, err)
		kill()
		m := Open(t, db, opts)
		until := View(t, m, "ann").Suspended()[0].Until
		require.Equal(t, "1", IDs(View(t, m, "ann").Suspended()))
		WaitUntil(t, ttl, func() bool { return len(View(t, m, "ann").Suspended()) == 0 })
		RequireWithin(t, until, ttl+ttl/4, "expired")
		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, "1 c1 e1 re The call was not made: nobody has decided about it in time.", Dialog(&View(t, m, "ann").Workspace))
		for key := range Entries(t, db) {
			require.NotContains(t, key, ":expire:")
		}
	})
}
