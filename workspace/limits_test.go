package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// The error says which limit of the queue a message has met.
func TestQueueIsLimitedByNumberAndBytes(t *testing.T) {
	long := func(id string) workspace.Message {
		return workspace.Message{ID: id, Content: state.UserText(strings.Repeat("x", 1000))}
	}
	for _, c := range []struct {
		opts workspace.Options
		want string
	}{
		{workspace.Options{Queue: 2}, "2 messages wait"},
		{workspace.Options{QueueBytes: 2500}, "bytes wait, and with "},
	} {
		m, runs := hold(t, store.NewMemory(), c.opts)
		run := runs.Begin(t, "ann", long("1"))
		for _, id := range []string{"2", "3"} {
			out, err := m.Submit(t.Context(), "ann", long(id))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}
		out, err := m.Submit(t.Context(), "ann", long("4"))
		require.ErrorIs(t, err, workspace.ErrQueueFull)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, workspace.StatusRejected, out.Status)
		run.Finish(t)
		runs.Next(t)
		_, err = m.Submit(t.Context(), "ann", long("4"))
		require.NoError(t, err, "there is room again")
		require.NoError(t, m.Close())
	}
}

// Beyond Options.DeadLetters the oldest is dropped, and everybody hears of it.
func TestDeadLettersAreLimitedByNumber(t *testing.T) {
	var log bytes.Buffer
	m := open(t, store.NewMemory(), workspace.Options{
		DeadLetters: 2, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Run: func(_ context.Context, run *workspace.Run) error { return errors.New("broken " + run.Message().ID) },
	})
	for i := range 4 {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(i)))
		require.ErrorContains(t, err, "broken")
	}
	require.Contains(t, log.String(), "dead letter dropped")
	v := view(t, m, "ann")
	require.Len(t, v.DeadLetters, 2)
	require.Equal(t, "2", v.DeadLetters[0].Message.ID)
	require.Len(t, v.Ended, 2)
	for i, e := range v.Ended {
		require.Equal(t, fmt.Sprint(i), e.ID)
		require.Equal(t, work.EndingDropped, e.As)
		require.Equal(t, "broken "+e.ID, e.Reason)
	}
	out, err := m.Await(t.Context(), "ann", "0")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusFailed, out.Status)
	require.NoError(t, m.Close())
}
