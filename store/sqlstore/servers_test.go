package sqlstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
	"github.com/agentstate/state/store/storetest"
)

// server is a database server for tests.
type server struct {
	driver string
	url    string
	db     *sql.DB // for statements of the tests
}

// newServer returns the server that the environment variable names, or the one on the
// standard local port. Without a server, the test is skipped, or fails if
// STATE_TEST_REQUIRE contains the driver.
func newServer(t testing.TB, driver string) *server {
	t.Helper()
	variable := "STATE_TEST_" + strings.ToUpper(driver)
	s := &server{driver: driver, url: os.Getenv(variable)}
	if s.url == "" {
		s.url = map[string]string{
			"postgres": "postgres://postgres@127.0.0.1:5432/postgres",
			"mysql":    "mysql://root@127.0.0.1:3306/test",
		}[driver]
	}
	s.db = s.connect(t)
	if err := s.db.PingContext(t.Context()); err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), driver) {
			t.Fatalf("no %s server, but STATE_TEST_REQUIRE demands it: %v", driver, err)
		}
		t.Skipf("NOT TESTED: no %s server at its standard local port; set %s to the URL of one: %v", driver, variable, err)
	}
	return s
}

func (s *server) connect(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", s.url
	if s.driver == "mysql" {
		u, err := url.Parse(s.url)
		require.NoError(t, err)
		config := mysql.NewConfig()
		config.User = u.User.Username()
		config.Passwd, _ = u.User.Password()
		config.Net, config.Addr, config.DBName = "tcp", u.Host, u.Path[1:]
		driver, dsn = "mysql", config.FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// table returns the name of a new table, which is dropped when the test ends.
func (s *server) table(t testing.TB) string {
	t.Helper()
	name := "state_test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		_, err := s.db.ExecContext(context.Background(), "drop table if exists "+name)
		require.NoError(t, err)
	})
	return name
}

// host returns the address of the server.
func (s *server) host(t testing.TB) string {
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	return u.Host
}

// withHost returns the URL with another address.
func (s *server) withHost(t testing.TB, host string) string {
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	u.Host = host
	return u.String()
}

// withParameter returns the URL with a parameter.
func (s *server) withParameter(t testing.TB, name, value string) string {
	t.Helper()
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx does not decode +
	return u.String()
}

// withTable names the table in a statement.
func withTable(text, table string) string { return strings.ReplaceAll(text, "TABLE", table) }

func (s *server) exec(t testing.TB, text string) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), text)
	require.NoError(t, err)
}

func openServer(ctx context.Context, driver, dsn, table string) (*sqlstore.Store, error) {
	open := map[string]func(context.Context, string, *sqlstore.Options) (*sqlstore.Store, error){
		"postgres": postgresstore.Open,
		"mysql":    mysqlstore.Open,
	}
	return open[driver](ctx, dsn, &sqlstore.Options{Table: table})
}

func (s *server) open(t testing.TB, dsn, table string) *sqlstore.Store {
	t.Helper()
	opened, err := openServer(t.Context(), s.driver, dsn, table)
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// runAll runs the conformance tests.
func (s *server) runAll(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		table := s.table(t)
		return func() store.Store { return s.open(t, s.url, table) }
	})
}

// address returns the address of a new table for the tests with processes.
func (s *server) address(t *testing.T) string {
	table := s.table(t)
	s.open(t, s.url, table)
	return address(s.driver, table, s.url)
}

// testConcurrentOpen creates tables from several handles at once.
func (s *server) testConcurrentOpen(t *testing.T) {
	for range 5 {
		table := s.table(t)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				opened, err := openServer(t.Context(), s.driver, s.url, table)
				if err == nil {
					err = opened.Close()
				}
				errs[i] = err
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
}

// testForeignTable checks that Open fails for a table that the store has not created.
func (s *server) testForeignTable(t *testing.T, create, message string) {
	table := s.table(t)
	s.exec(t, withTable(create, table))
	_, err := openServer(t.Context(), s.driver, s.url, table)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, message)
}

// testPasswords checks that failures of Open do not contain the password.
func (s *server) testPasswords(t *testing.T, dsns ...string) {
	for _, dsn := range dsns {
		_, err := openServer(t.Context(), s.driver, dsn, "")
		var about *store.Error
		require.ErrorAs(t, err, &about)
		require.Equal(t, s.driver, about.Store)
		require.NotContains(t, err.Error(), "hunter2")
		var connecting *pgconn.ConnectError
		require.False(t, errors.As(err, &connecting), "the error contains the configuration")
	}
}

// testRefused requires that what the server refuses until somebody changes it is
// store.ErrRefused.
func (s *server) testRefused(t *testing.T) {
	table := s.table(t)
	opened := s.open(t, s.url, table)
	s.exec(t, withTable("drop table TABLE", table))
	_, err := store.Put(t.Context(), opened, "k", nil, store.Always)
	require.ErrorIs(t, err, store.ErrRefused)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome)
	_, err = opened.Batch(t.Context(), []store.Write{{Key: "k"}, {Key: "l"}})
	require.ErrorIs(t, err, store.ErrRefused)
	_, err = store.Get(t.Context(), opened, "k")
	require.ErrorIs(t, err, store.ErrRefused)
}

// interruptPut puts a key that another transaction has locked, calls interrupt until the
// put ends, and returns its error.
func (s *server) interruptPut(t *testing.T, opened store.Store, table string, interrupt func()) error {
	t.Helper()
	_, err := store.Put(t.Context(), opened, "locked", []byte("before"), store.Always)
	require.NoError(t, err)
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "update "+table+" set rev = 'x'")
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() {
		_, err := store.Put(t.Context(), opened, "locked", []byte("after"), store.Always)
		result <- err
	}()
	testkit.Until(func() bool {
		interrupt()
		return len(result) > 0
	})
	return <-result
}
