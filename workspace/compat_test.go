package workspace_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// An old program preserves what a newer one has stored, even when it compacts.
func TestUnknownFieldsStay(t *testing.T) {
	db := store.NewMemory()
	mood := &state.Field[string]{Name: "mood"}
	plan := &state.Field[[]string]{Name: "plan", Secret: true}
	newer := open(t, db, workspace.Options{Schema: state.MustSchema(notes, mood, plan)})
	require.NoError(t, newer.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.NoError(t, plan.Set(w.State(), []string{"a", "b"}))
		require.NoError(t, w.SetSettings(func(s *workspace.Settings) { s.MCPServers = map[string]state.JSON{"m": `{"a":1.0}`} }))
		return mood.Set(w.State(), "good")
	}))

	older, runs := hold(t, db, workspace.Options{Schema: state.MustSchema(notes, state.AllowUndeclared)})
	for range 5 {
		run := runs.Begin(t, "ann", workspace.Message{Content: state.UserText("Hello!")})
		require.NoError(t, notes.Set(run.State(), []string{strings.Repeat("x", 3000)}))
		require.False(t, run.State().KV().Has("plan"), "what was secret does not become public")
		run.Finish(t)
	}
	require.NoError(t, older.Compact(t.Context(), "ann"))
	v := view(t, older, "ann")
	require.Equal(t, []string{"mood", "plan"}, v.Unknown)
	require.Positive(t, v.Oldest)

	v = view(t, newer, "ann")
	require.Empty(t, v.Unknown)
	require.Equal(t, "good", mood.GetOr(v.State(), ""))
	require.Equal(t, []string{"a", "b"}, plan.GetOr(v.State(), nil))
	require.Len(t, notes.GetOr(v.State(), nil), 5)
	require.Equal(t, map[string]state.JSON{"m": `{"a":1.0}`}, v.Settings().MCPServers)
}

// Data of a newer format stays as it is.
func TestNewerFormat(t *testing.T) {
	db := store.NewMemory()
	newer := `{"format":4,"content":"of which nobody here knows"}`
	write(t, db, map[string]string{annsHead: newer})
	m := open(t, db, workspace.Options{Run: nothing})
	_, err := m.View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	_, err = m.Submit(t.Context(), "ann", whenBusy(workspace.BusyRollback, text("1")))
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	_, err = m.Reset(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrNewerFormat)
	require.ErrorIs(t, m.Compact(t.Context(), "ann"), workspace.ErrNewerFormat)
	require.Equal(t, map[string]string{annsHead: newer}, entries(t, db))
}

// Fields that hold references, of types that no store could hold, live as long
// as the run of one process: a run that takes it over does not have them.
func TestReferencesAreNotStoredAndEndWithATakeover(t *testing.T) {
	type client struct {
		Name  string
		Calls chan string
	}
	clients := &state.Field[*client]{Name: "client", Ephemeral: true, NoCopy: true}
	streams := &state.Field[[]chan string]{Name: "streams", Ephemeral: true, NoCopy: true}
	schema := state.MustSchema(notes, clients, streams)
	for _, how := range []workspace.Takeover{workspace.TakeoverResume, workspace.TakeoverRestart} {
		synctest.Test(t, func(t *testing.T) {
			db := store.NewMemory()
			process, kill := asProcess(db)
			crashed, runs := hold(t, process, workspace.Options{Schema: schema})
			run := runs.Begin(t, "ann", text("1"))
			c := &client{Name: "reference", Calls: make(chan string)}
			require.NoError(t, clients.Set(run.State(), c))
			require.NoError(t, streams.Set(run.State(), []chan string{c.Calls}))
			require.NoError(t, notes.Set(run.State(), []string{"stored"}))
			require.NoError(t, run.Commit(t.Context()))
			require.Same(t, c, clients.GetOr(run.State(), nil), "within the run it stays")
			require.Len(t, streams.GetOr(run.State(), nil), 1)
			stored := 0
			for key, value := range entries(t, db) {
				require.NotContains(t, value, "client", key)
				require.NotContains(t, value, "streams", key)
				require.NotContains(t, value, "reference", key)
				stored += strings.Count(value, "notes")
			}
			require.NotZero(t, stored)
			kill()
			require.NoError(t, crashed.Close())

			attempts := 0
			m := open(t, db, workspace.Options{Schema: schema, Takeover: how, Run: func(_ context.Context, r *workspace.Run) error {
				attempts += r.Attempt()
				require.False(t, clients.Has(r.State()))
				require.False(t, streams.Has(r.State()))
				require.Equal(t, how == workspace.TakeoverResume, notes.Has(r.State()))
				return clients.Set(r.State(), c)
			}})
			require.NoError(t, settle(t.Context(), m))
			require.Equal(t, 1, attempts)
			require.False(t, clients.Has(view(t, m, "ann").State()), "the run has ended")
		})
	}
}

