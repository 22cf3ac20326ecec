package workspace_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// order is a type of the program, which a published schema does not know.
type order struct {
	ID    string
	Total int
}

func publishable() (*state.Schema, *state.Field[[]order], *state.Field[string]) {
	newest := func(_ []order, _ bool, update []order) ([]order, error) { return update, nil }
	orders := &state.Field[[]order]{
		Name: "orders", Owner: "shop", Read: state.Only("billing"), Handler: state.NewHandler("newest", newest),
		Validate: func([]order) error { return nil },
	}
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true, Was: []string{"number"}}
	byID := state.MergeByID[[]order](func(o order) string { return o.ID })
	return state.MustSchema(
		state.Team{"shop": {"billing"}}, state.AllowUndeclared, state.Limits{Keys: 100}, orders, card,
		&state.Field[time.Time]{Name: "due", Handler: state.NewHandler("newest", func(_ time.Time, _ bool, t time.Time) (time.Time, error) { return t, nil })},
		&state.Field[[]order]{Name: "past", Handler: byID},
		&state.Field[int]{Name: "count", Handler: state.Sum[int]()},
		&state.Field[[]state.Message]{
			Name: "messages", Read: state.Public, Write: state.Public,
			Handler: state.NewHandler("trim", func(_ []state.Message, _ bool, m []state.Message) ([]state.Message, error) { return m, nil }),
		},
	), orders, card
}

// A program with the published schema sees what the one that published it does,
// with the same secrets masked.
func TestPublishedSchemaShowsWorkspaces(t *testing.T) {
	db := store.NewMemory()
	none, err := workspace.PublishedSchema(t.Context(), db)
	require.NoError(t, err)
	require.Nil(t, none)

	schema, orders, card := publishable()
	require.NoError(t, workspace.PublishSchema(t.Context(), db, schema))
	m := open(t, db, workspace.Options{Schema: schema})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		return errors.Join(
			orders.Set(w.State(), []order{{"#W1", 12}}), card.Set(w.State(), "4242-4242-4242"),
			w.State().KV().Set("count", 3), w.State().KV().Set("due", time.Unix(1, 0).UTC()), w.State().KV().Set("free", 1),
		)
	}))

	published, err := workspace.PublishedSchema(t.Context(), db)
	require.NoError(t, err)
	want, got := schema.Fields(), published.Fields()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Name, got[i].Name)
		require.Equal(t, want[i].Handler, got[i].Handler, got[i].Name)
		require.Equal(t, want[i].Secret, got[i].Secret, got[i].Name)
		require.Equal(t, want[i].Read, got[i].Read, got[i].Name)
		require.Equal(t, want[i].Owner, got[i].Owner, got[i].Name)
	}
	require.Equal(t, schema.Team(), published.Team())

	reader := open(t, store.ReadOnly(db), workspace.Options{Schema: published})
	mine, theirs := view(t, m, "ann"), view(t, reader, "ann")
	require.Empty(t, theirs.Unknown)
	for _, name := range mine.State().KV().Keys() {
		a, ok := mine.State().KV().JSON(name)
		require.True(t, ok, name)
		b, ok := theirs.State().KV().JSON(name)
		require.True(t, ok, name)
		require.JSONEq(t, string(a), string(b), name)
	}
	require.Equal(t, "of [SECRET]", theirs.Redact("of 4242-4242-4242"))

	// The handler of the program is missing, and nothing takes its place.
	st := state.New(published)
	require.ErrorIs(t, st.KV().Set("orders", []any{map[string]any{"ID": "#W2", "Total": 1}}), state.ErrRefused)
	require.NoError(t, st.KV().Replace("orders", []any{map[string]any{"ID": "#W2", "Total": 1}}))
	require.NoError(t, st.KV().Set("count", 1))
}

