package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The fields of the tests of what threads share.
var (
	sharedCount  = &state.Field[int]{Name: "count", Handler: state.Sum[int](), Shared: true}
	sharedTags   = &state.Field[[]string]{Name: "tags", Handler: state.Union[[]string](), Shared: true}
	sharedTotal  = &state.Field[int]{Name: "total", Shared: true}
	sharedKey    = &state.Field[string]{Name: "key", Secret: true, Shared: true}
	ownNote      = &state.Field[string]{Name: "note"}
	sharedFields = state.MustSchema(sharedCount, sharedTags, sharedTotal, sharedKey, ownNote)
)

func increment(n int) (int, error) { return n + 1, nil }

func TestSharedFields(t *testing.T) {
	ctx := t.Context()
	var seen []int
	m := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Run: func(ctx context.Context, run *workspace.Run) error {
		s := run.State()
		seen = append(seen, sharedCount.Or(s, -1))
		require.NoError(t, sharedCount.Set(s, 2))
		require.NoError(t, sharedTags.Set(s, []string{"a", run.Message().ID}))
		require.NoError(t, sharedTotal.Update(s, increment))
		require.NoError(t, ownNote.Set(s, run.UserID()))
		require.NoError(t, run.Memory().Set("from", run.UserID()))
		if run.Message().ID == "fails" {
			require.NoError(t, run.Commit(ctx))
			return errors.New("no")
		}
		return nil
	}})
	for i, thread := range []string{"1", "2", ""} {
		_, err := m.Handle(ctx, workspace.Thread("ann", thread), workspace.Message{ID: fmt.Sprint(i), Content: state.UserText("hi")})
		require.NoError(t, err)
	}
	_, err := m.Handle(ctx, workspace.Thread("ann", "2"), workspace.Message{ID: "fails", Content: state.UserText("hi")})
	require.Error(t, err)
	_, err = m.Handle(ctx, "bob", workspace.Message{ID: "x", Content: state.UserText("hi")})
	require.NoError(t, err)
	require.Equal(t, []int{-1, 2, 4, 6, -1}, seen)
	for _, id := range []string{workspace.Shared("ann"), "ann", workspace.Thread("ann", "1"), workspace.Thread("ann", "new")} {
		v, err := m.View(ctx, id)
		require.NoError(t, err)
		require.Equal(t, 6, sharedCount.Or(v.State(), -1), id)
		require.Equal(t, []string{"a", "0", "1", "2"}, sharedTags.Or(v.State(), nil), id)
		require.Equal(t, 3, sharedTotal.Or(v.State(), -1), id)
		e, _ := v.Memory().Get("from")
		require.Equal(t, "ann", e.Value)
		require.Empty(t, v.Unknown)
	}
	v, err := m.View(ctx, workspace.Thread("ann", "1"))
	require.NoError(t, err)
	require.Equal(t, "ann/1", ownNote.Or(v.State(), ""))
	_, err = m.Verify(ctx, workspace.Shared("ann"))
	require.NoError(t, err)
	_ = time.Now
	_ = sync.Mutex{}
}
