package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/storetest"
)

func TestPostgresPresence(t *testing.T) { storetest.Presence(t, newServer(t, "postgres").address(t)) }
func TestMySQLPresence(t *testing.T)    { storetest.Presence(t, newServer(t, "mysql").address(t)) }

func requirePresent(t *testing.T, p store.Presence, name string, want bool) {
	t.Helper()
	present, err := p.IsPresent(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, want, present)
}

// TestPresenceOfTables checks that the names of tables are independent.
func TestPresenceOfTables(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			s := newServer(t, driver)
			testPresenceOfTables(t, s.open(t, s.url, s.table(t)), s.open(t, s.url, s.table(t)))
		})
	}
}

func testPresenceOfTables(t *testing.T, one, two store.Presence) {
	_, withdraw, err := one.Announce(t.Context(), "name")
	require.NoError(t, err)
	requirePresent(t, two, "name", false)
	_, _, err = two.Announce(t.Context(), "name")
	require.NoError(t, err)
	require.NoError(t, withdraw())
	requirePresent(t, one, "name", false)
	requirePresent(t, two, "name", true)
}

// TestPresenceLost checks that the end of a session by the server closes lost.
func TestPresenceLost(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		s := newServer(t, "postgres")
		table := s.table(t)
		testPresenceLost(t, s.open(t, s.withParameter(t, "application_name", table), table), s.open(t, s.url, table), func() {
			var ended int
			err := s.db.QueryRowContext(t.Context(), `select count(pg_terminate_backend(pid)) from pg_locks
				where locktype = 'advisory' and pid in (select pid from pg_stat_activity where application_name = $1)`,
				table).Scan(&ended)
			require.NoError(t, err)
			require.Equal(t, 1, ended)
		})
	})
	t.Run("mysql", func(t *testing.T) {
		s := newServer(t, "mysql")
		table := s.table(t)
		testPresenceLost(t, s.open(t, s.url, table), s.open(t, s.url, table), func() {
			var session int
			err := s.db.QueryRowContext(t.Context(), `select is_used_lock(sha2(concat(lower(database()), '/', ?), 256))`,
				sqlstore.PresenceHash("`"+table+"`", "name")).Scan(&session)
			require.NoError(t, err)
			s.exec(t, fmt.Sprint("kill ", session))
		})
	})
}

func testPresenceLost(t *testing.T, p, other store.Presence, endSession func()) {
	lost, withdraw, err := p.Announce(t.Context(), "name")
	require.NoError(t, err)
	kept, _, err := other.Announce(t.Context(), "other name")
	require.NoError(t, err)
	endSession()
	testkit.Until(func() bool {
		present, err := other.IsPresent(t.Context(), "name")
		require.NoError(t, err)
		return !present
	})
	_, next, err := other.Announce(t.Context(), "name")
	require.NoError(t, err)
	<-lost
	require.Error(t, withdraw())
	requirePresent(t, other, "name", true)
	require.NoError(t, next())
	requirePresent(t, p, "name", false)
	requirePresent(t, p, "other name", true)
	require.Empty(t, kept)
}
