package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
)

// onEachDatabase calls test with a pool, a store on it and the name of a table
// with the column n.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *sql.DB, s *sqlstore.Store, orders string)) {
	run := func(name string, d sqlstore.Dialect, open func(t *testing.T) (db *sql.DB, table, orders string)) {
		t.Run(name, func(t *testing.T) {
			db, table, orders := open(t)
			s, err := sqlstore.New(t.Context(), db, d, &sqlstore.Options{Table: table})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			_, err = db.ExecContext(t.Context(), "create table "+orders+" (n int primary key)")
			require.NoError(t, err)
			test(t, db, s, orders)
		})
	}
	run("sqlite", sqlstore.SQLite(), func(t *testing.T) (*sql.DB, string, string) {
		path := filepath.Join(t.TempDir(), "state.db")
		return openPool(t, "sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)"), "entries", "orders"
	})
	run("postgres", sqlstore.Postgres(), func(t *testing.T) (*sql.DB, string, string) {
		s := newServer(t, "postgres")
		return s.db, s.table(t), s.table(t)
	})
	run("mysql", mysqlstore.Dialect(), func(t *testing.T) (*sql.DB, string, string) {
		s := newServer(t, "mysql")
		return s.db, s.table(t), s.table(t)
	})
}

func insert(ctx context.Context, orders string, tx *sql.Tx, n string) error {
	_, err := tx.ExecContext(ctx, "insert into "+orders+" values ("+n+")")
	return err
}

func count(t *testing.T, db *sql.DB, orders string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "select count(*) from "+orders).Scan(&n))
	return n
}

// Either the writes of the store and those of the program are made, or none.
func TestTransact(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sql.DB, s *sqlstore.Store, orders string) {
		ctx := t.Context()
		writes := []store.Write{{Key: "a", Cond: store.IfAbsent}, {Key: "b", Value: []byte("1")}}
		errOwn := errors.New("not today")
		_, err := s.Transact(ctx, writes, func(tx *sql.Tx) error {
			return errors.Join(insert(ctx, orders, tx, "1"), errOwn)
		})
		require.ErrorIs(t, err, errOwn)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		_, err = s.Transact(ctx, writes, func(tx *sql.Tx) error {
			_ = insert(ctx, orders, tx, "1")
			_ = insert(ctx, orders, tx, "1") // which ends the transaction on one of the databases
			return errors.Join(insert(ctx, orders, tx, "'no number, but words'"), errOwn)
		})
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrUnknownOutcome)
		_, err = store.Get(ctx, s, "b")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Zero(t, count(t, db, orders))

		revs, err := s.Transact(ctx, writes, func(tx *sql.Tx) error { return insert(ctx, orders, tx, "2") })
		require.NoError(t, err)
		e, err := store.Get(ctx, s, "b")
		require.NoError(t, err)
		require.Equal(t, store.Entry{Key: "b", Value: []byte("1"), Revision: revs[1]}, e)
		require.Equal(t, 1, count(t, db, orders))

		_, err = s.Transact(ctx, writes, func(*sql.Tx) error {
			t.Error("called although a condition does not hold")
			return nil
		})
		require.ErrorIs(t, err, store.ErrConflict)
	})
}

// A function that leaves no transaction to commit gets an error that says so, and
// is not called again.
func TestTransactEndedByProgram(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sql.DB, s *sqlstore.Store, orders string) {
		ctx := t.Context()
		ends := map[string]func(tx *sql.Tx) error{
			"Rollback":          func(tx *sql.Tx) error { return tx.Rollback() },
			"rollback, in SQL":  func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, "rollback"); return err },
			"Commit":            func(tx *sql.Tx) error { return tx.Commit() },
			"Commit, and error": func(tx *sql.Tx) error { return errors.Join(tx.Commit(), io.EOF) },
		}
		if strings.HasSuffix(t.Name(), "/postgres") {
			ends["an error ignored"] = func(tx *sql.Tx) error { _, _ = tx.ExecContext(ctx, "no statement"); return nil }
		}
		for name, end := range ends {
			calls := 0
			_, err := s.Transact(ctx, []store.Write{{Key: name}}, func(tx *sql.Tx) error {
				calls++
				return end(tx)
			})
			require.ErrorContains(t, err, "the function of the program has ended the transaction", name)
			_, missing := store.Get(ctx, s, name)
			require.Equal(t, missing == nil, errors.Is(err, store.ErrUnknownOutcome), "%s: %v", name, err)
			require.Equal(t, strings.HasPrefix(name, "Commit"), missing == nil, name)
			require.Equal(t, 1, calls, name)
		}
	})
}

