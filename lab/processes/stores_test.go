package processes

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
)

func init() { logging.Disable() } // a missing Redis is expected

// place is a kind of store in which tests make data sets.
type place struct {
	name string
	url  string
	// ping returns an error if no server answers.
	ping func(ctx context.Context, url string) error
	// remove removes a data set.
	remove func(ctx context.Context, url, set string) error
}

var servers = []place{
	{"postgres", "postgres://postgres@127.0.0.1:5432/postgres", pingPostgres, removePostgres},
	{"mysql", "mysql://root@127.0.0.1:3306/test", pingMySQL, removeMySQL},
	{"redis", "redis://127.0.0.1:6379/0", pingRedis, removeRedis},
}

// onServers runs a test on each server, in parallel.
func onServers(t *testing.T, test func(t *testing.T, fresh func() string)) {
	for _, p := range servers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.find(t)
			test(t, func() string { return p.fresh(t) })
		})
	}
}

// find finds the server. Without one it skips the test, or fails it if
// STATE_TEST_REQUIRE names the server.
func (p *place) find(t testing.TB) {
	t.Helper()
	variable := "STATE_TEST_" + strings.ToUpper(p.name)
	if url := os.Getenv(variable); url != "" {
		p.url = url
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.ping(ctx, p.url); err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), p.name) {
			t.Fatalf("no %s server, and STATE_TEST_REQUIRE names it: %v", p.name, err)
		}
		t.Skipf("NOT TESTED: no %s server at its standard local port; set %s to the URL of one: %v", p.name, variable, err)
	}
}

// fresh returns the address of an empty data set. The end of the test removes it.
func (p *place) fresh(t testing.TB) string {
	t.Helper()
	set := "processes_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		require.NoError(t, p.remove(context.Background(), p.url, set))
	})
	address := strings.Join([]string{p.name, set, p.url}, " ")
	require.NoError(t, open(t, address).Close())
	return address
}

// onStores runs a test on SQLite and on each server, in parallel. Each data set
// is removed when its test ends.
func onStores(t *testing.T, test func(t *testing.T, fresh func(t testing.TB) store.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, func(t testing.TB) store.Store { return open(t, sqlite(t)) })
	})
	for _, p := range servers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.find(t)
			test(t, func(t testing.TB) store.Store { return open(t, p.fresh(t)) })
		})
	}
}

// sqlite returns the address of a file that does not exist yet.
func sqlite(t testing.TB) string {
	t.Helper()
	address := "sqlite - " + filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, open(t, address).Close())
	return address
}

// openAddress opens a store: a kind, the name of a data set and a URL or path.
func openAddress(address string) (store.Store, error) {
	ctx := context.Background()
	parts := strings.SplitN(address, " ", 3)
	switch kind, set, url := parts[0], parts[1], parts[2]; kind {
	case "sqlite":
		return sqlitestore.Open(ctx, url, nil)
	case "postgres":
		return postgresstore.Open(ctx, url, &sqlstore.Options{Table: set})
	case "mysql":
		return mysqlstore.Open(ctx, url, &sqlstore.Options{Table: set})
	case "redis":
		return redisstore.Open(ctx, url, &redisstore.Options{Prefix: set})
	default:
		return nil, fmt.Errorf("no store %q", kind)
	}
}

func open(t testing.TB, address string) store.Store {
	t.Helper()
	s, err := openAddress(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pingPostgres(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.PingContext(ctx)
}

func removePostgres(ctx context.Context, url, set string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "drop table if exists "+set)
	return err
}

func pingMySQL(ctx context.Context, address string) error {
	db, err := connectMySQL(address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.PingContext(ctx)
}

func removeMySQL(ctx context.Context, address, set string) error {
	db, err := connectMySQL(address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "drop table if exists "+set)
	return err
}

func connectMySQL(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Logger = &mysql.NopLogger{} // tests break connections
	return sql.Open("mysql", config.FormatDSN())
}

func pingRedis(ctx context.Context, url string) error {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

func removeRedis(ctx context.Context, url, set string) error {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	return client.Unlink(ctx, "{"+set+"}entries", "{"+set+"}keys").Err()
}
