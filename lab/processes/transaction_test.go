package processes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/workspace"
)

var bought = &state.Field[int]{Name: "bought"}

var boughtSchema = state.MustSchema(bought)

// shop is a SQL database in which a program has a table beside the workspaces of
// its users.
type shop struct {
	store.Store
	db     *sql.DB
	orders string // table with the columns id and n
}

// onShops runs a test on each SQL database.
func onShops(t *testing.T, test func(t *testing.T, s shop)) {
	run := func(name string, d sqlstore.Dialect, open func(t *testing.T) (db *sql.DB, set string)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, set := open(t)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			s, err := sqlstore.New(t.Context(), db, d, &sqlstore.Options{Table: set})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			orders := set + "_orders"
			_, err = db.ExecContext(t.Context(), "create table "+orders+" (id varchar(40) primary key, n int)")
			require.NoError(t, err)
			t.Cleanup(func() {
				_, err := db.ExecContext(context.Background(), "drop table "+orders)
				require.NoError(t, err)
			})
			test(t, shop{s, db, orders})
		})
	}
	run("sqlite", sqlstore.SQLite(), func(t *testing.T) (*sql.DB, string) {
		path := filepath.Join(t.TempDir(), "shop.db")
		db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		return db, "entries"
	})
	for _, p := range servers[:2] {
		d := map[string]sqlstore.Dialect{"postgres": sqlstore.Postgres(), "mysql": mysqlstore.Dialect()}[p.name]
		run(p.name, d, func(t *testing.T) (*sql.DB, string) {
			p.find(t)
			return openPool(t, p.name, p.url), strings.Fields(p.fresh(t))[1]
		})
	}
}

func openPool(t *testing.T, server, url string) *sql.DB {
	t.Helper()
	open := map[string]func(string) (*sql.DB, error){
		"postgres": func(url string) (*sql.DB, error) { return sql.Open("pgx", url) },
		"mysql":    connectMySQL,
	}[server]
	db, err := open(url)
	require.NoError(t, err)
	return db
}

func (s shop) insert(ctx context.Context, tx *sql.Tx, id string, n int) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("insert into %s values ('%s', %d)", s.orders, id, n))
	return err
}

// order returns the number of an order, or -1 if there is none.
func (s shop) order(t *testing.T, id string) int {
	t.Helper()
	n := -1
	err := s.db.QueryRowContext(t.Context(), "select n from "+s.orders+" where id = '"+id+"'").Scan(&n)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(t, err)
	}
	return n
}

func (s shop) count(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, s.db.QueryRowContext(t.Context(), "select count(*) from "+s.orders).Scan(&n))
	return n
}

func TestCommitTx(t *testing.T) {
	onShops(t, func(t *testing.T, s shop) {
		errOwn := errors.New("out of stock")
		m, runs := workspacetest.Hold(t, s.Store, workspace.Options{Schema: boughtSchema})
		defer func() { require.NoError(t, m.Close()) }()
		r := runs.Begin(t, "ann", workspace.Message{ID: "1", Content: state.UserText("Buy it.")})

		require.NoError(t, bought.Set(r.State(), 1))
		err := r.CommitTx(t.Context(), func(tx *sql.Tx) error {
			return errors.Join(s.insert(t.Context(), tx, "refused", 1), errOwn)
		})
		require.ErrorIs(t, err, errOwn)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		require.Equal(t, -1, s.order(t, "refused"))
		require.ErrorIs(t, r.CommitTx(t.Context(), nil), workspace.ErrInvalid)

		calls := 0
		require.NoError(t, r.CommitTx(t.Context(), func(tx *sql.Tx) error {
			calls++
			return s.insert(t.Context(), tx, "bought", bought.GetOr(r.State(), 0))
		}))
		require.Equal(t, 1, calls)
		require.Equal(t, 1, s.order(t, "bought"))
		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 1, bought.GetOr(v.State(), 0))
		require.NoError(t, r.CommitTx(t.Context(), func(tx *sql.Tx) error {
			return s.insert(t.Context(), tx, "without changes", 2)
		}))
		require.Equal(t, 2, s.order(t, "without changes"))

		// The lease is lost: nothing of the program's is written either.
		_, err = m.Reset(t.Context(), "ann")
		require.NoError(t, err)
		err = r.CommitTx(t.Context(), func(tx *sql.Tx) error { return s.insert(t.Context(), tx, "late", 3) })
		require.ErrorIs(t, err, workspace.ErrFenced)
		require.Equal(t, -1, s.order(t, "late"))
	})
}

