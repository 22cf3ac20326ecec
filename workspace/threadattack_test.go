package workspace_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// No names of another user, and no other names of a thread, reach a thread.
func TestNoNameReachesAnotherThread(t *testing.T) {
	const secret = "the-secret-of-ann"
	for _, keys := range [][]workspace.Key{nil, {key("a")}} {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Keys: keys, Run: visit})
		victims := []string{workspace.Thread("ann", ""), workspace.Thread("ann", "s"), workspace.Shared("ann")}
		for _, id := range victims {
			require.NoError(t, m.Update(t.Context(), id, func(w *workspace.Workspace) error { return w.Memory().Set("k", secret) }))
			require.NoError(t, m.Store(id).Set(t.Context(), "k", secret))
		}
		before := entries(t, db)
		for _, names := range [][2]string{
			{"bob", "../ann/s"}, {"bob/..", "ann"}, {"bob", "/ann/s"}, {"", "ann/s"}, {"", "s"}, {"an", "n/s"}, {"a", "nn"},
			{"ann/s", ""}, {"ann%2Fs", ""}, {"ann/", "s"}, {"ann%2F", "s"}, {"ann/", ""}, {"ann%2F", ""}, {"ann%", "2Fs"}, {"ann%252F", "s"},
			{"Ann", "s"}, {"ann ", "s"}, {"ann\x00", "s"}, {"ann\n", "s"}, {"ａｎｎ", "s"}, {"ann\u200b", "s"}, {"an\u006e\u0301", "s"}, {"ann\u2215s", ""},
			{"ann", "S"}, {"ann", "s/"}, {"ann", "/s"}, {"ann", "s%"}, {"ann", "%73"}, {"ann", "s\x00"}, {"ann", " s"}, {"ann", "."}, {"ann", ".."},
			{"ann", "\xff"}, {"\xff", "s"}, {"ann:k", ""}, {"ann/s:k", ""},
		} {
			id := workspace.Thread(names[0], names[1])
			require.NotContains(t, victims, id)
			if v, err := m.View(t.Context(), id); err == nil {
				require.False(t, v.Exists, "%q", id)
			}
			_, found, err := m.Store(id).Get(t.Context(), "k")
			require.False(t, err == nil && found, "%q", id)
			if names[0] != "ann" {
				for _, victim := range victims[:2] {
					require.ErrorIs(t, m.Fork(t.Context(), victim, id, workspace.ForkPoint{}), workspace.ErrInvalid, "%q", id)
					require.ErrorIs(t, m.Fork(t.Context(), id, victim, workspace.ForkPoint{}), workspace.ErrInvalid, "%q", id)
				}
				for s, err := range m.Threads(t.Context(), names[0], "") {
					require.Error(t, err, "%q has %q", names[0], s.UserID)
				}
				_ = m.DeleteUser(t.Context(), names[0])
			}
			_ = m.Delete(t.Context(), id)
			_, _ = m.Reset(t.Context(), id)
		}
		_, err := m.Expire(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, before, entries(t, db), "nothing of ann has changed, and nothing else is there")
	}
}

// Who can write to the store, and exchanges what is stored of two threads, gets
// nothing to see.
func TestSwappedThreadsAreFound(t *testing.T) {
	ids := []string{"ann", "ann/", "ann/1", "ann/2", "bob/1", "ann%2F1"}
	for _, keys := range [][]workspace.Key{nil, {key("a")}} {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Keys: keys})
		for _, id := range ids {
			require.NoError(t, m.Update(t.Context(), id, func(w *workspace.Workspace) error {
				return w.Memory().Set("k", strings.Repeat("of "+id+" ", 2000))
			}))
			require.NoError(t, m.Store(id).Set(t.Context(), "k", "of "+id))
		}
		whole := entries(t, db)
		for _, from := range ids {
			for _, to := range ids {
				if from == to {
					continue
				}
				swapped := maps.Clone(whole)
				encoded := strings.NewReplacer("%", "%25", "/", "%2F")
				for key, value := range whole {
					for _, kind := range []string{"agent:workspace:", "agent:blob:", "agent:data:"} {
						rest, ok := strings.CutPrefix(key, kind+encoded.Replace(from))
						if ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
							swapped[kind+encoded.Replace(to)+rest] = value
						}
					}
				}
				write(t, db, swapped)
				other := open(t, db, workspace.Options{Keys: keys})
				_, err := other.View(t.Context(), to)
				require.Error(t, err, "%s as %s", from, to)
				require.NotContains(t, err.Error(), "of "+from+" ")
				_, err = other.Export(t.Context(), to)
				require.Error(t, err)
				require.Error(t, other.Fork(t.Context(), to, workspace.NewThread("ann"), workspace.ForkPoint{}))
				for s, err := range other.Threads(t.Context(), "ann", "") {
					require.NoError(t, err)
					require.True(t, s.UserID != to || s.Err != nil, "%s as %s", from, to)
				}
				if keys != nil { // else nothing vouches for values of Store
					_, _, err = other.Store(to).Get(t.Context(), "k")
					require.Error(t, err, "%s as %s", from, to)
				}
				require.NoError(t, other.Close())
			}
		}
	}
}

// Nothing of a thread is told to those who watch another one.
func TestWatchTellsNothingOfOthers(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: visit})
	for _, watched := range []string{"ann", "ann/2", "bob", "bob/", "ann%2F1", "ann%2F1/"} {
		ctx, cancel := context.WithCancel(t.Context())
		for e, err := range m.Watch(ctx, watched).AsHost() {
			require.NoError(t, err)
			require.Equal(t, watched, e.UserID)
			if e.Order == 1 {
				_, err := m.Handle(ctx, "ann/1", text(watched))
				require.NoError(t, err)
				_, err = m.Handle(ctx, watched+"x", text("1")) // another one
				if strings.HasSuffix(watched, "/") {           // it is told, and the next event ends the loop
					require.NoError(t, err)
					break
				}
				require.NoError(t, err)
				require.NoError(t, m.Update(ctx, watched, func(w *workspace.Workspace) error { return w.Memory().Set("k", watched) }))
				continue
			}
			if e.Version > 0 {
				break
			}
		}
		cancel()
	}
}
