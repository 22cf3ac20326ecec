package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// shownMessages returns what a view shows of messages, each as
// number<behind:text@minute/run.
func shownMessages(v *workspace.View, after, n int, began time.Time) string {
	var list []string
	for m := range v.Messages(after, n) {
		list = append(list, fmt.Sprintf("%d<%d:%s@%.0f/%s", m.Number, m.Behind, strings.TrimPrefix(m.Message.(interface{ Text() string }).Text(), "text of "), m.Time.Sub(began).Minutes(), m.Run))
	}
	return strings.Join(list, " ")
}

// A message keeps its number, its time and its run, whatever is inserted, edited,
// dropped, undone and taken elsewhere, and whoever reads it.
func TestMessagesHaveNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m, runs := hold(t, db, workspace.Options{KeepMessages: 6})
		began := time.Now()
		shows := func(want string) {
			t.Helper()
			require.Equal(t, want, shownMessages(view(t, m, "ann"), 0, -1, began))
			other := open(t, db, workspace.Options{KeepMessages: 6})
			require.Equal(t, want, shownMessages(view(t, other, "ann"), 0, -1, began))
		}
		say := func(run *heldRun, words string) {
			t.Helper()
			for word := range strings.FieldsSeq(words) {
				next, err := workspace.NextNumber(run.Run)
				require.NoError(t, err)
				require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.AssistantText(word)}))
				after, err := workspace.NextNumber(run.Run)
				require.NoError(t, err)
				require.Equal(t, next+1, after)
			}
		}
		require.Empty(t, shownMessages(view(t, m, "ann"), 0, -1, began))

		time.Sleep(time.Minute)
		run := runs.Begin(t, "ann", text("a"))
		say(run, "one")
		require.NoError(t, run.Commit(t.Context()))
		time.Sleep(time.Minute)
		say(run, "two")
		run.Finish(t)
		shows("1<0:a@1/a 2<1:one@1/a 3<2:two@2/a")

		// An answer has the number that was known while a late result came.
		time.Sleep(time.Minute)
		run = runs.Begin(t, "ann", text("b"))
		next, err := workspace.NextNumber(run.Run)
		require.NoError(t, err)
		require.NoError(t, state.Messages.Update(run.State(), func(msgs []state.Message) ([]state.Message, error) {
			return slices.Insert(msgs, 2, state.Message(state.AssistantText("late"))), nil
		}))
		say(run, "three")
		run.Finish(t)
		shows("1<0:a@1/a 2<1:one@1/a 6<2:late@3/b 3<6:two@2/a 4<3:b@3/b 5<4:three@3/b")
		require.Equal(t, 5, next)

		// Pages lose none.
		v := view(t, m, "ann")
		require.Equal(t, "1<0:a@1/a 2<1:one@1/a 3<6:two@2/a", shownMessages(v, 0, 3, began))
		require.Equal(t, "6<2:late@3/b 4<3:b@3/b 5<4:three@3/b", shownMessages(v, 3, 3, began))
		require.Empty(t, shownMessages(v, 6, 3, began))
		require.Empty(t, shownMessages(v, 0, 0, began))
		for range v.Messages(0, -1) {
			break
		}

		// What is undone gives no number back, and neither does what is dropped.
		run = runs.Begin(t, "ann", text("c"))
		say(run, "never")
		require.NoError(t, run.Commit(t.Context()))
		undoing := text("d")
		undoing.WhenBusy = workspace.BusyRollback
		time.Sleep(time.Minute)
		run = runs.Begin(t, "ann", undoing)
		say(run, "four")
		run.Finish(t)
		shows("1<0:a@1/a 3<1:two@2/a 4<3:b@3/b 5<4:three@3/b 9<5:d@4/d 10<9:four@4/d")
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return state.Messages.Replace(w.State(), nil) }))
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			return state.Messages.Set(w.State(), []state.Message{state.UserText("again")})
		}))
		shows("11<0:again@4/")

		require.NoError(t, m.Compact(t.Context(), "ann"))
		shows("11<0:again@4/")
		data, err := m.Export(t.Context(), "ann")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, m.ImportWorkspace(t.Context(), "bob", data))
		require.Equal(t, "11<0:again@4/", shownMessages(view(t, m, "bob"), 0, -1, began))
		err = m.ImportWorkspace(t.Context(), "eve", []byte(strings.Replace(string(data), `"numbers":[`, `"numbers":[1,`, 1)))
		require.ErrorIs(t, err, workspace.ErrInvalid)
		require.ErrorContains(t, err, "$.conversation.numbers")
	})
}

// Calls of Do and updates are no runs of a message.
func TestMessagesOfNoMessage(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	require.NoError(t, m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
		for _, word := range []string{"a", "b"} {
			if err := state.Messages.Set(run.State(), []state.Message{state.UserText(word)}); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
	for msg := range view(t, m, "ann").Messages(0, -1) {
		require.Empty(t, msg.Run)
		require.False(t, msg.Time.IsZero())
	}
}

// The JSON of a view has the numbers, and no secret.
func TestMessagesInJSON(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("tok"))
	require.NoError(t, token.Set(run.State(), fieldSecret))
	require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.AssistantText("it is " + fieldSecret)}))
	run.Finish(t)
	v := view(t, m, "ann")
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var got struct{ Messages json.RawMessage }
	require.NoError(t, json.Unmarshal(data, &got))
	stored := slices.Collect(v.Messages(0, -1))[0].Time.Format(time.RFC3339Nano)
	require.JSONEq(t, fmt.Sprintf(`[
		{"number":1,"behind":0,"time":%[1]q,"run":"tok","message":{"type":"text","role":"user","content":"text of tok"}},
		{"number":2,"behind":1,"time":%[1]q,"run":"tok","message":{"type":"text","role":"assistant","content":"it is [SECRET]","stop_reason":"stop"}}
	]`, stored), string(got.Messages))
	data, err = json.Marshal(workspace.View{})
	require.NoError(t, err)
	require.NotContains(t, string(data), `"messages"`)
}
