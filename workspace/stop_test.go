package workspace_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// A message whose last answer was not finished is handled: what was said stays, and
// all who ask for its outcome learn how the answer has ended.
func TestOutcomesOfStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		ask := func(ctx context.Context, turn *loop.Turn) error {
			attempts++
			said := state.InferenceResult{Stop: state.StopRefused, StopWord: "refusal", Output: []state.Message{state.AssistantText("I would rather not.")}}
			if attempts > 1 {
				said.Stop, said.StopWord = state.StopEnd, "end_turn"
			}
			return turn.Said(ctx, said)
		}
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask}}})})
		ended := make(chan workspace.Event, 1)
		go func() {
			for e := range m.Watch(t.Context(), "ann").AsHost() {
				if e.Kind == workspace.EventEnded {
					ended <- e
					return
				}
			}
		}()
		synctest.Wait()
		out, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		want := workspace.Outcome{Status: workspace.StatusDone, RunID: out.RunID, Reply: "I would rather not.", Stop: state.StopRefused}
		require.Equal(t, want, out)
		e := <-ended
		require.Equal(t, want, e.Outcome)
		shown, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Contains(t, string(shown), `"stop":"refused"`)

		other := open(t, db, workspace.Options{})
		awaited, err := other.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, want, awaited)
		again, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.Equal(t, []any{workspace.StatusDuplicate, state.StopRefused}, []any{again.Status, again.Stop})

		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Empty(t, v.DeadLetters)
		require.Len(t, v.Ended, 1)
		require.Equal(t, []any{work.EndingFinished, state.StopRefused}, []any{v.Ended[0].As, v.Ended[0].Stop})
		shown, err = v.MarshalJSON()
		require.NoError(t, err)
		require.Contains(t, string(shown), `"stop":"refused"`)
		require.Equal(t, "I would rather not.", lastText(v.State()))
		last, _ := v.State().History().Last()
		require.Equal(t, []any{state.StopRefused, "refusal"}, []any{last.Stop, last.StopWord})
		var record work.Record
		for r, err := range m.Records(t.Context(), "ann", 0) {
			require.NoError(t, err)
			record = r
		}
		require.Equal(t, state.StopRefused, record.Stop)

		data, err := m.Export(t.Context(), "ann")
		require.NoError(t, err)
		moved := open(t, store.NewMemory(), workspace.Options{})
		require.NoError(t, moved.ImportWorkspace(t.Context(), "ann", data))
		v, err = moved.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, state.StopRefused, v.Ended[0].Stop)
		last, _ = v.State().History().Last()
		require.Equal(t, []any{state.StopRefused, "refusal"}, []any{last.Stop, last.StopWord})

		out, err = m.Handle(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		require.Empty(t, out.Stop, "the next message is handled as any other")
		require.Equal(t, 2, attempts)
	})
}

func lastText(st *state.State) string {
	msgs := state.Messages.GetOr(st, nil)
	return msgs[len(msgs)-1].(state.TextMessage).Text()
}
