package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// kept is the number of messages and of results that a state has, as by
// default in ours.
const kept = 50

// A tx is a transaction of database/sql, of pgx or of DBOS.
type tx interface {
	exec(ctx context.Context, query string, args ...any) (int64, error)
	each(ctx context.Context, row func(scan func(...any) error) error, query string, args ...any) error
}

// A dialect is what differs between the SQL engines.
type dialect struct {
	engine string
	serial string // a column that numbers rows
	ignore string // behind insert, and behind its values: a row that is there stays
	keep   string
	undone string // the index of messages that are not handled
}

var dialects = map[string]dialect{
	"sqlite":   {"sqlite", "integer primary key", "", " on conflict do nothing", "(user_id, n) where handled = 0"},
	"postgres": {"postgres", "bigserial primary key", "", " on conflict do nothing", "(user_id, n) where handled = 0"},
	"mysql":    {"mysql", "bigint auto_increment primary key", " ignore", "", "(user_id, handled, n)"},
}

// bind numbers the parameters for PostgreSQL.
func (d dialect) bind(query string) string {
	if d.engine != "postgres" {
		return query
	}
	parts := strings.Split(query, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// The tables of a conversation: a row for each message and each result, the
// number of the last message of a user, and the lease of the user's messages,
// whose epoch fences holders that lost it. The inbox has every message that was
// accepted, with its reply when it is handled.
func (d dialect) createTables(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{
		"create table if not exists people (user_id varchar(64) primary key, n bigint not null, epoch bigint not null, expires bigint not null)",
		"create table if not exists messages (user_id varchar(64) not null, n bigint not null, id varchar(64) not null, role varchar(16) not null, body text not null, primary key (user_id, n))",
		"create table if not exists results (user_id varchar(64) not null, n bigint not null, body text not null, primary key (user_id, n))",
		"create table if not exists inbox (n " + d.serial + ", user_id varchar(64) not null, id varchar(64) not null, body text not null, handled smallint not null default 0, reply text, unique (user_id, id))",
		"create index if not exists inbox_undone on inbox " + d.undone,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("peers: create the tables: %w", err)
		}
	}
	return nil
}

// person makes the row of a user, if there is none.
func (d dialect) person(ctx context.Context, t tx, user string) error {
	_, err := t.exec(ctx, d.bind("insert"+d.ignore+" into people (user_id, n, epoch, expires) values (?, 0, 0, 0)"+d.keep), user)
	return err
}

// advance makes room for a message and its answer. It locks the row of the
// user, and returns the number of the last message before.
func (d dialect) advance(ctx context.Context, t tx, user string) (n int64, err error) {
	for range 2 {
		err = t.each(ctx, func(scan func(...any) error) error { return scan(&n) },
			d.bind("update people set n = n + 2 where user_id = ? returning n"), user)
		if n != 0 || err != nil {
			break
		}
		if err := d.person(ctx, t, user); err != nil { // the first message
			return 0, err
		}
	}
	return n - 2, err
}

// An entry is a message of a conversation.
type entry struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
}

// load returns the conversation up to its n-th message, which a model would
// get.
func (d dialect) load(ctx context.Context, t tx, user string, n int64) (entries []entry, err error) {
	err = t.each(ctx, func(scan func(...any) error) error {
		var e entry
		defer func() { entries = append(entries, e) }()
		return scan(&e.ID, &e.Role, &e.Text)
	}, d.bind("select id, role, body from messages where user_id = ? and n > ? and n <= ? order by n"), user, n-kept, n)
	return entries, err
}

// replyIn returns the answer to a message, if the conversation has it.
func replyIn(entries []entry, id string) (string, bool) {
	for _, e := range entries {
		if e.ID == id && e.Role == "assistant" {
			return e.Text, true
		}
	}
	return "", false
}

// A result is a call of a model: who made it, with which part of the
// conversation, and what it returned.
type result struct {
	Agent   string    `json:"agent"`
	History [2]int64  `json:"history"` // the numbers of its first and last message
	Output  string    `json:"output"`
	Created time.Time `json:"created"`
}

func newResult(n int64, reply string) (string, error) {
	body, err := json.Marshal(result{"porter", [2]int64{max(0, n-kept) + 1, n + 1}, reply, time.Now()})
	return string(body), err
}

// add appends a message and its answer behind the n-th message.
func (d dialect) add(ctx context.Context, t tx, n int64, m message, reply string) error {
	body, err := newResult(n, reply)
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, d.bind("insert into messages (user_id, n, id, role, body) values (?, ?, ?, 'user', ?), (?, ?, ?, 'assistant', ?)"),
		m.User, n+1, m.ID, m.Text, m.User, n+2, m.ID, reply); err != nil {
		return err
	}
	if _, err := t.exec(ctx, d.bind("insert into results (user_id, n, body) values (?, ?, ?)"), m.User, n+2, body); err != nil {
		return err
	}
	// Rows that are not read any more can stay for a while: to delete them each
	// time is two more statements a message.
	if n/2%10 != 0 {
		return nil
	}
	if _, err := t.exec(ctx, d.bind("delete from messages where user_id = ? and n <= ?"), m.User, n+2-kept); err != nil {
		return err
	}
	_, err = t.exec(ctx, d.bind("delete from results where user_id = ? and n <= ?"), m.User, n+2-2*kept)
	return err
}

// handle handles a message in a transaction that others have begun. A message
// that the conversation has is not handled again.
func (d dialect) handle(ctx context.Context, t tx, m message, answer model) (string, error) {
	n, err := d.advance(ctx, t, m.User)
	if err != nil {
		return "", err
	}
	entries, err := d.load(ctx, t, m.User, n)
	if err != nil {
		return "", err
	}
	if reply, found := replyIn(entries, m.ID); found {
		return reply, nil
	}
	reply := answer(m)
	return reply, d.add(ctx, t, n, m, reply)
}

// tables are those of a contender, on a data set that is open.
type tables struct {
	dialect
	db *sql.DB
}

func openTables(ctx context.Context, s site) (t tables, err error) {
	t.dialect = dialects[s.engine]
	if t.db, err = s.sql(); err == nil {
		err = t.createTables(ctx, t.db)
	}
	return t, err
}

func (t tables) texts(ctx context.Context, user string) (texts []string, err error) {
	err = sqlTx{t.db}.each(ctx, func(scan func(...any) error) error {
		var text string
		defer func() { texts = append(texts, text) }()
		return scan(&text)
	}, t.bind("select body from messages where user_id = ? and role = 'user' order by n"), user)
	return texts, err
}

func (t tables) close() error { return t.db.Close() }

// inTx commits what do does, or nothing. MariaDB may end a transaction for the
// sake of another one, which is then begun again.
func inTx(ctx context.Context, db *sql.DB, do func(t tx) error) error {
	const deadlock = 1213
	for {
		err := tryTx(ctx, db, do)
		if failed, ok := errors.AsType[*mysql.MySQLError](err); !ok || failed.Number != deadlock {
			return err
		}
	}
}

func tryTx(ctx context.Context, db *sql.DB, do func(t tx) error) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(sqlTx{t}); err != nil {
		_ = t.Rollback()
		return err
	}
	return t.Commit()
}

// A querier is a transaction of database/sql, or its pool.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type sqlTx struct{ querier }

func (t sqlTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t sqlTx) each(ctx context.Context, row func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := t.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return eachRow(rows, row)
}

// eachRow calls row for each row of a result of any driver.
func eachRow(rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}, row func(scan func(...any) error) error) error {
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