// A program whose schema has other names and forms reads what is stored, and
// stores a field anew with the first change to it.
func TestFormerNamesAndForms(t *testing.T) {
	db := store.NewMemory()
	order := &state.Field[string]{Name: "order"}
	remarks := &state.Field[[]string]{Name: "remarks"}
	amount := &state.Field[string]{Name: "amount"}
	card := &state.Field[string]{Name: "card", Secret: true}
	older := open(t, db, workspace.Options{Schema: state.MustSchema(order, remarks, amount, card)})
	change := func(m *workspace.Manager, fn func(st *state.State) error) {
		t.Helper()
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return fn(w.State()) }))
	}
	change(older, func(st *state.State) error {
		return st.Patch(map[string]any{"order": "W1", "remarks": []string{"a", "b"}, "amount": "7", "card": "4242-4242"})
	})
	written := view(t, older, "ann").Version

	orderID := &state.Field[string]{Name: "order_id", Was: []string{"order"}}
	comments := &state.Field[[]string]{Name: "comments", Was: []string{"notes", "remarks"}}
	amounts := &state.Field[[]int]{Name: "amount", Convert: func(former state.JSON) ([]int, error) {
		text, err := strconv.Unquote(string(former))
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(text)
		return []int{n}, err
	}}
	number := &state.Field[string]{Name: "card_number", Was: []string{"card"}, Secret: true}
	newer := open(t, db, workspace.Options{Schema: state.MustSchema(orderID, comments, amounts, number)})
	requireContent := func(v *workspace.View, order string, remarks []string, sums []int, card string) {
		t.Helper()
		st := v.State()
		require.Empty(t, v.Unknown)
		require.Equal(t, order, orderID.GetOr(st, ""))
		require.Equal(t, remarks, comments.GetOr(st, nil))
		require.Equal(t, sums, amounts.GetOr(st, nil))
		require.Equal(t, card, number.GetOr(st, ""))
	}
	stored := entries(t, db)
	requireContent(view(t, newer, "ann"), "W1", []string{"a", "b"}, []int{7}, "4242-4242")
	require.Equal(t, stored, entries(t, db), "looking stores nothing")

	change(newer, func(st *state.State) error {
		return errors.Join(comments.Set(st, []string{"c"}), amounts.Set(st, []int{8}))
	})
	requireContent(view(t, newer, "ann"), "W1", []string{"a", "b", "c"}, []int{7, 8}, "4242-4242")
	_, err := older.View(t.Context(), "ann")
	require.ErrorIs(t, err, state.ErrWrongType)
	require.ErrorContains(t, err, "amount")
	rolledBack := open(t, db, workspace.Options{Schema: state.MustSchema(order, remarks, card)})
	v := view(t, rolledBack, "ann")
	require.Equal(t, "W1", order.GetOr(v.State(), ""), "what was not changed keeps its name")
	require.Equal(t, []string{"amount", "comments"}, v.Unknown)

	change(newer, func(st *state.State) error {
		_, deleted := orderID.Delete(st)
		return errors.Join(deleted, comments.Replace(st, []string{"d"}), number.Set(st, "5353-5353"))
	})
	requireContent(view(t, newer, "ann"), "", []string{"d"}, []int{7, 8}, "5353-5353")
	past, err := newer.ViewAt(t.Context(), "ann", written)
	if !errors.Is(err, state.ErrCompacted) { // a secret was replaced
		require.NoError(t, err)
		requireContent(past, "W1", []string{"a", "b"}, []int{7}, "4242-4242")
	}
	require.NoError(t, newer.Compact(t.Context(), "ann"))
	requireContent(view(t, newer, "ann"), "", []string{"d"}, []int{7, 8}, "5353-5353")
	for key, value := range entries(t, db) {
		require.NotContains(t, value, "4242-4242", key)
	}
	report, err := newer.Verify(t.Context(), "ann")
	require.NoError(t, err, report)
}
