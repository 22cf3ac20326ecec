package sqlstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/storetest"
)

func TestSQLitePresence(t *testing.T)   { storetest.Presence(t, sqliteAddress(t)) }
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
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		testPresenceOfTables(t, openTable(t, path, "one"), openTable(t, path, "two"))
	})
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

func openTable(t *testing.T, path, table string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), "sqlite", path, &sqlstore.Options{Table: table})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSQLitePresenceLinks checks that all names of a database have one lock
// file.
func TestSQLitePresenceLinks(t *testing.T) {
	dir, links := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "state.db")
	p := openTable(t, path, "entries")
	require.NoError(t, os.Symlink(path, filepath.Join(links, "file.db")))
	require.NoError(t, os.Symlink(dir, filepath.Join(links, "dir")))
	_, _, err := p.Announce(t.Context(), "name")
	require.NoError(t, err)
	for _, link := range []string{"file.db", "dir/state.db"} {
		requirePresent(t, openTable(t, filepath.Join(links, link), "entries"), "name", true)
	}
	require.NoFileExists(t, filepath.Join(links, "file.db-presence"))
}

// TestSQLitePresenceFile checks that looking creates no file, and that the file
// is empty and as accessible as the database.
func TestSQLitePresenceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	p := openTable(t, path, "entries")
	require.NoError(t, os.Chmod(path, 0o660))
	requirePresent(t, p, "name", false)
	require.NoFileExists(t, path+"-presence")
	_, withdraw, err := p.Announce(t.Context(), "name")
	require.NoError(t, err)
	info, err := os.Stat(path + "-presence")
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.Equal(t, os.FileMode(0o660), info.Mode())
	require.NoError(t, withdraw())
	require.FileExists(t, path+"-presence")
}

// TestSQLitePresenceFileRemoved checks that an announcement is lost with its
// file, and that its claim does not get in the way of the next one.
func TestSQLitePresenceFileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	p := openTable(t, path, "entries")
	lost, withdraw, err := p.Announce(t.Context(), "name")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path+"-presence"))
	requirePresent(t, p, "name", false)
	_, _, err = p.Announce(t.Context(), "name")
	require.NoError(t, err)
	<-lost
	require.NoError(t, withdraw())
	requirePresent(t, p, "name", true)
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