// After a deadlock, and when the server has closed the connection, the function is
// called again, whatever it makes of the error; but not after an error of its own.
func TestTransactCallsAgain(t *testing.T) {
	forms := map[string]func(error) error{
		"wrapped": func(err error) error { return fmt.Errorf("insert: %w", err) },
		"as text": func(err error) error { return fmt.Errorf("insert: %v", err) },
		"ignored": func(error) error { return nil },
	}
	onEachDatabase(t, func(t *testing.T, db *sql.DB, s *sqlstore.Store, orders string) {
		kind := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		if kind == "sqlite" {
			return // has neither
		}
		ctx := t.Context()
		_, err := db.ExecContext(ctx, "insert into "+orders+" values (1), (2)")
		require.NoError(t, err)
		for form, of := range forms {
			calls := 0
			_, err := s.Transact(ctx, []store.Write{{Key: "cut"}}, func(tx *sql.Tx) error {
				if calls++; calls > 1 {
					return nil
				}
				testkit.CloseConnection(t, kind, db, tx)
				_, err := tx.ExecContext(ctx, "select 1")
				require.Error(t, err)
				return of(err)
			})
			require.NoError(t, err, form)
			require.Equal(t, 2, calls, form)

			calls = 0
			_, err = s.Transact(ctx, []store.Write{{Key: "deadlock"}}, func(tx *sql.Tx) error {
				if calls++; calls > 1 {
					return nil
				}
				err := testkit.CauseDeadlock(t, kind, db, tx, orders)
				require.Error(t, err)
				return of(err)
			})
			if form == "wrapped" {
				require.NoError(t, err)
				require.Equal(t, 2, calls)
			} else { // what the function hides cannot be known, but it is known that there is no transaction
				require.Error(t, err, form)
				require.NotErrorIs(t, err, store.ErrUnknownOutcome)
				_, err = store.Get(ctx, s, "deadlock")
				require.ErrorIs(t, err, store.ErrNotFound)
				require.Equal(t, 1, calls, form)
			}
			require.NoError(t, store.Delete(ctx, s, "deadlock", store.Always))
		}
		errOwn := errors.New("out of stock")
		calls := 0
		_, err = s.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error { calls++; return errOwn })
		require.ErrorIs(t, err, errOwn)
		require.Equal(t, 1, calls)
	})
}

// Without a write-ahead log, a commit waits for those who read. The function is
// called again until they have gone. What is busy elsewhere is an error of the
// function.
func TestTransactBusy(t *testing.T) {
	ctx := t.Context()
	dsn := "file:" + filepath.Join(t.TempDir(), "state.db") + "?_txlock=immediate"
	db, reader := openPool(t, "sqlite", dsn), openPool(t, "sqlite", strings.ReplaceAll(dsn, "immediate", "deferred"))
	s, err := sqlstore.New(ctx, db, sqlstore.SQLite(), nil)
	require.NoError(t, err)
	defer s.Close()
	tx, err := reader.BeginTx(ctx, nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(ctx, "select count(*) from state_entries").Scan(&n))
	calls := 0
	_, err = s.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error {
		if calls++; calls == 3 {
			return tx.Rollback()
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, calls)

	calls = 0
	_, err = s.Transact(ctx, []store.Write{{Key: "k"}}, func(*sql.Tx) error {
		calls++
		_, err := reader.ExecContext(ctx, "create table t (n int)") // not in the transaction
		return err
	})
	require.ErrorContains(t, err, "SQLITE_BUSY")
	require.Equal(t, 1, calls)
}

// lostAnswers makes commits whose answer is lost.
type lostAnswers struct{ driver.Connector }

type lostAnswersConn struct{ *stdlib.Conn }

type lostAnswer struct{ driver.Tx }

func (c lostAnswers) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lostAnswersConn{conn.(*stdlib.Conn)}, nil
}

