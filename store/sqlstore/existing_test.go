package sqlstore_test

import (
	"context"
	"crypto/rand"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
)

// A store that opens only what exists creates no table, and shows one to a user
// that may only read.
func TestOpenExisting(t *testing.T) {
	for driver, openStore := range map[string]func(context.Context, string, *sqlstore.Options) (*sqlstore.Store, error){
		"postgres": postgresstore.Open, "mysql": mysqlstore.Open,
	} {
		t.Run(driver, func(t *testing.T) {
			s := newServer(t, driver)
			table := s.table(t)
			existing := &sqlstore.Options{Table: table, Existing: true}
			for range 2 { // the first one has created nothing
				_, err := openStore(t.Context(), s.url, existing)
				require.ErrorIs(t, err, fs.ErrNotExist)
				var of *store.Error
				require.ErrorAs(t, err, &of)
				require.Equal(t, driver, of.Store)
			}
			_, err := store.Put(t.Context(), s.open(t, s.url, table), "k", []byte("v"), store.Always)
			require.NoError(t, err)
			for _, url := range []string{s.url, s.reader(t, table)} {
				read, err := openStore(t.Context(), url, existing)
				require.NoError(t, err)
				e, err := store.Get(t.Context(), read, "k")
				require.NoError(t, err)
				require.Equal(t, "v", string(e.Value))
				for e, err := range read.List(t.Context(), "", "", false) {
					require.NoError(t, err)
					require.Equal(t, "k", e.Key)
				}
				_, err = store.Put(t.Context(), read, "k", []byte("w"), store.Always)
				require.Equal(t, url == s.url, err == nil, "only a user that may")
				require.NoError(t, read.Close())
				_, err = store.Put(t.Context(), s.open(t, s.url, table), "k", []byte("v"), store.Always)
				require.NoError(t, err)
			}
		})
	}
}

// reader returns the URL for a new user that may only read a table.
func (s *server) reader(t testing.TB, table string) string {
	t.Helper()
	name, password := "reader_"+strings.ToLower(rand.Text()[:12]), rand.Text()
	run := func(texts ...string) {
		for _, text := range texts {
			_, err := s.db.ExecContext(context.Background(), text)
			require.NoError(t, err)
		}
	}
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	if s.driver == "postgres" {
		run("create role "+name+" login password '"+password+"'", "grant select on "+table+" to "+name)
		t.Cleanup(func() { run("drop owned by "+name, "drop role "+name) })
	} else {
		run("create user "+name+"@'%' identified by '"+password+"'", "grant select on "+table+" to "+name+"@'%'")
		t.Cleanup(func() { run("drop user " + name + "@'%'") })
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}