func TestSubmitTx(t *testing.T) {
	onShops(t, func(t *testing.T, s shop) {
		ctx := t.Context()
		m, err := workspace.Open(ctx, s.Store, &workspace.Options{
			Schema: boughtSchema,
			Run: func(ctx context.Context, r *workspace.Run) error {
				r.SetReply("It is done.")
				return bought.Set(r.State(), bought.GetOr(r.State(), 0)+1)
			},
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		message := func(id string) workspace.Message {
			return workspace.Message{ID: id, Content: state.UserText("Buy it.")}
		}
		begin := func() *sql.Tx {
			tx, err := s.db.BeginTx(ctx, nil)
			require.NoError(t, err)
			return tx
		}

		tx := begin()
		require.NoError(t, s.insert(ctx, tx, "1", 1))
		out, err := m.SubmitTx(ctx, tx, "ann", message("1"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
		require.NoError(t, tx.Rollback())
		_, err = m.Await(ctx, "ann", "1")
		require.ErrorIs(t, err, workspace.ErrNotFound)
		require.Equal(t, -1, s.order(t, "1"))

		tx = begin()
		for _, id := range []string{"1", "2", "3"} {
			require.NoError(t, s.insert(ctx, tx, id, 1))
			out, err := m.SubmitTx(ctx, tx, "ann", message(id))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}
		out, err = m.SubmitTx(ctx, tx, "ann", message("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDuplicate, out.Status)
		require.NoError(t, tx.Commit())
		for _, id := range []string{"3", "1", "2"} {
			out, err := m.Await(ctx, "ann", id)
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
			require.Equal(t, 1, s.order(t, id))
		}
		require.NoError(t, m.Wait(ctx))

		// The process ends after the commit: another one finds the message.
		tx = begin()
		_, err = m.SubmitTx(ctx, tx, "ben", message("1"))
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.NoError(t, workspacetest.Settle(ctx, m))
		for user, want := range map[string]int{"ann": 3, "ben": 1} {
			v, err := m.View(ctx, user)
			require.NoError(t, err)
			require.Equal(t, want, bought.GetOr(v.State(), 0), user)
		}

		// A thread is made with its message, or not at all, and none after the user
		// was deleted.
		tx = begin()
		_, err = m.SubmitTx(ctx, tx, "cy/1", message("1"))
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		_, err = m.Await(ctx, "cy/1", "1")
		require.ErrorIs(t, err, workspace.ErrNotFound)
		tx = begin()
		for _, id := range []string{"cy/1", "cy/2"} {
			out, err := m.SubmitTx(ctx, tx, id, message("1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}
		require.NoError(t, tx.Commit())
		for _, id := range []string{"cy/2", "cy/1"} {
			out, err := m.Await(ctx, id, "1")
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status, id)
		}
		require.NoError(t, m.Wait(ctx))
		require.NoError(t, m.DeleteUser(ctx, "cy"))
		tx = begin()
		_, err = m.SubmitTx(ctx, tx, "cy/3", message("1"))
		require.ErrorIs(t, err, workspace.ErrUserDeleted)
		require.NoError(t, tx.Rollback())

		tx = begin()
		defer tx.Rollback()
		_, err = m.SubmitTx(ctx, tx, "ann", workspace.Message{Content: state.UserText("Buy it.")})
		require.ErrorIs(t, err, workspace.ErrInvalid)
		_, err = m.SubmitTx(ctx, nil, "ann", message("4"))
		require.ErrorIs(t, err, workspace.ErrInvalid)
	})
}

// After a deadlock, a connection that the server has closed, and a call that took
// too long, the function is called again. After an error of its own it is not, nor
// after one that it has ignored.
func TestCommitTxCallsAgain(t *testing.T) {
	onShops(t, func(t *testing.T, s shop) {
		ctx, kind := t.Context(), t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		m, runs := workspacetest.Hold(t, s.Store, workspace.Options{Schema: boughtSchema, StoreTimeout: 6 * time.Second})
		defer func() { require.NoError(t, m.Close()) }()
		r := runs.Begin(t, "ann", workspace.Message{ID: "1", Content: state.UserText("Buy it.")})
		calls := 0
		commit := func(first func(tx *sql.Tx) error) error {
			calls = 0
			require.NoError(t, bought.Set(r.State(), bought.GetOr(r.State(), 0)+1))
			return r.CommitTx(ctx, func(tx *sql.Tx) error {
				if calls++; calls == 1 {
					return first(tx)
				}
				return s.insert(ctx, tx, fmt.Sprint(bought.GetOr(r.State(), 0)), 1)
			})
		}
		require.NoError(t, commit(func(tx *sql.Tx) error {
			for { // until the call has ended
				if _, err := tx.ExecContext(ctx, "select 1"); err != nil {
					return fmt.Errorf("insert: %w", err)
				}
			}
		}))
		require.Greater(t, calls, 1)
		if kind != "sqlite" {
			table := s.orders + "_rows"
			_, err := s.db.ExecContext(ctx, "create table "+table+" (n int primary key)")
			require.NoError(t, err)
			defer func() { _, _ = s.db.ExecContext(context.Background(), "drop table "+table) }()
			_, err = s.db.ExecContext(ctx, "insert into "+table+" values (1), (2)")
			require.NoError(t, err)
			require.NoError(t, commit(func(tx *sql.Tx) error {
				return fmt.Errorf("insert: %w", testkit.CauseDeadlock(t, kind, s.db, tx, table))
			}))
			require.Equal(t, 2, calls)
			require.NoError(t, commit(func(tx *sql.Tx) error {
				testkit.CloseConnection(t, kind, s.db, tx)
				return fmt.Errorf("insert: %w", s.insert(ctx, tx, "late", 1))
			}))
			require.Equal(t, 2, calls)
			require.Equal(t, 3, s.count(t))
		}

		errOwn := errors.New("out of stock")
		require.ErrorIs(t, commit(func(*sql.Tx) error { return errOwn }), errOwn)
		require.Equal(t, 1, calls)
		err := commit(func(tx *sql.Tx) error { return tx.Rollback() })
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, "the function of the program has ended the transaction")
		require.Equal(t, 1, calls)
		err = commit(func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "no statement")
			require.Error(t, err)
			return nil
		})
		if kind == "postgres" {
			require.ErrorContains(t, err, "has gone on after an error with which the database has rolled it back")
			require.ErrorContains(t, err, "25P02")
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, 1, calls)
		require.NoError(t, commit(func(tx *sql.Tx) error { return tx.Commit() }))
		v, err := m.View(ctx, "ann")
		require.NoError(t, err)
		require.Equal(t, bought.GetOr(r.State(), 0), bought.GetOr(v.State(), 0))
	})
}

// A program whose transaction is the victim of a deadlock has to begin it again. It
// finds the answer of the database in the error of SubmitTx.
func TestSubmitTxDeadlock(t *testing.T) {
	onShops(t, func(t *testing.T, s shop) {
		if strings.HasSuffix(t.Name(), "/sqlite") {
			return // one transaction writes at a time
		}
		ctx := t.Context()
		m, err := workspace.Open(ctx, s.Store, &workspace.Options{Schema: boughtSchema})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		users := []string{"ann", "ben"}
		var txs []*sql.Tx
		submit := func(i int, user string) error {
			_, err := m.SubmitTx(ctx, txs[i], user, workspace.Message{ID: fmt.Sprint(i), Content: state.UserText("Buy it.")})
			if err != nil {
				require.NoError(t, txs[i].Rollback())
			}
			return err
		}
		for i, user := range users {
			require.NoError(t, m.Update(ctx, user, func(w *workspace.Workspace) error { return bought.Set(w.State(), 1) }))
			tx, err := s.db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer tx.Rollback()
			txs = append(txs, tx)
			require.NoError(t, submit(i, user))
		}
		other := make(chan error, 1)
		go func() { other <- submit(0, users[1]) }()
		err = errors.Join(submit(1, users[0]), <-other)
		var postgres *pgconn.PgError
		var maria *mysql.MySQLError
		switch {
		case errors.As(err, &postgres):
			require.Equal(t, "40P01", postgres.Code)
		case errors.As(err, &maria):
			require.EqualValues(t, 1213, maria.Number)
		default:
			require.Fail(t, "no answer of the database", "%v", err)
		}
	})
}

// A transaction of another pool may be in another database.
func TestSubmitTxOtherPool(t *testing.T) {
	onShops(t, func(t *testing.T, s shop) {
		m, err := workspace.Open(t.Context(), s.Store, &workspace.Options{Schema: boughtSchema})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		other, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "other.db"))
		require.NoError(t, err)
		defer other.Close()
		tx, err := other.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		_, err = m.SubmitTx(t.Context(), tx, "ann", workspace.Message{ID: "1", Content: state.UserText("Buy it.")})
		require.ErrorIs(t, err, workspace.ErrInvalid)
		require.ErrorContains(t, err, "open the store with sqlstore.New on that pool")
	})
}

// Connections break at random bytes. Whatever CommitTx returns, there are as
// many orders as steps.
func TestCommitTxCut(t *testing.T) {
	for _, p := range servers[:2] {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.find(t)
			address := strings.Fields(p.fresh(t))
			u, err := url.Parse(address[2])
			require.NoError(t, err)
			proxy := testkit.NewProxy(t, u.Host)
			u.Host = proxy.Addr()
			d := map[string]sqlstore.Dialect{"postgres": sqlstore.Postgres(), "mysql": mysqlstore.Dialect()}[p.name]
			db := openPool(t, p.name, u.String())
			defer db.Close()
			opened, err := sqlstore.New(t.Context(), db, d, &sqlstore.Options{Table: address[1]})
			require.NoError(t, err)
			defer opened.Close()
			s := shop{opened, openPool(t, p.name, address[2]), address[1] + "_orders"}
			defer s.db.Close()
			_, err = s.db.ExecContext(t.Context(), "create table "+s.orders+" (id varchar(40) primary key, n int)")
			require.NoError(t, err)
			defer func() {
				_, err := s.db.ExecContext(context.Background(), "drop table "+s.orders)
				require.NoError(t, err)
			}()
			m, runs := workspacetest.Hold(t, s.Store, workspace.Options{Schema: boughtSchema, TTL: time.Minute})
			defer func() { require.NoError(t, m.Close()) }()
			r := runs.Begin(t, "ann", workspace.Message{Content: state.UserText("Buy it.")})

			random := rand.New(rand.NewPCG(effort.LogSeed(t), 0))
			failed, calls := 0, 0
			rounds := effort.Runs(50)
			for i := range rounds {
				if random.IntN(2) == 0 {
					proxy.CutAfter(testkit.ToServer, random.IntN(2000))
				} else {
					proxy.CutAfter(testkit.ToClient, random.IntN(300))
				}
				require.NoError(t, bought.Set(r.State(), i+1))
				for tries, committed := 0, false; !committed; tries++ {
					require.Less(t, tries, 20)
					err := r.CommitTx(t.Context(), func(tx *sql.Tx) error {
						calls++
						return s.insert(t.Context(), tx, fmt.Sprint(i), i)
					})
					if committed = err == nil; !committed {
						failed++
						require.NotErrorIs(t, err, store.ErrUnknownOutcome, "it is tried until it is known")
					}
				}
				proxy.Disarm()
				require.Equal(t, i+1, s.count(t))
			}
			v, err := m.View(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, rounds, bought.GetOr(v.State(), 0))
			t.Logf("%d commits, %d calls of the function, %d failures", rounds, calls, failed)
		})
	}
}
