package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
	"github.com/agentstate/state/workspace"
)

// engine is a kind of store.
type engine struct {
	name string
	url  string // on the standard port of this machine
	open func(ctx context.Context, url, table string) (store.Store, error)
}

var engines = []engine{
	{"sqlite", "", func(ctx context.Context, url, table string) (store.Store, error) {
		return sqlitestore.Open(ctx, strings.TrimPrefix(url, "sqlite:"), &sqlitestore.Options{Table: table})
	}},
	{"postgres", "postgres://postgres@127.0.0.1:5432/postgres", func(ctx context.Context, url, table string) (store.Store, error) {
		return postgresstore.Open(ctx, url, &sqlstore.Options{Table: table})
	}},
	{"mysql", "mysql://root@127.0.0.1:3306/test", func(ctx context.Context, url, table string) (store.Store, error) {
		return mysqlstore.Open(ctx, url, &sqlstore.Options{Table: table})
	}},
	{"redis", "redis://127.0.0.1:6379/0", func(ctx context.Context, url, table string) (store.Store, error) {
		return redisstore.Open(ctx, url, &redisstore.Options{Prefix: table})
	}},
}

// at returns the URL of the server that STATE_TEST_NAME or the standard port has.
// Without one, the test is skipped, or fails if STATE_TEST_REQUIRE contains the name.
func (e engine) at(t *testing.T) string {
	t.Helper()
	if e.name == "sqlite" {
		return "sqlite:" + filepath.Join(t.TempDir(), "desk.db")
	}
	variable := "STATE_TEST_" + strings.ToUpper(e.name)
	url := os.Getenv(variable)
	if url == "" {
		url = e.url
	}
	// A store that does not exist shows that the server answers.
	_, err := (&address{scheme: e.name, url: url}).openStore(t.Context(), "state_test_absent")
	require.Error(t, err)
	if errors.Is(err, fs.ErrNotExist) {
		return url
	}
	if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), e.name) {
		t.Fatalf("no %s server, and STATE_TEST_REQUIRE names it: %v", e.name, err)
	}
	t.Skipf("NOT TESTED: no %s server at its standard local port; set %s to the URL of one: %v", e.name, variable, err)
	return ""
}

// remove removes what the test has made on a server.
func (e engine) remove(ctx context.Context, url, table string) error {
	switch e.name {
	case "postgres", "mysql":
		db, err := e.open(ctx, url, table)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.(store.Transactor).Transact(ctx, nil, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "drop table "+table)
			return err
		})
		return err
	case "redis":
		opts, err := redis.ParseURL(url)
		if err != nil {
			return err
		}
		client := redis.NewClient(opts)
		defer client.Close()
		return client.Unlink(ctx, "{"+table+"}entries", "{"+table+"}keys").Err()
	}
	return nil
}

// TestCreatesNothing opens a table or prefix that does not exist, next to
// one that does, and with every flag that allows something.
func TestCreatesNothing(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			url := e.at(t)
			present, absent := "state_test_"+strings.ToLower(rand.Text()), "state_test_"+strings.ToLower(rand.Text())
			db, err := e.open(t.Context(), url, present)
			require.NoError(t, err)
			require.NoError(t, workspace.PublishSchema(t.Context(), db, state.MustSchema()))
			require.NoError(t, db.Close())
			t.Cleanup(func() { require.NoError(t, e.remove(context.Background(), url, present)) })
			_, err = print(t, url, "-table", present, "-text", "list")
			require.NoError(t, err)
			for _, flags := range [][]string{{"-text", "list"}, {"-write", "-delete", "-addr", "127.0.0.1:0"}, {"-text", "verify"}} {
				_, err = print(t, url, append([]string{"-table", absent}, flags...)...)
				require.ErrorIs(t, err, fs.ErrNotExist, "%v: if it had made the table, the next one would open it", flags)
			}
			if e.name == "sqlite" {
				entries, err := os.ReadDir(filepath.Dir(strings.TrimPrefix(url, "sqlite:")))
				require.NoError(t, err)
				require.Len(t, entries, 1, "the file of the store only: %v", entries)
			}
		})
	}
}

