package workspace_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

const annsCard = "agent:data:ann:card"

func TestStoreIsSealed(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Keys: []workspace.Key{key("a")}, Run: func(ctx context.Context, run *workspace.Run) error {
		return run.Store().SetJSON(ctx, "card", map[string]string{"number": "SECRET4242"})
	}})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.NotContains(t, entries(t, db)[annsCard], "SECRET4242")
	var card map[string]string
	found, err := m.Store("ann").GetJSON(t.Context(), "card", &card)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "SECRET4242", card["number"])
	updated, err := m.Store("ann").Update(t.Context(), "card", func(value string, _ bool) (string, error) { return value + " ", nil })
	require.NoError(t, err)
	require.Equal(t, `{"number":"SECRET4242"} `, updated)
	require.NoError(t, m.Store("ann").Delete(t.Context(), "none"))

	get := func(keys ...workspace.Key) error {
		_, _, err := open(t, db, workspace.Options{Keys: keys}).Store("ann").Get(t.Context(), "card")
		return err
	}
	sealed := entries(t, db)[annsCard]
	swap := func(key, value string) {
		_, err := store.Put(t.Context(), db, key, []byte(value), store.Always)
		require.NoError(t, err)
	}
	require.NoError(t, get(key("a")))
	require.ErrorIs(t, get(), workspace.ErrInvalidKey)
	require.ErrorIs(t, get(key("b")), workspace.ErrInvalidKey)
	swap(annsCard, `{"number":"0000"}`)
	require.ErrorIs(t, get(key("a")), workspace.ErrInvalidKey, "plaintext")
	_, err = m.Verify(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrInvalidKey)
	swap(annsCard, sealed[:len(sealed)-1]+string(sealed[len(sealed)-1]^1))
	require.ErrorIs(t, get(key("a")), workspace.ErrCorrupt)
	swap("agent:data:ann:other", sealed)
	swap("agent:data:bob:card", sealed)
	_, _, err = m.Store("ann").Get(t.Context(), "other")
	require.ErrorIs(t, err, workspace.ErrCorrupt, "a value belongs to its key")
	_, _, err = m.Store("bob").Get(t.Context(), "card")
	require.ErrorIs(t, err, workspace.ErrCorrupt, "a value belongs to its user")
	require.ErrorAs(t, err, new(*store.Error))
}

func TestStoreWithoutKeys(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	require.NoError(t, m.Store("ann").Set(t.Context(), "card", "plain"))
	require.Equal(t, "plain", entries(t, db)[annsCard])
	err := m.Store("ann").Set(t.Context(), "card", `{"format":1,"key":"a","sealed":true}`+"\n")
	require.ErrorIs(t, err, workspace.ErrInvalid, "it could not be told from a sealed value")
	value, _, err := m.Store("ann").Get(t.Context(), "card")
	require.NoError(t, err)
	require.Equal(t, "plain", value)
	for _, user := range []string{"", "\xff"} {
		require.ErrorIs(t, m.Store(user).Set(t.Context(), "card", "x"), workspace.ErrInvalid)
		_, _, err = m.Store(user).Get(t.Context(), "card")
		require.ErrorIs(t, err, workspace.ErrInvalid)
	}
}

// The order in which a new key is introduced, which Key documents: in a
// deployment, processes of two adjacent steps run side by side, and both handle
// all messages.
func TestKeyRollout(t *testing.T) {
	db := store.NewMemory()
	before, after := key("a"), key("b")
	steps := [][]workspace.Key{{before}, {before, after}, {after, before}, {after}}
	run := func(ctx context.Context, run *workspace.Run) error {
		if _, _, err := run.Store().Get(ctx, "card"); err != nil {
			return err
		}
		if err := run.Store().Set(ctx, "card", run.Message().ID); err != nil {
			return err
		}
		return visits.Set(run.State(), 1)
	}
	handled := 0
	handle := func(m *workspace.Manager) {
		t.Helper()
		handled++
		_, err := m.Handle(t.Context(), "ann", text(string(rune('a'+handled))))
		require.NoError(t, err, "message %d", handled)
	}
	for i := range steps[1:] {
		older := open(t, db, workspace.Options{Keys: steps[i], Run: run})
		newer := open(t, db, workspace.Options{Keys: steps[i+1], Run: run})
		for range 3 {
			handle(older)
			handle(newer)
		}
		if i == 1 { // every process has the new key first
			require.NoError(t, newer.Store("ann").Set(t.Context(), "note", "x"))
			require.NoError(t, older.Store("ann").Set(t.Context(), "note", "x"))
			require.NoError(t, older.Close())
			require.NoError(t, newer.Compact(t.Context(), "ann"))
			report, err := newer.Verify(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, []string{"b"}, report.Keys)
			require.Equal(t, 2, report.Data)
		}
		require.NoError(t, older.Close())
		require.NoError(t, newer.Close())
	}
	m := open(t, db, workspace.Options{Keys: steps[3]})
	require.Equal(t, handled, visits.GetOr(view(t, m, "ann").State(), 0))
	_, err := open(t, db, workspace.Options{Keys: []workspace.Key{before}}).View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrInvalidKey, "the old key is not needed any more")
}
