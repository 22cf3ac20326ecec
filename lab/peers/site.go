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

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite
)

var engineNames = []string{"sqlite", "postgres"}

// conns is the size of every contender's pool of connections to a server.
const conns = 16

// A site is where a contender has its data set: a file, or a database of its own.
// No two contenders share one.
type site struct {
	engine string
	set    string // the name of the data set
	path   string // of the file, on SQLite
	server *url.URL
}

// newSite makes an empty data set. On SQLite it is a file in a folder. The server
// is that of STATE_TEST_POSTGRES, or the standard port of this machine.
func newSite(ctx context.Context, engine, folder string) (site, error) {
	s := site{engine: engine, set: "peers_" + strings.ToLower(rand.Text()[:12])}
	if engine == "sqlite" {
		s.path = filepath.Join(folder, s.set+".db")
		return s, nil
	}
	address := os.Getenv("STATE_TEST_POSTGRES")
	if address == "" {
		address = "postgres://postgres@127.0.0.1:5432/postgres"
	}
	var err error
	if s.server, err = url.Parse(address); err != nil {
		return s, errors.New("peers: the address of the server is not a URL") // the cause has the password
	}
	if err := s.administrate(ctx, "create database "+s.set); err != nil {
		return s, fmt.Errorf("peers: make a data set on %s: %w", engine, err)
	}
	return s, nil
}

// remove removes the data set.
func (s site) remove(ctx context.Context) error {
	if s.engine != "sqlite" {
		return s.administrate(ctx, "drop database if exists "+s.set+" with (force)")
	}
	files, err := filepath.Glob(s.path + "*")
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// administrate executes a statement in the database that the address names.
func (s site) administrate(ctx context.Context, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	db, err := openServer(s.server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
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
		return openServer(s.database())
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

func openServer(u *url.URL) (*sql.DB, error) {
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		return nil, errors.New("the address is not that of a database") // the cause has the password
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}
