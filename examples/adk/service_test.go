package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"
)

// stores are what the tests of the service run on.
var stores = map[string]func(t *testing.T) store.Store{
	"memory": func(*testing.T) store.Store { return store.NewMemory() },
	"SQLite": func(t *testing.T) store.Store {
		db, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	},
}

func openManager(t testing.TB, db store.Store, opts workspace.Options) *workspace.Manager {
	t.Helper()
	if opts.Schema == nil {
		opts.Schema = state.MustSchema(Session, Events, Values)
	}
	m, err := workspace.Open(context.Background(), db, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// The acceptance suite of adk for session services.
func TestServicePassesTheSuiteOfADK(t *testing.T) {
	for name, newStore := range stores {
		t.Run(name, func(t *testing.T) {
			opts := sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}
			sessiontestsuite.RunServiceTests(t, opts, func(t *testing.T) session.Service {
				return Service(openManager(t, newStore(t), workspace.Options{}))
			})
		})
	}
}
