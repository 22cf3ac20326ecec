package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/storetest"
)

// openPool opens a pool as a program does.
func openPool(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// mysqlPool opens a pool with parameters in the format of the driver.
func (s *server) mysqlPool(t *testing.T, parameters string) *sql.DB {
	at := strings.TrimPrefix(s.url, "mysql://")
	user, rest, _ := strings.Cut(at, "@")
	host, name, _ := strings.Cut(rest, "/")
	return openPool(t, "mysql", user+"@tcp("+host+")/"+name+parameters)
}

// Pools may have settings that a store would not choose.
func TestPoolOfProgram(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		s := newServer(t, "postgres")
		db := openPool(t, "pgx", s.withParameter(t, "default_query_exec_mode", "simple_protocol"))
		testPool(t, db, sqlstore.Postgres(), s.table(t))
	})
	t.Run("mysql", func(t *testing.T) {
		s := newServer(t, "mysql")
		testPool(t, s.mysqlPool(t, "?clientFoundRows=true&interpolateParams=true"), mysqlstore.Dialect(), s.table(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		testPool(t, openPool(t, "sqlite", filepath.Join(t.TempDir(), "state.db")), sqlstore.SQLite(), "entries")
	})
}

func testPool(t *testing.T, db *sql.DB, d sqlstore.Dialect, table string) {
	s, err := sqlstore.New(t.Context(), db, d, &sqlstore.Options{Table: table})
	require.NoError(t, err)
	ctx := t.Context()
	value := []byte("it's \\ \x00 \xff")
	rev, err := store.Put(ctx, s, "k", value, store.IfAbsent)
	require.NoError(t, err)
	_, err = store.Put(ctx, s, "k", nil, store.IfAbsent)
	require.ErrorIs(t, err, store.ErrConflict)
	e, err := store.Get(ctx, s, "k")
	require.NoError(t, err)
	require.Equal(t, store.Entry{Key: "k", Value: value, Revision: rev}, e)
	_, err = s.Batch(ctx, []store.Write{{Key: "other", Cond: store.IfAbsent}, {Key: "k", Cond: store.IfAbsent}})
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = store.Get(ctx, s, "other")
	require.ErrorIs(t, err, store.ErrNotFound)

	// Each of these adds one to a number.
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			for n := 0; n < 10; {
				e, err := store.Get(ctx, s, "k")
				if err == nil {
					_, err = s.Batch(ctx, []store.Write{
						{Key: "k", Value: append(e.Value, 'x'), Cond: store.IfRevision(e.Revision)}, {Key: "other"},
					})
				}
				switch {
				case err == nil:
					n++
				case !errors.Is(err, store.ErrConflict):
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	e, err = store.Get(ctx, s, "k")
	require.NoError(t, err)
	require.Len(t, e.Value, len(value)+80)
	require.NoError(t, s.Close())
	require.NoError(t, db.PingContext(ctx), "the pool stays open")
}

// A SQLite database without a log of writes, in which those who read keep
// writers waiting.
func TestSQLiteWithoutLog(t *testing.T) {
	db := openPool(t, "sqlite", filepath.Join(t.TempDir(), "state.db"))
	tables := 0
	storetest.Run(t, func(*testing.T) func() store.Store {
		tables++
		table := fmt.Sprint("table_", tables)
		return func() store.Store {
			s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite(), &sqlstore.Options{Table: table})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	})
}

func TestCloseDB(t *testing.T) {
	db := openPool(t, "sqlite", filepath.Join(t.TempDir(), "state.db"))
	s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite(), &sqlstore.Options{CloseDB: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Error(t, db.PingContext(t.Context()))
}

func TestNewRefuses(t *testing.T) {
	file := openPool(t, "sqlite", filepath.Join(t.TempDir(), "state.db"))
	memory := openPool(t, "sqlite", ":memory:")
	unsafe := openPool(t, "sqlite", filepath.Join(t.TempDir(), "unsafe.db"))
	unsafe.SetMaxOpenConns(1)
	_, err := unsafe.ExecContext(t.Context(), "pragma journal_mode = memory")
	require.NoError(t, err)
	type row struct {
		db      *sql.DB
		dialect sqlstore.Dialect
		table   string
		want    string
	}
	rows := map[string]row{
		"no dialect":        {file, sqlstore.Dialect{}, "", "dialect"},
		"no pool":           {nil, sqlstore.SQLite(), "", "pool is nil"},
		"name of the table": {file, sqlstore.SQLite(), "a b", "name of the table"},
		"in memory":         {memory, sqlstore.SQLite(), "", "not in a file"},
		"no durable log":    {unsafe, sqlstore.SQLite(), "", "journal_mode"},
		"no numbers":        {file, sqlstore.MySQL(nil), "", "numbers"},
	}
	s := newServer(t, "mysql")
	rows["not strict"] = row{s.mysqlPool(t, "?sql_mode=''"), mysqlstore.Dialect(), "", "strict"}
	rows["autocommit"] = row{s.mysqlPool(t, "?autocommit=0"), mysqlstore.Dialect(), "", "autocommit"}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			_, err := sqlstore.New(t.Context(), r.db, r.dialect, &sqlstore.Options{Table: r.table})
			require.ErrorIs(t, err, store.ErrInvalid)
			require.ErrorContains(t, err, r.want)
		})
	}
}

// A server that does not answer ends a call although its context has no end.
func TestSlowServer(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			s := newServer(t, driver)
			table := s.table(t)
			proxy := testkit.NewProxy(t, s.host(t))
			opened := s.open(t, s.withHost(t, proxy.Addr()), table)
			_, err := store.Put(t.Context(), opened, "k", []byte("before"), store.Always)
			require.NoError(t, err)
			sqlstore.SetCallTime(t, 300*time.Millisecond)
			proxy.Drop(testkit.ToServer)
			_, err = store.Get(t.Context(), opened, "k")
			require.ErrorContains(t, err, "has not answered within 300ms")
			_, err = store.Put(t.Context(), opened, "k", []byte("after"), store.Always)
			require.ErrorContains(t, err, "has not answered within 300ms")
			require.NotErrorIs(t, err, context.Canceled)
		})
	}
}

// A program that has a driver of its own does not get another one with this
// package.
func TestNoDriverIsImported(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for path := range strings.Lines(string(out)) {
		host, _, isRemote := strings.Cut(strings.TrimSpace(path), "/")
		if isRemote && strings.Contains(host, ".") {
			require.Regexp(t, `^(github.com/agentstate/state/|golang.org/x/)`, path)
		}
	}
}
