package sqlstore_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestPostgres(t *testing.T) { newServer(t, "postgres").runAll(t) }

func TestPostgresProcesses(t *testing.T) {
	storetest.Processes(t, newServer(t, "postgres").address(t))
}

func TestPostgresKill(t *testing.T) {
	storetest.Kill(t, newServer(t, "postgres").address(t), 20)
}

func TestPostgresTable(t *testing.T) {
	s := newServer(t, "postgres")
	s.testConcurrentOpen(t)
	s.testForeignTable(t, "create table TABLE (id int)", "other columns")
	s.testForeignTable(t, "create table TABLE (k text primary key, v bytea not null, rev bytea not null)", "other columns")
	s.testForeignTable(t, "create unlogged table TABLE (k bytea primary key, v bytea not null, rev bytea not null)", "unlogged")
}

func TestPostgresDurability(t *testing.T) {
	s := newServer(t, "postgres")
	for commit, want := range map[string]store.Durability{"on": store.DurabilityPower, "local": store.DurabilityPower, "off": store.DurabilityServer} {
		require.Equal(t, want, s.open(t, s.withParameter(t, "synchronous_commit", commit), s.table(t)).Durability(), commit)
	}
}

func TestPostgresRefused(t *testing.T) { newServer(t, "postgres").testRefused(t) }

func TestPostgresReadOnly(t *testing.T) {
	s := newServer(t, "postgres")
	_, err := openServer(t.Context(), "postgres", s.withParameter(t, "default_transaction_read_only", "on"), "")
	require.ErrorContains(t, err, "read only")
}

func TestPostgresPassword(t *testing.T) {
	newServer(t, "postgres").testPasswords(t,
		"postgres://user:hunter2@127.0.0.1:1/database",
		"postgres://user:hunter2@127.0.0.1:port/database",
		"postgres://user:hunter2@[127.0.0.1/database",
		"host=127.0.0.1 port=1 password = hunter2",
		"host='127.0.0.1 password=hunter2 port=x",
		"hunter2",
	)
}

func TestPostgresTooLarge(t *testing.T) {
	s := newServer(t, "postgres")
	opened := s.open(t, s.url, s.table(t))
	_, err := store.Put(t.Context(), opened, "key", make([]byte, 1<<30), store.Always)
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = store.Get(t.Context(), opened, "key")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// TestPostgresIsolation uses isolation levels in which concurrent writers to a row fail.
func TestPostgresIsolation(t *testing.T) {
	s := newServer(t, "postgres")
	for _, isolation := range []string{"repeatable read", "serializable"} {
		opened := s.open(t, s.withParameter(t, "default_transaction_isolation", isolation), s.table(t))
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				for range 20 {
					if _, err := store.Put(t.Context(), opened, "key", []byte("value"), store.Always); err != nil {
						errs[i] = err
					}
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err, isolation)
		}
	}
}

func TestPostgresInterrupted(t *testing.T) {
	s := newServer(t, "postgres")
	for function, unknown := range map[string]bool{"pg_cancel_backend": false, "pg_terminate_backend": true} {
		table := s.table(t)
		opened := s.open(t, s.url, table)
		err := s.interruptPut(t, opened, table, func() {
			s.exec(t, "select "+function+
				"(pid) from pg_stat_activity where wait_event_type = 'Lock' and query like '%"+table+"%'")
		})
		require.Error(t, err, function)
		require.NotErrorIs(t, err, store.ErrConflict)
		require.Equal(t, unknown, isUnknown(err), "%s: %v", function, err)
		entry, err := store.Get(t.Context(), opened, "locked")
		require.NoError(t, err)
		require.Equal(t, "before", string(entry.Value))
	}
}

// A batch that waits for another transaction deletes what that has written. If
// that has deleted the row, the batch is made again in a transaction.
func TestPostgresBatchWaits(t *testing.T) {
	s := newServer(t, "postgres")
	for _, other := range []string{"update TABLE set rev = 'x' where k = 'blob'", "delete from TABLE where k = 'blob'"} {
		for _, byRevision := range []bool{false, true} {
			table := s.table(t)
			opened := s.open(t, s.url, table)
			revs, err := opened.Batch(t.Context(), []store.Write{{Key: "head"}, {Key: "blob"}})
			require.NoError(t, err)
			tx, err := s.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), strings.ReplaceAll(other, "TABLE", table))
			require.NoError(t, err)
			blob := store.Write{Key: "blob", Delete: true}
			if byRevision {
				blob.Cond = store.IfRevision(revs[1])
			}
			result := make(chan error, 1)
			go func() {
				_, err := opened.Batch(t.Context(), []store.Write{
					{Key: "head", Value: []byte("2"), Cond: store.IfRevision(revs[0])}, {Key: "new", Cond: store.IfAbsent}, blob,
				})
				result <- err
			}()
			testkit.Until(func() bool {
				var waiting bool
				require.NoError(t, s.db.QueryRowContext(t.Context(), "select exists (select from pg_stat_activity "+
					"where wait_event_type = 'Lock' and query like '%"+table+"%')").Scan(&waiting))
				return waiting
			})
			require.NoError(t, tx.Commit())
			err = <-result
			head, failed := store.Get(t.Context(), opened, "head")
			require.NoError(t, failed)
			if byRevision {
				var about *store.Error
				require.ErrorIs(t, err, store.ErrConflict)
				require.ErrorAs(t, err, &about)
				require.Equal(t, "blob", about.Key)
				require.Empty(t, head.Value)
				_, err = store.Get(t.Context(), opened, "new")
			} else {
				require.NoError(t, err)
				require.Equal(t, "2", string(head.Value))
				_, err = store.Get(t.Context(), opened, "blob")
			}
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}
}

// The error of several servers is one line with each reason once.
func TestPostgresSeveralServers(t *testing.T) {
	s := newServer(t, "postgres")
	dead := "127.0.0.1:1,127.0.0.1:2"
	_, err := openServer(t.Context(), "postgres", "postgres://user:hunter2@"+dead+"/database", "")
	require.NotContains(t, err.Error(), "\n")
	require.NotContains(t, err.Error(), "hunter2")
	require.Equal(t, 1, strings.Count(err.Error(), "127.0.0.1:2 "), "%v", err)

	_, err = store.Put(t.Context(), s.open(t, s.withHost(t, dead+","+s.host(t)), s.table(t)), "k", nil, store.IfAbsent)
	require.NoError(t, err)
}
