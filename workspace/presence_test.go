package workspace_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// restartedStore is a store whose server forgets who is present when it is
// restarted. Those who have announced themselves hear of it a second later.
type restartedStore struct {
	store.Store
	mu    sync.Mutex
	names map[string]chan struct{} // the channels lost
}

func (s *restartedStore) Announce(_ context.Context, name string) (<-chan struct{}, func() error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] != nil {
		return nil, nil, store.ErrConflict
	}
	lost := make(chan struct{})
	s.names[name] = lost
	return lost, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.names, name)
		return nil
	}, nil
}

func (s *restartedStore) IsPresent(_ context.Context, name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name] != nil, nil
}

func (s *restartedStore) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lost := range s.names {
		time.AfterFunc(time.Second, func() { close(lost) })
	}
	s.names = map[string]chan struct{}{}
}

// A Manager that the store has forgotten does not believe that others are gone.
func TestRestartOfTheStoreEndsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &restartedStore{Store: store.NewMemory(), names: map[string]chan struct{}{}}
		began, ended := make(chan *workspace.Run, 8), make(chan struct{})
		run := func(_ context.Context, run *workspace.Run) error {
			began <- run
			<-ended
			return nil
		}
		one := open(t, db, workspace.Options{Run: run})
		two := open(t, db, workspace.Options{Run: run})
		_, err := one.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		held := <-began
		_, err = two.Submit(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		<-began
		out, err := two.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status) // so that two watches the run of one
		for range 3 {
			time.Sleep(20 * time.Second)
			db.restart()
		}
		time.Sleep(20 * time.Second)
		require.NoError(t, held.Context().Err())
		require.Empty(t, began)

		close(ended)
		require.NoError(t, one.Wait(t.Context()))
		require.NoError(t, two.Wait(t.Context()))
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	})
}
