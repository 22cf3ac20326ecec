package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

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

// An error that the program does not report is found out before the commit.
func TestTransactEndedByProgram(t *testing.T) {
	s := newServer(t, "postgres")
	opened := s.open(t, s.url, s.table(t))
	_, err := opened.Transact(t.Context(), []store.Write{{Key: "k"}}, func(tx *sql.Tx) error {
		_, _ = tx.ExecContext(t.Context(), "no statement")
		return nil
	})
	require.ErrorContains(t, err, "transaction is aborted")
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	_, err = store.Get(t.Context(), opened, "k")
	require.ErrorIs(t, err, store.ErrNotFound)
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
