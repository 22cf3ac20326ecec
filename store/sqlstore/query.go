package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/agentstate/state/store"
)

// query is a statement that reads.
type query struct {
	text     string
	prepared *sql.Stmt // nil if the driver takes the text: see database.prepares
}

func (q *query) close() error {
	if q.prepared == nil {
		return nil
	}
	return q.prepared.Close()
}

// queries returns the statements that read.
func (s *Store) queries() []*query {
	r := &s.reads
	return []*query{&r.get, &r.getInTx, &r.few, &r.many, &r.list, &r.listKeys}
}

// prepare prepares the statements that read, and tries one of them.
func (s *Store) prepare(ctx context.Context) (err error) {
	for i, text := range []string{s.get, s.getInTx, s.getFew, s.getMany, s.list, s.listKeys} {
		q := s.queries()[i]
		if q.text = text; s.prepares {
			if q.prepared, err = s.db.PrepareContext(ctx, text); err != nil {
				return err
			}
		}
	}
	_, err = s.getEntry(ctx, nil, &s.reads.get, "k")
	return err
}

// rows executes a query in a transaction, or in none if tx is nil.
func (s *Store) rows(ctx context.Context, tx *sql.Tx, q *query, args ...any) (*sql.Rows, error) {
	switch {
	case q.prepared != nil && tx != nil:
		return tx.StmtContext(ctx, q.prepared).QueryContext(ctx, args...)
	case q.prepared != nil:
		return q.prepared.QueryContext(ctx, args...)
	case tx != nil:
		return tx.QueryContext(ctx, q.text, args...)
	}
	return s.db.QueryContext(ctx, q.text, args...)
}

// getEntry returns the entry of a key. That of a missing key has no revision.
func (s *Store) getEntry(ctx context.Context, tx *sql.Tx, q *query, key string) (store.Entry, error) {
	e := store.Entry{Key: key}
	rows, err := s.rows(ctx, tx, q, []byte(key))
	if err != nil {
		return e, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&e.Value, &e.Revision)
	}
	return e, errors.Join(err, rows.Err())
}
