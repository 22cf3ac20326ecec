package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
)

// begin begins a transaction of another program, and executes statements in it.
func (s *server) begin(t *testing.T, texts ...string) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	for _, text := range texts {
		_, err := tx.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
	return tx
}

// untilWaiting waits until n statements about a table wait for a lock.
func (s *server) untilWaiting(t *testing.T, table string, n int) {
	t.Helper()
	count := map[string]string{
		"postgres": "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%TABLE%'",
		"mysql":    "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_query like '%TABLE%'",
	}[s.driver]
	testkit.Until(func() bool {
		if s.driver == "mysql" { // which shows the same for 0.1 s, and longer if asked meanwhile
			s.exec(t, "do sleep(0.2)")
		}
		var waiting int
		require.NoError(t, s.db.QueryRowContext(t.Context(), withTable(count, table)).Scan(&waiting))
		return waiting == n
	})
}

// A batch waits for nobody who has locked other rows than its own. The table is
// small, so that a database may prefer to read all of it.
func TestBatchLocksItsRowsOnly(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			s := newServer(t, driver)
			table := s.table(t)
			opened := s.open(t, s.url, table)
			var all, batch []store.Write
			for _, key := range []string{"ann", "bob/0", "bob/1", "bob/2", "bob/3", "eve"} {
				all = append(all, store.Write{Key: key})
				batch = append(batch, store.Write{Key: key, Delete: true})
			}
			_, err := opened.Batch(t.Context(), all)
			require.NoError(t, err)
			batch = append(batch[1:5], store.Write{Key: "bob/9", Value: []byte("new")})
			s.begin(t, withTable("update TABLE set rev = 'x' where k = 'ann'", table),
				withTable("update TABLE set rev = 'x' where k = 'eve'", table))
			_, err = opened.Batch(t.Context(), batch)
			require.NoError(t, err)
			_, err = store.Put(t.Context(), opened, "bob/2", nil, store.Always)
			require.NoError(t, err)
			_, err = opened.Batch(t.Context(), batch) // of rows most of which are missing
			require.NoError(t, err)
			require.Equal(t, map[string]string{"ann": "", "bob/9": "new", "eve": ""}, contents(t, opened))
		})
	}
}

// A condition that does not hold after the server has ended a deadlock is a
// conflict: what the batch wrote before was rolled back.
func TestConflictAfterDeadlock(t *testing.T) {
	for driver, parameter := range map[string]string{"postgres": "deadlock_timeout", "mysql": "innodb_lock_wait_timeout"} {
		t.Run(driver, func(t *testing.T) {
			s := newServer(t, driver)
			table := s.table(t)
			opened := s.open(t, s.withParameter(t, parameter, "20"), table)
			writes := []store.Write{{Key: "a"}, {Key: "b"}, {Key: "c"}}
			revs, err := opened.Batch(t.Context(), writes)
			require.NoError(t, err)
			for i := range writes {
				writes[i].Value, writes[i].Cond = []byte("batch"), store.IfRevision(revs[i])
			}

			// Of two transactions, PostgreSQL ends the one that sees the
			// deadlock, and InnoDB the one that has written less.
			other := []string{"update TABLE set rev = 'x' where k = 'c'"}
			if driver == "postgres" {
				other = append(other, "set local deadlock_timeout = '1h'")
			}
			for i := range 50 {
				other = append(other, fmt.Sprintf("insert into TABLE (k, v, rev) values ('other/%d', '', 'x')", i))
			}
			for i := range other {
				other[i] = withTable(other[i], table)
			}
			tx := s.begin(t, other...)
			middle := s.begin(t, withTable("select rev from TABLE where k = 'b' for update", table))

			result, locked := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := opened.Batch(context.Background(), writes) // locks a, and waits for b
				result <- err
			}()
			s.untilWaiting(t, table, 1)
			go func() {
				_, err := tx.ExecContext(context.Background(), withTable("update TABLE set rev = 'x' where k = 'a'", table))
				locked <- err
			}()
			s.untilWaiting(t, table, 2)
			require.NoError(t, middle.Rollback()) // the batch goes on to c
			require.NoError(t, <-locked, "the batch has given a back")
			require.Empty(t, result)
			require.NoError(t, tx.Commit())

			err = <-result
			require.ErrorIs(t, err, store.ErrConflict)
			require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			var about *store.Error
			require.ErrorAs(t, err, &about)
			require.Equal(t, "a", about.Key)
			require.Empty(t, contents(t, opened)["b"])
		})
	}
}
