package workspace_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A message for which the conversation has no room fails at once, once.
func TestConversationWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := fakestore.Count(slowWrites(store.NewMemory()))
		m, runs := hold(t, db, workspace.Options{
			Schema: state.MustSchema(state.Limits{ValueBytes: 1 << 10}), KeepMessages: -1,
		})
		long := func(id string) workspace.Message {
			return workspace.Message{ID: id, Content: state.UserText(strings.Repeat("x", 400))}
		}
		for _, id := range []string{"1", "2"} {
			runs.Begin(t, "ann", long(id)).Finish(t)
		}
		before := db.Calls("Batch")
		out, err := m.Handle(t.Context(), "ann", long("3"))
		require.ErrorIs(t, err, state.ErrLimitExceeded)
		require.Equal(t, workspace.StatusFailed, out.Status)

		run := runs.Begin(t, "ann", text("short"))
		for _, id := range []string{"4", "5"} {
			_, err = m.Submit(t.Context(), "ann", long(id))
			require.NoError(t, err, "there may be room when its turn comes")
		}
		run.Finish(t)
		time.Sleep(time.Minute)
		require.Equal(t, 2*4, db.Calls("Batch")-before, "each message is begun and ended once")
		v := view(t, m, "ann")
		require.Nil(t, v.Run)
		require.Len(t, v.DeadLetters, 3)
		require.Contains(t, v.DeadLetters[2].Reason, "ValueBytes")
		require.NoError(t, m.Close())
	})
}
