package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// recordsText returns what Records shows of a user, all effects included.
func recordsText(t *testing.T, m *workspace.Manager, user string) string {
	t.Helper()
	text := ""
	for r, err := range m.Records(t.Context(), user, 0) {
		require.NoError(t, err)
		for _, e := range r.Effects {
			require.True(t, e.Value == "" || e.Value.Valid(), "%s", e.Value)
		}
		text += fmt.Sprintf("%+v\n", r)
	}
	return text
}

func TestRecordsMaskWhatTextsRepeatOfSecrets(t *testing.T) {
	const card, pin = "4242-4242-4242-4242", "pin-998877"
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		st := w.State()
		call := state.ToolCall{ID: "1", Name: "pay", Input: state.JSON(`{"card":"` + card + `"}`)}
		require.NoError(t, token.Set(st, card))
		require.NoError(t, w.Memory().SetSecret("pin", pin))
		require.NoError(t, w.Memory().Set("note", "the pin is "+pin))
		require.NoError(t, notes.Set(st, []string{"paid with " + card}))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("my card is " + card + " and " + pin)}))
		return st.History().Append(state.InferenceResult{
			Input:     "card " + card,
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, state.JSONText("charged "+card))},
			Raw:       `{"said":"` + card + `"}`,
		})
	}))
	text := recordsText(t, m, "ann")
	require.NotContains(t, text, card)
	require.NotContains(t, text, pin)
	for _, shown := range []string{"my card is [SECRET] and [SECRET]", "charged [SECRET]", "paid with [SECRET]", `{\"said\":\"[SECRET]\"}`, "card [SECRET]"} {
		require.Contains(t, text, shown)
	}

	// A schema that the content does not fit has no secrets to look for.
	other := open(t, db, workspace.Options{Schema: state.MustSchema(
		&state.Field[int]{Name: notes.Name}, &state.Field[string]{Name: token.Name, Secret: true})})
	text = recordsText(t, other, "ann")
	require.NotContains(t, text, card)
	require.NotContains(t, text, pin)
}

// beginLongRun begins a run with n steps, each of which writes a long text. The
// first version is that of the message.
func beginLongRun(t *testing.T, runs *heldRuns, n int) *heldRun {
	t.Helper()
	run := runs.Begin(t, "ann", text("1"))
	for i := range n {
		require.NoError(t, token.Set(run.State(), strings.Repeat(fmt.Sprintf("%5d", i), 500)))
		require.NoError(t, run.Commit(t.Context()))
	}
	return run
}

func TestRecordsBetween(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	beginLongRun(t, runs, 20)
	for _, c := range []struct{ after, to, first, last uint64 }{
		{0, 20, 1, 20},
		{0, 1, 1, 1},
		{7, 12, 8, 12},
		{19, 100, 20, 20},
		{20, 20, 0, 0},
		{20, 100, 0, 0},
		{12, 12, 0, 0},
		{12, 7, 0, 0},
	} {
		var versions, want []uint64
		for r, err := range m.RecordsBetween(t.Context(), "ann", c.after, c.to) {
			require.NoError(t, err)
			versions = append(versions, r.Version)
		}
		for v := c.first; v <= c.last && v > 0; v++ {
			want = append(want, v)
		}
		require.Equal(t, want, versions, "after %d, to %d", c.after, c.to)
	}
	for _, err := range m.RecordsBetween(t.Context(), "ann", 21, 22) {
		require.ErrorIs(t, err, workspace.ErrInvalid)
	}
}

// A loop that ends early does not pay for the records that it did not ask for.
func TestRecordsAreReadWhenTheyAreAskedFor(t *testing.T) {
	memory := store.NewMemory()
	_, runs := hold(t, memory, workspace.Options{})
	beginLongRun(t, runs, 200)
	multi := fakestore.Count(memory)
	m := open(t, multi, workspace.Options{})
	_, err := m.View(t.Context(), "ann") // the secrets to mask are those of the content
	require.NoError(t, err)
	before := multi.Reads()
	for _, err := range m.RecordsBetween(t.Context(), "ann", 50, 100) {
		require.NoError(t, err)
	}
	require.LessOrEqual(t, multi.Reads()-before, 4)
}

// Records that are compacted while the loop runs are reported as such, after
// those that it has yielded.
func TestRecordsThatAreCompactedMeanwhile(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := beginLongRun(t, runs, 200)
	n := uint64(0)
	var last error
	for r, err := range m.Records(t.Context(), "ann", 0) {
		if last = err; err != nil {
			break
		}
		require.Equal(t, n+1, r.Version)
		if n++; n == 3 {
			run.Finish(t)
			require.NoError(t, m.Compact(t.Context(), "ann"))
		}
	}
	require.Less(t, n, uint64(100))
	require.ErrorIs(t, last, state.ErrCompacted)
}
