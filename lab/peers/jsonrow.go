package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// A document is a state as one JSON value.
type document struct {
	Messages []entry  `json:"messages"`
	Results  []string `json:"results"`
}

// add appends a message and its answer, unless the document has the message,
// and returns the answer.
func (d *document) add(m message, answer model) (string, error) {
	if reply, found := replyIn(d.Messages, m.id); found {
		return reply, nil
	}
	reply := answer(m)
	body, err := newResult(int64(len(d.Messages)), reply)
	if err != nil {
		return "", err
	}
	d.Messages = last(append(d.Messages, entry{m.id, "user", m.text}, entry{m.id, "assistant", reply}))
	d.Results = last(append(d.Results, body))
	return reply, nil
}

func last[T any](of []T) []T { return of[max(0, len(of)-kept):] }

// newDocument returns a state of full size.
func newDocument(user string) ([]byte, error) {
	var d document
	for i := range int64(kept) {
		if _, err := d.add(newMessage(user, -1-i), scripted); err != nil {
			return nil, err
		}
	}
	return json.Marshal(d)
}

func documentTexts(data []byte) (texts []string, err error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	for _, e := range d.Messages {
		if e.Role == "user" {
			texts = append(texts, e.Text)
		}
	}
	return texts, nil
}

// change applies a message to a document as it is stored.
func change(data []byte, m message, answer model) (changed []byte, reply string, err error) {
	var d document
	if len(data) > 0 {
		if err := json.Unmarshal(data, &d); err != nil {
			return nil, "", err
		}
	}
	if reply, err = d.add(m, answer); err != nil {
		return nil, "", err
	}
	changed, err = json.Marshal(d)
	return changed, reply, err
}

// jsonRow is the shortest solution by hand: a row of JSON for each user, which
// is locked while the message is handled. There is no queue: if the process
// dies, the sender must send again. Nothing orders messages that wait for the
// lock.
type jsonRow struct {
	dialect
	db     *sql.DB
	answer model
}

func openJSONRow(ctx context.Context, s site, answer model) (handler, error) {
	db, err := s.sql()
	if err != nil {
		return nil, err
	}
	column := map[string]string{"sqlite": "text", "postgres": "json", "mysql": "json"}[s.engine]
	if _, err := db.ExecContext(ctx, "create table if not exists states (user_id varchar(64) primary key, doc "+column+" not null)"); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("peers: create the table: %w", err)
	}
	return &jsonRow{dialects[s.engine], db, answer}, nil
}

func (j *jsonRow) fill(ctx context.Context, users []string) error {
	for _, user := range users {
		data, err := newDocument(user)
		if err != nil {
			return err
		}
		if _, err := j.db.ExecContext(ctx, j.bind("insert into states (user_id, doc) values (?, ?)"), user, string(data)); err != nil {
			return fmt.Errorf("peers: fill: %w", err)
		}
	}
	return nil
}

func (j *jsonRow) handle(ctx context.Context, m message) (reply string, err error) {
	err = inTx(ctx, j.db, func(t tx) error {
		data, err := j.read(ctx, t, m.user, true)
		if err != nil {
			return err
		}
		if data == "" { // a new user: the row must be there to be locked
			if _, err := t.exec(ctx, j.bind("insert"+j.ignore+" into states (user_id, doc) values (?, '{}')"+j.keep), m.user); err != nil {
				return err
			}
			if data, err = j.read(ctx, t, m.user, true); err != nil {
				return err
			}
		}
		changed, r, err := change([]byte(data), m, j.answer)
		if err != nil {
			return err
		}
		reply = r
		_, err = t.exec(ctx, j.bind("update states set doc = ? where user_id = ?"), string(changed), m.user)
		return err
	})
	return reply, err
}

func (j *jsonRow) read(ctx context.Context, t tx, user string, lock bool) (data string, err error) {
	query := "select doc from states where user_id = ?"
	if lock && j.engine != "sqlite" { // where the transaction began with a lock
		query += " for update"
	}
	err = t.each(ctx, func(scan func(...any) error) error { return scan(&data) }, j.bind(query), user)
	return data, err
}

func (j *jsonRow) texts(ctx context.Context, user string) ([]string, error) {
	data, err := j.read(ctx, sqlTx{j.db}, user, false)
	if err != nil {
		return nil, err
	}
	return documentTexts([]byte(data))
}

func (j *jsonRow) close() error { return j.db.Close() }
