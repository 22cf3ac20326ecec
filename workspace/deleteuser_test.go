package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// idsOf returns the ids of the workspaces that exist.
func idsOf(t testing.TB, m *workspace.Manager) (ids []string) {
	t.Helper()
	for s, err := range m.Summaries(context.WithoutCancel(t.Context()), "") {
		require.NoError(t, err)
		require.NoError(t, s.Err)
		ids = append(ids, s.UserID)
	}
	return ids
}

func TestDeleteUser(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: visit})
	remember := func(id string) {
		t.Helper()
		_, err := m.Handle(t.Context(), id, text("1"))
		require.NoError(t, err)
		require.NoError(t, m.Store(id).Set(t.Context(), "k", "v"))
	}
	others := []string{"ann%2F2", "anna", "ann%25", "an", "Ann/1", "ann%2F/1"}
	for _, id := range others {
		remember(id)
	}
	m.Wait(t.Context())
	before, kept := entries(t, db), idsOf(t, m)
	for _, thread := range []string{"", "1", "2", "a/b", "%", "é"} {
		remember(workspace.Thread("ann", thread))
	}
	require.NoError(t, m.Store("ann/never used").Set(t.Context(), "k", "v"))
	require.NoError(t, m.DeleteUser(t.Context(), "ann"))
	require.Equal(t, kept, idsOf(t, m))

	for name, change := range map[string]func(id string) error{
		"handle": func(id string) error { _, err := m.Handle(t.Context(), id, text("2")); return err },
		"update": func(id string) error {
			return m.Update(t.Context(), id, func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
		},
		"do":     func(id string) error { return m.Do(t.Context(), id, visit) },
		"import": func(id string) error { return m.ImportWorkspace(t.Context(), id, exported(t, m, "anna")) },
	} {
		for _, id := range []string{"ann", "ann/1", "ann/new", workspace.NewThread("ann")} {
			require.ErrorIs(t, change(id), workspace.ErrUserDeleted, "%s %s", name, id)
		}
	}
	require.Equal(t, kept, idsOf(t, m))
	require.NoError(t, m.DeleteUser(t.Context(), "ann"), "again")

	n, err := m.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 7)
	for _, id := range []string{"ann", "ann/1", "ann/a%2Fb"} { // imports have written the values of Store before they failed
		require.NoError(t, m.Delete(t.Context(), id))
	}
	require.NoError(t, m.DeleteUser(t.Context(), "ann"))
	_, err = m.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, keysOf(before), keysOf(entries(t, db)), "nothing of the user is left")
	remember("ann/1")
	require.Contains(t, idsOf(t, m), "ann/1", "the user may come back")
}

func keysOf(values map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(key string) bool { return strings.HasPrefix(key, "agent:holder:") })
}

func exported(t *testing.T, m *workspace.Manager, id string) []byte {
	t.Helper()
	data, err := m.Export(t.Context(), id)
	require.NoError(t, err)
	return data
}

// Whatever is made while the user is deleted is gone when DeleteUser returns, and
// nothing of the user is made after it has begun.
func TestDeleteUserAmongSenders(t *testing.T) {
	for round := range 20 {
		var db store.Store = store.NewMemory()
		var closed atomic.Bool
		shared := "agent:workspace:ann%2F"
		db = fakestore.New(db, func(_ context.Context, c fakestore.Call, do func() error) error {
			err := do()
			if c.Op == "Batch" && err == nil && slices.ContainsFunc(c.Writes, func(w store.Write) bool {
				return w.Key == shared && strings.Contains(string(w.Value), `"closed":true`)
			}) {
				closed.Store(true)
			}
			return err
		})
		var managers []*workspace.Manager
		for range 3 {
			managers = append(managers, open(t, db, workspace.Options{Run: visit}))
		}
		var wg sync.WaitGroup
		var late, made atomic.Int64
		for i := range 12 {
			wg.Go(func() {
				m := managers[i%3]
				for n := range 4 {
					over := closed.Load()
					_, err := m.Handle(t.Context(), workspace.Thread("ann", fmt.Sprint(i, n)), text("1"))
					switch {
					case err == nil && over:
						late.Add(1)
					case err == nil:
						made.Add(1)
					default:
						if !errors.Is(err, workspace.ErrUserDeleted) && !errors.Is(err, workspace.ErrFenced) {
							t.Errorf("round %d: %v", round, err)
						}
					}
				}
			})
		}
		require.NoError(t, managers[round%3].DeleteUser(t.Context(), "ann"))
		require.Empty(t, idsOf(t, managers[0]))
		wg.Wait()
		require.Zero(t, late.Load())
		require.Empty(t, idsOf(t, managers[0]))
	}
}

