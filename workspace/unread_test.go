package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A field that was renamed without Was, and a key that a schema does not have any more,
// vanish for the program. The Logger says so, once for each name.
func TestStoredFieldsThatNobodyReadsAreLogged(t *testing.T) {
	field := func(name string, was ...string) *state.Field[string] {
		return &state.Field[string]{Name: name, Was: was}
	}
	shared := func(name string, was ...string) *state.Field[string] {
		return &state.Field[string]{Name: name, Shared: true, Was: was}
	}
	anyName := state.MustSchema(state.AllowUndeclared)
	for _, c := range []struct {
		what     string
		old, now *state.Schema
		want     string // in the log
	}{
		{"renamed", state.MustSchema(field("order")), state.MustSchema(field("order_id")), `"order"`},
		{"renamed with Was", state.MustSchema(field("order")), state.MustSchema(field("order_id", "order")), ""},
		{"removed", state.MustSchema(field("order")), state.MustSchema(), `"order"`},
		{"not changed", state.MustSchema(field("order")), state.MustSchema(field("order")), ""},
		{"a key of any name", anyName, anyName, ""},
		{"a key, then a schema without it", anyName, state.MustSchema(field("order_id")), `"order"`},
		{"a key, then a schema with it", anyName, state.MustSchema(field("order")), ""},
		{"a field, then any name", state.MustSchema(field("order")), anyName, `"order"`},
		{"shared, renamed", state.MustSchema(shared("order")), state.MustSchema(shared("order_id")), `"order"`},
		{"shared, renamed with Was", state.MustSchema(shared("order")), state.MustSchema(shared("order_id", "order")), ""},
		{"shared, not changed", state.MustSchema(shared("order")), state.MustSchema(shared("order")), ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			db := store.NewMemory()
			const hidden = "hunter2-hunter2"
			m := open(t, db, workspace.Options{Schema: c.old, Run: func(_ context.Context, run *workspace.Run) error {
				return run.State().KV().Set("order", hidden)
			}})
			users := []string{"ann/1", "ann/2", "bob/1"}
			for _, user := range users {
				_, err := m.Handle(t.Context(), user, text("1"))
				require.NoError(t, err)
			}
			require.NoError(t, m.Close())
			var log bytes.Buffer
			m = open(t, db, workspace.Options{Schema: c.now, Run: nothing, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for _, user := range users {
				for _, id := range []string{"2", "3"} {
					_, err := m.Handle(t.Context(), user, text(id))
					require.NoError(t, err)
				}
			}
			require.NoError(t, m.Close())
			require.NotContains(t, log.String(), hidden)
			if c.want == "" {
				require.NotContains(t, log.String(), "not in the schema")
				return
			}
			require.Equal(t, 1, strings.Count(log.String(), `msg="stored fields are not in the schema"`), log.String())
			require.Contains(t, log.String(), strings.ReplaceAll(c.want, `"`, `\"`))
			require.Contains(t, log.String(), "give Was to a field that was renamed")
		})
	}
}

// A run, and code that looks at a View, say by the Logger of the Manager that the schema
// does not have a field.
func TestAFieldThatTheSchemaLacksIsLoggedByTheManager(t *testing.T) {
	misspelt, other := &state.Field[string]{Name: "citty"}, &state.Field[string]{Name: "cuntry"}
	var log bytes.Buffer
	m := open(t, store.NewMemory(), workspace.Options{
		Schema: state.MustSchema(&state.Field[string]{Name: "city"}), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Run: func(_ context.Context, run *workspace.Run) error {
			misspelt.GetOr(run.State(), "")
			misspelt.GetOr(run.State().Fork(), "")
			return nil
		},
	})
	for _, id := range []string{"1", "2"} {
		_, err := m.Handle(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	other.GetOr(view(t, m, "ann").State(), "")
	require.NoError(t, m.Close())
	require.Equal(t, 1, strings.Count(log.String(), "citty is read and not in the schema"), log.String())
	require.Contains(t, log.String(), `did you mean \"city\"?`)
	require.Contains(t, log.String(), "cuntry is read and not in the schema")
}

// What is written to the State of a run that has ended would be lost.
func TestTheStateOfARunThatHasEndedIsReadOnly(t *testing.T) {
	for name, end := range map[string]error{"finished": nil, "failed": errors.New("no")} {
		var left, branch, agents *state.State
		m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			left, branch, agents = run.State(), run.State().Fork(), run.State().As("ann")
			return errors.Join(visits.Set(left, 1), end)
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.Equal(t, end == nil, err == nil, name)
		for _, st := range []*state.State{left, agents} {
			err := visits.Set(st, 2)
			require.ErrorIs(t, err, state.ErrReadOnly, name)
			require.ErrorIs(t, err, workspace.ErrRunEnded, name)
			require.Equal(t, 1, visits.GetOr(st, 0), "it can be read")
		}
		require.ErrorIs(t, left.KV().Replace("visits", 2), state.ErrReadOnly, name)
		require.NoError(t, visits.Set(branch, 2))
		require.ErrorIs(t, left.Join(branch), state.ErrReadOnly, name)
	}
}
