package main

import (
	"context"
	"database/sql"
	"fmt"
)

// A limit is what no solution can do without, if a message and its answer are
// to be durable: two inserts. The state is in memory. There is no queue, no
// lock, and nothing that another process could take over.
type limit struct {
	dialect
	db     *sql.DB
	answer model
}

func openLimit(ctx context.Context, s site, answer model) (handler, error) {
	db, err := s.sql()
	if err != nil {
		return nil, err
	}
	l := &limit{dialects[s.engine], db, answer}
	if _, err := db.ExecContext(ctx, "create table if not exists log (n "+l.serial+", user_id varchar(64) not null, id varchar(64) not null, role varchar(16) not null, body text not null)"); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("peers: create the table: %w", err)
	}
	return l, nil
}

func (l *limit) fill(context.Context, []string) error { return nil }

func (l *limit) handle(ctx context.Context, m message) (string, error) {
	if err := l.insert(ctx, m, "user", m.text); err != nil {
		return "", err
	}
	reply := l.answer(m)
	return reply, l.insert(ctx, m, "assistant", reply)
}

func (l *limit) insert(ctx context.Context, m message, role, body string) error {
	_, err := l.db.ExecContext(ctx, l.bind("insert into log (user_id, id, role, body) values (?, ?, ?, ?)"), m.user, m.id, role, body)
	return err
}

func (l *limit) texts(ctx context.Context, user string) (texts []string, err error) {
	err = sqlTx{l.db}.each(ctx, func(scan func(...any) error) error {
		var text string
		defer func() { texts = append(texts, text) }()
		return scan(&text)
	}, l.bind("select body from log where user_id = ? and role = 'user' order by n"), user)
	return texts, err
}

func (l *limit) close() error { return l.db.Close() }
