package testkit

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CloseConnection lets a server, "postgres" or "mysql", close the connection of tx.
func CloseConnection(t testing.TB, kind string, db *sql.DB, tx *sql.Tx) {
	t.Helper()
	statements := map[string][2]string{
		"postgres": {"select pg_backend_pid()", "select pg_terminate_backend(%d, 60000)"},
		"mysql":    {"select connection_id()", "kill %d"},
	}[kind]
	var id int
	require.NoError(t, tx.QueryRowContext(t.Context(), statements[0]).Scan(&id))
	_, err := db.ExecContext(t.Context(), fmt.Sprintf(statements[1], id))
	require.NoError(t, err)
}

// CauseDeadlock returns the error that tx gets, as the victim of a deadlock. The
// table has a column n with the numbers 1 and 2.
func CauseDeadlock(t testing.TB, kind string, db *sql.DB, tx *sql.Tx, table string) error {
	t.Helper()
	ctx := t.Context()
	other, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer other.Rollback()
	lock := func(tx *sql.Tx, n int) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("update %s set n = n + 10000 where n = %d", table, n))
		return err
	}
	for n := range 100 { // MariaDB rolls back the transaction that has less to undo
		_, err := other.ExecContext(ctx, fmt.Sprintf("insert into %s (n) values (%d)", table, 1000+n))
		require.NoError(t, err)
	}
	waiting := "select count(*) > 0 from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_query like '%" + table + "%'"
	if kind == "postgres" { // it rolls back the one that looks first
		waiting = "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' and query like '%" + table + "%'"
		_, err = tx.ExecContext(ctx, "set local deadlock_timeout = '10ms'")
		require.NoError(t, err)
		_, err = other.ExecContext(ctx, "set local deadlock_timeout = '1h'")
		require.NoError(t, err)
	}
	require.NoError(t, lock(tx, 1))
	require.NoError(t, lock(other, 2))
	done := make(chan error, 1)
	go func() { done <- lock(other, 1) }()
	for waits := false; !waits; {
		time.Sleep(150 * time.Millisecond) // who asks InnoDB again within 0.1 s is told the same
		require.NoError(t, db.QueryRowContext(ctx, waiting).Scan(&waits))
	}
	err = lock(tx, 2)
	require.NoError(t, <-done)
	return err
}
