package processes

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// A caller of List that needs one entry makes the server read few rows:
// the first page is small. PostgreSQL says how many rows of a table it has read.
func TestFirstPageIsSmall(t *testing.T) {
	p := servers[0]
	p.find(t)
	db, err := sql.Open("pgx", p.url)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	for _, test := range []struct {
		name string
		most int
		read func(s store.Store) bool
	}{
		{"values", 16, func(s store.Store) bool {
			for _, err := range s.List(t.Context(), "user", "", true) {
				return err == nil
			}
			return false
		}},
		{"keys", 16, func(s store.Store) bool {
			for _, err := range s.List(t.Context(), "user", "", false) {
				return err == nil
			}
			return false
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := p.fresh(t)
			table := strings.Fields(address)[1]
			s := open(t, address)
			for n := range 20 {
				var writes []store.Write
				for i := range 100 {
					writes = append(writes, store.Write{Key: fmt.Sprintf("user%05d", 100*n+i), Value: make([]byte, 1000)})
				}
				_, err := s.Batch(t.Context(), writes)
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			_, err := db.ExecContext(t.Context(), "analyze "+table)
			require.NoError(t, err)
			before := rowsRead(t, db, table, 0)
			s = open(t, address)
			require.True(t, test.read(s))
			require.NoError(t, s.Close()) // a session tells its numbers when it ends
			read := rowsRead(t, db, table, before+1) - before
			t.Logf("%d rows", read)
			require.LessOrEqual(t, read, test.most+4) // the planner looks at the ends of the index
		})
	}
}

// rowsRead waits until a server has read a number of rows of a table at least,
// and returns how many they are.
func rowsRead(t *testing.T, db *sql.DB, table string, least int) int {
	const query = `select seq_tup_read +
		(select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes i where i.relid = t.relid)
		from pg_stat_user_tables t where relid = to_regclass($1)`
	for {
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), query, table).Scan(&n))
		if n >= least {
			return n
		}
		require.NoError(t, nap(t.Context(), 20*time.Millisecond))
	}
}