// TestEveryStore runs the scenario on each kind of store, sealed and not: a desk is
// shown, is killed while its page is open, and is taken over.
func TestEveryStore(t *testing.T) {
	for _, e := range engines {
		for _, sealed := range []bool{false, true} {
			t.Run(e.name+map[bool]string{false: "", true: "-sealed"}[sealed], func(t *testing.T) {
				e.scenario(t, sealed)
			})
		}
	}
}

func (e engine) scenario(t *testing.T, sealed bool) {
	url := e.at(t)
	table := "state_test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() { require.NoError(t, e.remove(context.Background(), url, table)) })
	arguments := []string{"-table", table}
	var keys []workspace.Key
	if sealed {
		keys = []workspace.Key{{ID: "k1", Secret: bytes.Repeat([]byte("k"), 32)}}
		file := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(file, []byte("k1 "+base64.StdEncoding.EncodeToString(keys[0].Secret)+"\n"), 0o600))
		arguments = append(arguments, "-keys", file)
	}
	_, err := print(t, url, append(arguments, "-text", "list")...)
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing is created")

	db, err := e.open(t.Context(), url, table)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, workspace.PublishSchema(t.Context(), db, schema))
	require.NoError(t, fill(t.Context(), db, keys))

	for _, args := range modes {
		text, err := print(t, url, append(slices.Clone(arguments), args...)...)
		require.NoError(t, err, args)
		requireMasked(t, text)
	}
	text, err := print(t, url, append(arguments, "-text", "show", "-user", "ann")...)
	require.NoError(t, err)
	require.Contains(t, text, `order_id (string) = "#W1"`)
	if sealed {
		text, err := print(t, url, "-table", table, "-text", "show", "-user", "ann")
		require.ErrorIs(t, err, workspace.ErrInvalidKey, text)
	}

	p := start(t, append(arguments, url)...)
	_, body := p.fetch(p.url.String())
	require.Contains(t, body, "the bank has refused")
	require.Contains(t, body, "1 other is idle")
	for _, path := range []string{
		"/workspace/state?user=ann", "/workspace/state?user=ann&at=1", "/workspace/state?user=ann&as=desk", "/workspace/history?user=ann",
		"/workspace/diff?user=ann&from=1&to=3", "/workspace?user=ann", "/schema", "/workspace/state?user=ann&format=json",
	} {
		status, body := p.get(path)
		require.Equal(t, http.StatusOK, status, path)
		requireMasked(t, body)
	}

	// Another process begins to answer Bob and dies, and a third one takes over.
	committed := make(chan error, 1)
	first, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema, Keys: keys, Run: func(ctx context.Context, run *workspace.Run) error {
		if run.Message().ID == "m2" { // and not what fill has left
			committed <- errors.Join(order.Set(run.State().As("desk"), "#W2"), run.Commit(ctx))
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	require.NoError(t, err)
	_, err = first.Submit(t.Context(), "Bob, the builder", workspace.Message{ID: "m2", Content: state.UserText("Is it there?")})
	require.NoError(t, err)
	require.NoError(t, <-committed)
	bob := "/workspace/state?user=Bob%2C+the+builder"
	_, body = p.get(bob)
	require.Contains(t, body, "running")
	require.Contains(t, body, "#W2")
	require.ErrorIs(t, first.Close(), workspace.ErrBusy) // the lease is vacant, as after the death of its holder

	second, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema, Keys: keys, Run: func(_ context.Context, run *workspace.Run) error {
		return order.Set(run.State().As("desk"), "#W3")
	}})
	require.NoError(t, err)
	_, err = second.Await(t.Context(), "Bob, the builder", "m2")
	require.NoError(t, err)
	_, body = p.get(bob)
	require.NotContains(t, body, "running")
	require.Contains(t, body, "#W3")
	_ = second.Close()
	require.NoError(t, p.stop())
}

func requireMasked(t *testing.T, text string) {
	t.Helper()
	for _, secret := range secrets {
		require.NotContains(t, text, secret)
	}
}
