package sqlstore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/storetest"
)

func TestMySQL(t *testing.T) { newServer(t, "mysql").runAll(t) }

func TestMySQLProcesses(t *testing.T) { storetest.Processes(t, newServer(t, "mysql").address(t)) }

func TestMySQLKill(t *testing.T) { storetest.Kill(t, newServer(t, "mysql").address(t), 20) }

func TestMySQLTable(t *testing.T) {
	s := newServer(t, "mysql")
	s.testConcurrentOpen(t)
	const columns = "(k varbinary(512) primary key, v longblob not null, rev varbinary(64) not null)"
	s.testForeignTable(t, "create table TABLE (id int)", "other columns")
	s.testForeignTable(t, strings.Replace("create table TABLE "+columns, "varbinary", "varchar", 1), "other columns")
	s.testForeignTable(t, "create table TABLE "+columns+" engine = myisam", "not InnoDB")
}

// TestMySQLSettings checks that the store overrides settings of the server and the URL.
func TestMySQLSettings(t *testing.T) {
	s := newServer(t, "mysql")
	table := s.table(t)
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	dsn := fmt.Sprintf("%s@tcp(%s)%s", u.User, u.Host, u.Path)
	for i, dsn := range []string{
		s.withParameter(t, "autocommit", "0"),
		s.withParameter(t, "clientFoundRows", "true"),
		s.withParameter(t, "sql_mode", "''"),
		s.withParameter(t, "maxAllowedPacket", "2000000000"),
		dsn,
		dsn + "?autocommit=0&clientFoundRows=true",
	} {
		key := fmt.Sprint("key", i)
		opened := s.open(t, dsn, table)
		_, err := store.Put(t.Context(), opened, key, []byte("value"), store.IfAbsent)
		require.NoError(t, err, dsn)
		_, err = store.Put(t.Context(), opened, key, []byte("value"), store.IfAbsent)
		require.ErrorIs(t, err, store.ErrConflict, dsn)
		entry, err := store.Get(t.Context(), s.open(t, s.url, table), key)
		require.NoError(t, err, dsn)
		require.Equal(t, "value", string(entry.Value))
	}
}

// Keys and values of any bytes are stored as they are, whether the driver writes
// them into the text of a statement or not.
func TestMySQLBytes(t *testing.T) {
	s := newServer(t, "mysql")
	special := []string{"'", "\\", "\x00", "\"", "%", "?", ";", "\n", "\r", "\x1a", "`", "--", "/*", "é", "k"}
	want := map[string]string{}
	for _, a := range special {
		for _, b := range special {
			want["pair/"+a+b] = a + b
		}
	}
	for b := range 256 { // bytes that are a quote or a backslash within a character of some sets
		want["rune/"+string(rune(b))] = string([]byte{byte(b), '\'', 0xbf, byte(b), '\\', byte(b)})
	}
	mode := func(modes string) string { return "sql_mode=" + url.QueryEscape("'STRICT_ALL_TABLES"+modes+"'") }
	const noEscapes = ",NO_BACKSLASH_ESCAPES"
	pool := func(parameters string) func(t *testing.T, table string) store.Store {
		return func(t *testing.T, table string) store.Store {
			opened, err := sqlstore.New(t.Context(), s.mysqlPool(t, parameters), mysqlstore.Dialect(), &sqlstore.Options{Table: table})
			require.NoError(t, err)
			t.Cleanup(func() { _ = opened.Close() })
			return opened
		}
	}
	for name, open := range map[string]func(t *testing.T, table string) store.Store{
		"own":                    func(t *testing.T, table string) store.Store { return s.open(t, s.url, table) },
		"prepared":               pool("?" + mode("")),
		"prepared, no escapes":   pool("?" + mode(noEscapes)),
		"in the text":            pool("?interpolateParams=true&" + mode("")),
		"in the text, no escape": pool("?interpolateParams=true&" + mode(noEscapes)),
	} {
		t.Run(name, func(t *testing.T) {
			opened := open(t, s.table(t))
			var puts, deletes []store.Write
			for key, value := range want {
				puts = append(puts, store.Write{Key: key, Value: []byte(value), Cond: store.IfAbsent})
				deletes = append(deletes, store.Write{Key: key, Delete: true})
			}
			_, err := opened.Batch(t.Context(), puts)
			require.NoError(t, err)
			require.Equal(t, want, contents(t, opened))
			_, err = opened.Batch(t.Context(), deletes[1:])
			require.NoError(t, err)
			left := deletes[0].Key
			require.Equal(t, map[string]string{left: want[left]}, contents(t, opened))
		})
	}
}