func (c lostAnswersConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, opts)
	return lostAnswer{tx}, err
}

func (t lostAnswer) Commit() error {
	_ = t.Tx.Commit()
	return driver.ErrBadConn
}

// A commit whose answer is lost is neither made nor not made.
func TestTransactLostAnswer(t *testing.T) {
	s := newServer(t, "postgres")
	c, err := s.db.Driver().(driver.DriverContext).OpenConnector(s.url)
	require.NoError(t, err)
	db := sql.OpenDB(lostAnswers{c})
	defer db.Close()
	opened, err := sqlstore.New(t.Context(), db, sqlstore.Postgres(), &sqlstore.Options{Table: s.table(t)})
	require.NoError(t, err)
	defer opened.Close()
	calls := 0
	_, err = opened.Transact(t.Context(), []store.Write{{Key: "k", Cond: store.IfAbsent}}, func(*sql.Tx) error {
		calls++
		return nil
	})
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.Equal(t, 1, calls)
	_, err = store.Get(t.Context(), opened, "k")
	require.NoError(t, err)
}

// What is written within a transaction of the program is there for it at once,
// and for others when it commits.
func TestIn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sql.DB, s *sqlstore.Store, orders string) {
		ctx := t.Context()
		_, err := store.Put(ctx, s, "taken", nil, store.Always)
		require.NoError(t, err)
		for _, end := range []string{"rollback", "commit"} {
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			in := s.In(tx)
			require.NoError(t, insert(ctx, orders, tx, "1"))
			rev, err := store.Put(ctx, in, "k", []byte("1"), store.IfAbsent)
			require.NoError(t, err)
			_, err = in.Batch(ctx, []store.Write{{Key: "lost"}, {Key: "taken", Cond: store.IfAbsent}})
			require.ErrorIs(t, err, store.ErrConflict)
			_, err = store.Get(ctx, in, "lost")
			require.ErrorIs(t, err, store.ErrNotFound, "of a batch all writes are made, or none")
			e, err := store.Get(ctx, in, "k")
			require.NoError(t, err)
			require.Equal(t, store.Entry{Key: "k", Value: []byte("1"), Revision: rev}, e)
			_, err = in.Batch(ctx, []store.Write{{Key: "k", Value: []byte("2"), Cond: store.IfRevision(rev)}, {Key: "l"}})
			require.NoError(t, err)
			var keys []string
			for e, err := range in.List(ctx, "", "", true) {
				require.NoError(t, err)
				keys = append(keys, e.Key)
			}
			require.Equal(t, []string{"k", "l", "taken"}, keys)
			require.NoError(t, store.Delete(ctx, in, "l", store.Always))
			_, err = store.Get(ctx, s, "k")
			require.ErrorIs(t, err, store.ErrNotFound, "not committed yet")
			require.NoError(t, in.Close())
			if end == "rollback" {
				require.NoError(t, tx.Rollback())
				_, err = store.Get(ctx, s, "k")
				require.ErrorIs(t, err, store.ErrNotFound)
				require.Zero(t, count(t, db, orders))
				continue
			}
			require.NoError(t, tx.Commit())
			e, err = store.Get(ctx, s, "k")
			require.NoError(t, err)
			require.Equal(t, "2", string(e.Value))
			_, err = store.Get(ctx, s, "l")
			require.ErrorIs(t, err, store.ErrNotFound)
			require.Equal(t, 1, count(t, db, orders))
		}
	})
}

// A transaction of another pool may be in another database, whatever its URL says.
func TestInOtherPool(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sql.DB, s *sqlstore.Store, _ string) {
		other := openPool(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "other.db"))
		tx, err := other.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer tx.Rollback()
		in := s.In(tx)
		_, err = store.Get(t.Context(), in, "k")
		requireOtherPool(t, err)
		_, err = store.Put(t.Context(), in, "k", nil, store.Always)
		requireOtherPool(t, err)
		for _, err := range in.List(t.Context(), "", "", false) {
			requireOtherPool(t, err)
		}
	})
}

func requireOtherPool(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "open the store with sqlstore.New on that pool")
}
