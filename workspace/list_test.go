package workspace_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// noLists is a store that refuses List, and perhaps all else.
type noLists struct {
	store.Store
	away bool
}

var errNoLists = errors.New("no right to list")

func (s noLists) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	if s.away {
		return nil, errAway
	}
	return s.Store.Get(ctx, keys...)
}

func (s noLists) List(context.Context, string, string, bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, errNoLists) }
}

// Without List, lost workspaces are not noticed, and each new user would have to
// wait for StoreTimeout. A store that is away may come back.
func TestOpenRefusesAStoreWithoutList(t *testing.T) {
	_, err := workspace.Open(t.Context(), noLists{store.NewMemory(), false}, &workspace.Options{Run: nothing})
	require.ErrorIs(t, err, errNoLists)
	require.ErrorContains(t, err, "workspace: open: the store refuses List")
	m, err := workspace.Open(t.Context(), noLists{store.NewMemory(), true}, &workspace.Options{Run: nothing})
	require.NoError(t, err)
	require.NoError(t, m.Close())
}

// Keys of lists that no head has lead nowhere, and are deleted by those who find
// them. The keys of heads stay.
func TestOrphansOfListsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() == "ann" {
				return errors.New("no model")
			}
			return untilEnd(ctx, run)
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorContains(t, err, "no model")
		_, err = m.Submit(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		synctest.Wait()
		keys := func() (list []string) {
			for e, err := range db.List(t.Context(), "agent:busy:", "", false) {
				require.NoError(t, err)
				list = append(list, e.Key)
			}
			return list
		}
		own := keys()
		require.Equal(t, []string{"agent:busy:run:bob", "agent:busy:wait:ann"}, own)
		for _, list := range []string{"agent:busy:run:", "agent:busy:wait:"} {
			for _, name := range []string{"ann", "bob", "ghost", "a/b/c", "%zz", "x y", strings.Repeat("x", 300)} {
				if list+name != own[0] && list+name != own[1] {
					_, err := store.Put(t.Context(), db, list+name, []byte("{"), store.Always)
					require.NoError(t, err)
				}
			}
		}
		require.Len(t, keys(), 14)
		var active []string
		for s, err := range m.Active(t.Context()) {
			require.NoError(t, err)
			active = append(active, s.UserID)
		}
		require.Equal(t, []string{"bob", "ann"}, active)
		time.Sleep(time.Minute)
		require.Equal(t, own, keys())
	})
}

// A sender that waits for the end of a run is told what the store says.
func TestHandleSaysWhyAnEndIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, db: store.NewMemory()}
		m := r.open(workspace.Options{Run: func(context.Context, *workspace.Run) error {
			r.breaks(heads(errAway))
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := m.Handle(ctx, "ann", text("1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errAway)
		require.ErrorContains(t, err, "the end of the run is not stored yet")
		r.fault.Store(nil)
		out, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
	})
}

// What is written to the State of an Update afterwards would be lost.
func TestStateOfAnUpdateAfterwards(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	var kept *workspace.Workspace
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		kept = w
		return notes.Set(w.State(), []string{"a"})
	}))
	for _, st := range []*state.State{kept.State(), kept.State().As("desk")} {
		require.ErrorIs(t, notes.Set(st, []string{"b"}), state.ErrReadOnly)
	}
	require.ErrorIs(t, state.Messages.Set(kept.State(), []state.Message{state.UserText("b")}), state.ErrReadOnly)
	require.Equal(t, []string{"a"}, notes.GetOr(kept.State(), nil))
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return notes.Set(w.State(), []string{"c"}) }))
	require.Equal(t, []string{"a", "c"}, notes.GetOr(view(t, m, "ann").State(), nil))
}
