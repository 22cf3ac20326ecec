package sqlstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// A write that was given up leaves no session on PostgreSQL, which would wait there
// for as long as what it waits for is away, and take the place of others. MariaDB
// keeps such sessions: to end one while it waits for a replica acknowledges what no
// replica has.
func TestPostgresNoSessionOfWritesThatAreGivenUp(t *testing.T) {
	const writers = 24 // more than the pool has connections
	s := newServer(t, "postgres")
	table := s.table(t)
	opened := s.open(t, s.url, table)
	s.exec(t, withTable("create function TABLE_sleep() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';"+
		"create trigger slow before insert on TABLE for each row execute function TABLE_sleep()", table))
	t.Cleanup(func() {
		_, err := s.db.ExecContext(context.Background(), withTable("drop function TABLE_sleep() cascade", table))
		require.NoError(t, err)
	})
	waiting := func() (n int) {
		const sessions = "select count(*) from pg_stat_activity where query like '%TABLE%' and pid <> pg_backend_pid() and state = 'active'"
		require.NoError(t, s.db.QueryRowContext(t.Context(), withTable(sessions, table)).Scan(&n))
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			_, err := store.Put(ctx, opened, fmt.Sprint("k", i), nil, store.IfAbsent)
			assert.Error(t, err)
		})
	}
	require.Eventually(t, func() bool { return waiting() > 0 }, 2*time.Second, 10*time.Millisecond)
	wg.Wait()
	require.Eventually(t, func() bool { return waiting() == 0 }, 20*time.Second, 50*time.Millisecond)
}
