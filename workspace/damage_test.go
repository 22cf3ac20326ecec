package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// fillDamaged is fill with dead letters, outcomes and values of Store.
func fillDamaged(t *testing.T, db store.Store, keys ...workspace.Key) {
	t.Helper()
	m := open(t, db, workspace.Options{Keys: keys, Run: func(_ context.Context, run *workspace.Run) error {
		if strings.HasPrefix(run.Message().ID, "dead") {
			return errors.New("broken")
		}
		return nil
	}})
	for i := range 20 {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("done ", i)))
		require.NoError(t, err)
	}
	for i := range 3 {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("dead ", i)))
		require.Error(t, err)
	}
	require.NoError(t, m.Store("ann").Set(t.Context(), "card", "4242"))
	require.NoError(t, m.Close())
	fill(t, db, keys...)
}

// An operator can delete and reset a workspace, whatever is damaged.
func TestDamagedWorkspaceIsDeletedAndReset(t *testing.T) {
	damages := map[string]func(value string) string{
		"missing": func(string) string { return "" },
		"another": func(value string) string { return "x" + value[1:] },
		"cut":     func(value string) string { return value[:len(value)-1] },
		"changed": func(value string) string { return value[:len(value)-2] + "~" + value[len(value)-1:] },
	}
	others := []string{"an", "ann2", "ann/b1-abc", "Ann", "bob"}
	for _, keys := range [][]workspace.Key{nil, {key("a")}} {
		db := store.NewMemory()
		for _, user := range others {
			m := open(t, db, workspace.Options{Keys: keys, Run: nothing})
			_, err := m.Handle(t.Context(), user, text(strings.Repeat("1", 100)))
			require.NoError(t, err)
			require.NoError(t, m.Store(user).Set(t.Context(), "card", "1111"))
			require.NoError(t, m.Close())
		}
		theirs := entries(t, db)
		fillDamaged(t, db, keys...)
		whole := entries(t, db)
		for damaged, value := range whole {
			if _, ok := theirs[damaged]; ok || strings.HasPrefix(damaged, "agent:data:") || value == "" {
				continue
			}
			for what, damage := range damages {
				where := fmt.Sprintf("%s %s, %d keys", damaged, what, len(keys))
				prepare := func() *workspace.Manager {
					values := map[string]string{}
					for key, value := range whole {
						values[key] = value
					}
					if values[damaged] = damage(values[damaged]); values[damaged] == "" {
						delete(values, damaged)
					}
					write(t, db, values)
					// Without Run: it would go on with the run before the operator acts.
					return open(t, db, workspace.Options{Keys: keys})
				}
				usable := func(m *workspace.Manager) {
					require.NoError(t, m.Close())
					m = open(t, db, workspace.Options{Keys: keys, Run: nothing})
					_, err := m.Handle(t.Context(), "ann", text("after"))
					require.NoError(t, err, where)
					_, err = m.Verify(t.Context(), "ann")
					require.NoError(t, err, where)
					require.NoError(t, m.Close())
					now := entries(t, db)
					for key, value := range theirs {
						require.Equal(t, value, now[key], where)
					}
				}
				m := prepare()
				if damaged == annsHead && what == "another" && keys != nil {
					// It may be sealed with a key that was not given.
					_, err := m.Reset(t.Context(), "ann")
					require.ErrorIs(t, err, workspace.ErrInvalidKey)
					require.ErrorIs(t, m.Delete(t.Context(), "ann"), workspace.ErrInvalidKey)
					require.Len(t, entries(t, db), len(whole))
					continue
				}
				ids, err := m.Reset(t.Context(), "ann")
				require.NoError(t, err, where)
				if damaged != annsHead {
					require.Contains(t, ids, "1", where)
				}
				usable(m)

				m = prepare()
				require.NoError(t, m.Delete(t.Context(), "ann"), where)
				left := entries(t, db)
				require.Len(t, left, len(theirs)+1, where)
				require.Contains(t, left, annsHead)
				usable(m)

				m = prepare()
				require.NoError(t, m.Delete(t.Context(), "ann"), where)
				n, err := m.Expire(t.Context(), 0)
				require.NoError(t, err)
				require.Equal(t, 1, n, where)
				require.Equal(t, theirs, entries(t, db))
				require.NoError(t, m.Close())
			}
		}
	}
}