// The schema is in nobody's way.
func TestPublishedSchemaIsNoWorkspace(t *testing.T) {
	db := store.NewMemory()
	schema, _, card := publishable()
	require.NoError(t, workspace.PublishSchema(t.Context(), db, schema))
	m := open(t, db, workspace.Options{Schema: schema, Run: nothing})
	require.NoError(t, m.Update(t.Context(), "schema", func(w *workspace.Workspace) error { return card.Set(w.State(), "4242-4242-4242") }))
	require.NoError(t, m.Store("schema").Set(t.Context(), "schema", "data"))

	var users []string
	for user, err := range m.List(t.Context()) {
		require.NoError(t, err)
		users = append(users, user)
	}
	for s, err := range m.Summaries(t.Context(), "") {
		require.NoError(t, errors.Join(err, s.Err))
		users = append(users, s.UserID)
	}
	require.Equal(t, []string{"schema", "schema"}, users)
	require.NoError(t, settle(t.Context(), m))
	_, err := m.Verify(t.Context(), "schema")
	require.NoError(t, err)
	require.NoError(t, m.Delete(t.Context(), "schema"))
	_, err = m.Expire(t.Context(), time.Nanosecond)
	require.NoError(t, err)
	published, err := workspace.PublishedSchema(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, schema.Team(), published.Team())
}

func TestPublishSchemaWritesOnlyChanges(t *testing.T) {
	db := store.NewMemory()
	schema, _, _ := publishable()
	revision := func() store.Revision {
		e, err := store.Get(t.Context(), db, "agent:schema")
		require.NoError(t, err)
		return e.Revision
	}
	require.NoError(t, workspace.PublishSchema(t.Context(), db, schema))
	first := revision()
	same, _, _ := publishable()
	require.NoError(t, workspace.PublishSchema(t.Context(), store.ReadOnly(db), same))
	require.Equal(t, first, revision())
	require.NoError(t, workspace.PublishSchema(t.Context(), db, state.MustSchema()))
	require.NotEqual(t, first, revision())
	published, err := workspace.PublishedSchema(t.Context(), db)
	require.NoError(t, err)
	require.Nil(t, published.Team())
	require.ErrorIs(t, workspace.PublishSchema(t.Context(), store.ReadOnly(db), schema), store.ErrReadOnly)
}

func TestPublishedSchemaThatCannotBeUsed(t *testing.T) {
	schema, _, _ := publishable()
	nameless := state.NewHandler("", func(_ int, _ bool, n int) (int, error) { return n, nil })
	require.ErrorIs(t, workspace.PublishSchema(t.Context(), nil, schema), workspace.ErrInvalid)
	require.ErrorIs(t, workspace.PublishSchema(t.Context(), store.NewMemory(), nil), workspace.ErrInvalid)
	require.ErrorIs(t, workspace.PublishSchema(t.Context(), store.NewMemory(),
		state.MustSchema(&state.Field[int]{Name: "n", Handler: nameless})), workspace.ErrInvalid)
	_, err := workspace.PublishedSchema(t.Context(), nil)
	require.ErrorIs(t, err, workspace.ErrInvalid)

	data, err := schema.MarshalJSON()
	require.NoError(t, err)
	for _, damaged := range [][]byte{{}, []byte("null"), []byte("{"), data[1:], data[:len(data)-1], slices.Concat(data, data), []byte(`{"fields":[{"name":"f","type":"no"}]}`)} {
		db := store.NewMemory()
		_, err := store.Put(t.Context(), db, "agent:schema", damaged, store.Always)
		require.NoError(t, err)
		s, err := workspace.PublishedSchema(t.Context(), db)
		require.ErrorIs(t, err, workspace.ErrCorrupt, "%s", damaged)
		require.Nil(t, s)
		require.NoError(t, workspace.PublishSchema(t.Context(), db, schema), "it can be published again")
	}
	closed := store.NewMemory()
	require.NoError(t, closed.Close())
	_, err = workspace.PublishedSchema(t.Context(), closed)
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, workspace.PublishSchema(t.Context(), closed, schema), store.ErrClosed)
}