func TestMySQLCharset(t *testing.T) {
	s := newServer(t, "mysql")
	at := strings.TrimPrefix(s.url, "mysql://")
	user, rest, _ := strings.Cut(at, "@")
	host, name, _ := strings.Cut(rest, "/")
	for _, base := range []string{s.url, user + "@tcp(" + host + ")/" + name} {
		for parameter, refused := range map[string]string{
			"charset=utf8mb4":                          "",
			"charset=utf8mb4,utf8":                     "",
			"collation=utf8mb4_bin":                    "",
			"time_zone=%27%2B00:00%27":                 "",
			"lc_time_names=%27de_DE%27":                "",
			"charset=gbk":                              "charset",
			"charset=utf8mb4,sjis":                     "charset",
			"charset=big5":                             "charset",
			"charset=cp932&charset=utf8":               "charset",
			"charset=gb18030":                          "charset",
			"charset=":                                 "charset",
			"collation=gbk_chinese_ci":                 "collation",
			"character_set_client=gbk":                 "character_set_client",
			"@@session.Character_Set_Client=gbk":       "character_set_client",
			"time_zone=%27x%27,character_set_client=x": "character_set_client",
			"character_set_connection=sjis":            "character_set_connection",
			"collation_connection=gbk_bin":             "collation_connection",
			"names=gbk":                                "names",
		} {
			dsn := base + "?" + parameter
			if refused == "" {
				_, err := store.Put(t.Context(), s.open(t, dsn, s.table(t)), "é", []byte("\xbf'"), store.IfAbsent)
				require.NoError(t, err, dsn)
				continue
			}
			_, err := openServer(t.Context(), "mysql", dsn, "")
			require.ErrorIs(t, err, store.ErrInvalid, dsn)
			require.ErrorContains(t, err, "the parameter "+refused+" of the dsn", dsn)
		}
	}
}

func TestMySQLRefused(t *testing.T) { newServer(t, "mysql").testRefused(t) }

func TestMySQLPassword(t *testing.T) {
	newServer(t, "mysql").testPasswords(t,
		"mysql://user:hunter2@127.0.0.1:1/database",
		"mysql://user:hunter2@127.0.0.1:port/database",
		"mysql://user:hunter2@127.0.0.1/database?tls=hunter2",
		"user:hunter2@tcp(127.0.0.1:1)/database",
		"user:hunter2@tcp(127.0.0.1:1/database",
		"user:hunter2",
	)
}

func TestMySQLTooLarge(t *testing.T) {
	s := newServer(t, "mysql")
	opened := s.open(t, s.url, s.table(t))
	var packet int
	require.NoError(t, s.db.QueryRowContext(t.Context(), "select @@max_allowed_packet").Scan(&packet))
	key := strings.Repeat("k", store.MaxKey)
	_, err := store.Put(t.Context(), opened, key, make([]byte, packet), store.Always)
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = store.Get(t.Context(), opened, key)
	require.ErrorIs(t, err, store.ErrNotFound)
	if packet <= 1<<24 {
		largest := bytes.Repeat([]byte("'\\\x00\xff"), (packet-packet/16)/4)
		_, err = store.Put(t.Context(), opened, key, largest, store.Always)
		require.NoError(t, err)
		entry, err := store.Get(t.Context(), opened, key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(largest, entry.Value))
	}
}

func TestMySQLInterrupted(t *testing.T) {
	s := newServer(t, "mysql")
	for _, kill := range []string{"kill query", "kill connection"} {
		table := s.table(t)
		opened := s.open(t, s.url, table)
		err := s.interruptPut(t, opened, table, func() {
			var id int
			err := s.db.QueryRowContext(t.Context(),
				"select id from information_schema.processlist where info like 'insert into `"+table+"`%'").Scan(&id)
			if errors.Is(err, sql.ErrNoRows) {
				return
			}
			require.NoError(t, err)
			_, _ = s.db.ExecContext(t.Context(), fmt.Sprint(kill, " ", id)) // fails if the put has ended
		})
		require.ErrorIs(t, err, store.ErrUnknownOutcome, kill)
		entry, err := store.Get(t.Context(), opened, "locked")
		require.NoError(t, err)
		require.Equal(t, "before", string(entry.Value))
	}
}

// Of several servers the first one is used that answers in time and is not
// read-only, also when it has become so.
func TestMySQLSeveralServers(t *testing.T) {
	s := newServer(t, "mysql")
	table := s.table(t)
	silent := testkit.NewProxy(t, s.host(t))
	silent.Drop(testkit.ToClient)
	first := testkit.NewProxy(t, s.host(t))
	opened := s.open(t, s.withHost(t, "127.0.0.1:1,"+silent.Addr()+","+first.Addr()+","+s.host(t)), table)
	_, err := store.Put(t.Context(), opened, "k", nil, store.IfAbsent)
	require.NoError(t, err)
	require.Positive(t, first.RoundTrips())
	first.Close() // this server dies
	testkit.Until(func() bool {
		_, err = store.Put(t.Context(), opened, "k", []byte("after"), store.Always)
		return err == nil
	})

	_, err = openServer(t.Context(), "mysql", "mysql://user:hunter2@127.0.0.1:1,127.0.0.1:2/database", table)
	require.ErrorContains(t, err, "127.0.0.1:1: ")
	require.ErrorContains(t, err, "127.0.0.1:2: ")
	require.NotContains(t, err.Error(), "hunter2")
	for _, dsn := range []string{"mysql://user@127.0.0.1:1,127.0.0.1:x/db", "mysql://user@127.0.0.1:1,[::1/db"} {
		_, err = openServer(t.Context(), "mysql", dsn, table)
		require.ErrorIs(t, err, store.ErrInvalid, dsn)
	}
}