// Another process goes on with the deletion of one that has died.
func TestDeleteUserIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := store.NewMemory()
		gone := errors.New("the process has died")
		var writes, dies atomic.Int64
		dying := fakestore.New(memory, func(_ context.Context, c fakestore.Call, do func() error) error {
			if c.Op == "Batch" && dies.Load() > 0 && writes.Add(1) > dies.Load() {
				return gone
			}
			return do()
		})
		other := open(t, memory, workspace.Options{Run: visit})
		for n := range int64(6) {
			m := open(t, dying, workspace.Options{StoreTimeout: time.Second})
			user := fmt.Sprint("user", n)
			for _, thread := range []string{"", "1", "2", "3"} {
				require.NoError(t, m.Update(t.Context(), workspace.Thread(user, thread), func(w *workspace.Workspace) error {
					return visits.Set(w.State(), 1)
				}))
				require.NoError(t, m.Store(workspace.Thread(user, thread)).Set(t.Context(), "k", "v"))
			}
			writes.Store(0)
			dies.Store(n + 1)
			require.ErrorIs(t, m.DeleteUser(t.Context(), user), gone)
			dies.Store(0)
			deleting := 0
			for s, err := range other.Active(t.Context()) {
				require.NoError(t, err)
				require.True(t, s.Deleting)
				deleting++
			}
			require.Equal(t, 1, deleting)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			require.Empty(t, idsOf(t, other), "after %d writes", n+1)
			for range other.Active(t.Context()) {
				require.Fail(t, "it is still listed")
			}
			for key := range entries(t, memory) {
				require.False(t, strings.HasPrefix(key, "agent:data:") || strings.HasPrefix(key, "agent:blob:"), key)
			}
		}
	})
}

// A run that deletes its user ends, and so do those of the other threads.
func TestDeleteUserInRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *workspace.Manager
		deleted := make(chan error, 1)
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() == "ann/1" {
				deleted <- m.DeleteUser(ctx, "ann")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		for _, id := range []string{"ann", "ann/2", "ann/1"} {
			_, err := m.Submit(t.Context(), id, text("1"))
			require.NoError(t, err)
		}
		require.NoError(t, <-deleted)
		require.NoError(t, m.Wait(t.Context()), "all runs have ended")
		require.Empty(t, idsOf(t, m))
	})
}

// Only the message that makes a thread costs more than one of a user: a Get and a
// write of the same batch.
func TestMessagesOfThreadsCostTheSame(t *testing.T) {
	count := func(id string, messages int) (gets, batches int) {
		synctest.Test(t, func(t *testing.T) {
			counted := fakestore.Count(store.NewMemory())
			m := open(t, counted, workspace.Options{Run: visit})
			synctest.Wait() // it has looked for runs
			for n := range messages {
				_, err := m.Handle(t.Context(), id, text(fmt.Sprint(n)))
				require.NoError(t, err)
			}
			gets, batches = counted.Calls("Get"), counted.Calls("Batch")
		})
		return gets, batches
	}
	for _, n := range []int{1, 2, 10} {
		gets, batches := count("ann", n)
		threadGets, threadBatches := count("ann/1", n)
		t.Logf("%d messages: Get %d and %d, Batch %d and %d", n, gets, threadGets, batches, threadBatches)
		require.Equal(t, gets+1, threadGets, "%d messages", n)
		require.Equal(t, batches, threadBatches, "%d messages", n)
	}
}

// A program that was about to make a thread, and was paused while the user was
// deleted, makes none.
func TestPausedSenderMakesNoThread(t *testing.T) {
	for name, before := range map[string]func(m *workspace.Manager) error{
		"the first thread": func(*workspace.Manager) error { return nil },
		"another thread":   func(m *workspace.Manager) error { _, err := m.Handle(t.Context(), "ann/2", text("1")); return err },
		"a thread that was deleted": func(m *workspace.Manager) error {
			_, err := m.Handle(t.Context(), "ann/1", text("0"))
			return errors.Join(err, m.Delete(t.Context(), "ann/1"))
		},
		"a user who was deleted and has expired": func(m *workspace.Manager) error {
			_, err := m.Handle(t.Context(), "ann/1", text("0"))
			err = errors.Join(err, m.DeleteUser(t.Context(), "ann"))
			_, expireErr := m.Expire(t.Context(), 0)
			return errors.Join(err, expireErr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory := store.NewMemory()
			other := open(t, memory, workspace.Options{Run: visit})
			require.NoError(t, before(other))
			var paused atomic.Bool
			reached, goOn := make(chan struct{}), make(chan struct{})
			m := open(t, fakestore.New(memory, func(_ context.Context, c fakestore.Call, do func() error) error {
				if c.Op == "Batch" && slices.ContainsFunc(c.Writes, func(w store.Write) bool { return w.Key == "agent:workspace:ann%2F1" }) && !paused.Swap(true) {
					close(reached)
					<-goOn
				}
				return do()
			}), workspace.Options{Run: visit})
			failed := make(chan error, 1)
			go func() {
				_, err := m.Handle(t.Context(), "ann/1", text("1"))
				failed <- err
			}()
			<-reached
			require.NoError(t, other.DeleteUser(t.Context(), "ann"))
			close(goOn)
			require.ErrorIs(t, <-failed, workspace.ErrUserDeleted)
			require.Empty(t, idsOf(t, other))
		})
	}
}
