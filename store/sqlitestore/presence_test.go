package sqlitestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestPresence(t *testing.T) { storetest.Presence(t, address(t)) }

func requirePresent(t *testing.T, p store.Presence, name string, want bool) {
	t.Helper()
	present, err := p.IsPresent(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, want, present)
}

// TestPresenceOfTables checks that the names of tables are independent.
func TestPresenceOfTables(t *testing.T) {
	path := address(t)
	one, two := openTable(t, path, "one"), openTable(t, path, "two")
	_, withdraw, err := one.Announce(t.Context(), "name")
	require.NoError(t, err)
	requirePresent(t, two, "name", false)
	_, _, err = two.Announce(t.Context(), "name")
	require.NoError(t, err)
	require.NoError(t, withdraw())
	requirePresent(t, one, "name", false)
	requirePresent(t, two, "name", true)
}

// TestPresenceLinks checks that all names of a database have one lock
// file.
func TestPresenceLinks(t *testing.T) {
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

// TestPresenceFile checks that looking creates no file, and that the file
// is empty and as accessible as the database.
func TestPresenceFile(t *testing.T) {
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

// TestPresenceFileRemoved checks that an announcement is lost with its
// file, and that its claim does not get in the way of the next one.
func TestPresenceFileRemoved(t *testing.T) {
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
