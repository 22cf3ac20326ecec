package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	_ "modernc.org/sqlite" // the driver sqlite
)

func init() { logging.Disable() } // a missing Redis is expected

var engineNames = []string{"sqlite", "postgres", "mysql", "redis"}

// conns is the size of every contender's pool of connections to a server.
const conns = 16

// A site is where a contender has its data set: a file or a database of its
// own, or a prefix of names in it. No two contenders share one.
type site struct {
	engine string
	set    string // the name of the data set
	path   string // of the file, on SQLite
	server *url.URL
}

var defaultServers = map[string]string{
	"postgres": "postgres://postgres@127.0.0.1:5432/postgres",
	"mysql":    "mysql://root@127.0.0.1:3306/test",
	"redis":    "redis://127.0.0.1:6379/0",
}

// findServer returns the address of an engine's server: that of
// STATE_TEST_POSTGRES and its kind, or the standard port of this machine.
func findServer(engine string) (*url.URL, error) {
	address := defaultServers[engine]
	if set := os.Getenv("STATE_TEST_" + strings.ToUpper(engine)); set != "" {
		address = set
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("peers: the address of the %s server is not a URL", engine)
	}
	return u, nil
}

// newSite makes an empty data set. On SQLite it is a file in a folder.
func newSite(ctx context.Context, engine, folder string) (site, error) {
	s := site{engine: engine, set: "peers_" + strings.ToLower(rand.Text()[:12])}
	if engine == "sqlite" {
		s.path = filepath.Join(folder, s.set+".db")
		return s, nil
	}
	server, err := findServer(engine)
	if err != nil {
		return s, err
	}
	s.server = server
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.create(ctx); err != nil {
		return s, fmt.Errorf("peers: make a data set on %s: %w", engine, err)
	}
	return s, nil
}

// create makes the database of the data set, and fails if the server does not
// answer.
func (s site) create(ctx context.Context) error {
	switch s.engine {
	case "postgres", "mysql":
		return s.administrate(ctx, "create database "+s.set)
	default:
		c, err := s.redis()
		if err != nil {
			return err
		}
		return errors.Join(c.Ping(ctx).Err(), c.Close())
	}
}

// remove removes the data set.
func (s site) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch s.engine {
	case "sqlite":
		files, err := filepath.Glob(s.path + "*")
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		return err
	case "postgres":
		return s.administrate(ctx, "drop database if exists "+s.set+" with (force)")
	case "mysql":
		return s.administrate(ctx, "drop database if exists "+s.set)
	default:
		return s.removeKeys(ctx)
	}
}

// administrate executes a statement in the database that the address names.
func (s site) administrate(ctx context.Context, statement string) error {
	db, err := openServer(s.engine, s.server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (s site) removeKeys(ctx context.Context) error {
	c, err := s.redis()
	if err != nil {
		return err
	}
	keys := c.Scan(ctx, 0, "*"+s.set+"*", 1000).Iterator()
	for keys.Next(ctx) {
		err = errors.Join(err, c.Unlink(ctx, keys.Val()).Err())
	}
	return errors.Join(err, keys.Err(), c.Close())
}

// database returns the address of the data set's database.
func (s site) database() *url.URL {
	u := *s.server
	u.Path = "/" + s.set
	return &u
}

// sql opens the data set with the driver that a program would use. SQLite gets
// one connection: it has one writer at a time, and goroutines that wait for a
// connection wait more fairly than connections that wait for a lock.
func (s site) sql() (*sql.DB, error) {
	if s.engine != "sqlite" {
		return openServer(s.engine, s.database())
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(on)",
	}}
	db, err := sql.Open("sqlite", "file:"+s.path+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func openServer(engine string, u *url.URL) (*sql.DB, error) {
	driver, dsn := "pgx", u.String()
	if engine == "mysql" {
		driver, dsn = "mysql", mysqlConfig(u).FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, errors.New("the address is not that of a database") // the cause has the password
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// mysqlConfig lets the client put arguments into statements. Otherwise each
// statement is prepared, which is a second round trip. Without locks of gaps,
// transactions of different users hardly meet.
func mysqlConfig(u *url.URL) *mysql.Config {
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.InterpolateParams = true
	config.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'"}
	return config
}

func (s site) redis() (*redis.Client, error) {
	opts, err := redis.ParseURL(s.server.String())
	if err != nil {
		return nil, errors.New("the address is not that of a Redis server") // the cause has the password
	}
	opts.PoolSize = conns
	return redis.NewClient(opts), nil
}
