package sqlstore

import (
	"context"
	"database/sql"
	"iter"

	"github.com/agentstate/state/store"
)

// maxPage is the number of entries or keys that are read at a time.
const maxPage = 256

// Scan implements [store.Store]. It reads entries in pages and holds neither a
// connection nor a lock while it yields.
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return s.scanPages(ctx, s.reads.scan, prefix, after)
}

// scanPages is Scan with a prepared statement.
func (s *Store) scanPages(ctx context.Context, query *sql.Stmt, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		const enoughBytes = 1 << 20 // of a page
		from, to := keyRange(prefix, after)
		for limit := 16; ; {
			page, err := s.readEntries(ctx, "scan", query, from, to, limit)
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			size := 0
			for _, e := range page {
				size += len(e.Value)
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
			from = append([]byte(page[len(page)-1].Key), 0)
			if size > enoughBytes {
				limit = max(limit/4, 1)
			} else {
				limit = min(limit*4, maxPage)
			}
		}
	}
}

// List implements [store.Lister]. It reads keys in pages and holds neither a
// connection nor a lock while it yields.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	_, to := keyRange(prefix, after)
	return store.ListPages(prefix, after, func(from string) ([]string, bool, error) {
		keys, err := s.readKeys(ctx, []byte(from), to)
		return keys, len(keys) == maxPage, err
	})
}

// readEntries returns the entries that a query finds.
func (s *Store) readEntries(
	ctx context.Context, op string, query *sql.Stmt, args ...any,
) (page []store.Entry, err error) {
	err = s.readRows(ctx, op, query, args, func(rows *sql.Rows) error {
		page = nil
		for rows.Next() {
			var e store.Entry
			if err := rows.Scan(&e.Key, &e.Value, &e.Revision); err != nil {
				return err
			}
			page = append(page, e)
		}
		return nil
	})
	return page, err
}

func (s *Store) readKeys(ctx context.Context, from, to []byte) (page []string, err error) {
	err = s.readRows(ctx, "list", s.reads.list, []any{from, to, maxPage}, func(rows *sql.Rows) error {
		page = nil
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return err
			}
			page = append(page, key)
		}
		return nil
	})
	return page, err
}

// readRows calls read with the rows of a query, again if the query is repeated.
func (s *Store) readRows(
	ctx context.Context, op string, query *sql.Stmt, args []any, read func(*sql.Rows) error,
) error {
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return s.newError(op, "", err)
	}
	defer endCall()
	err = s.retry(ctx, func() error {
		rows, err := query.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if err := read(rows); err != nil {
			return err
		}
		return rows.Err()
	})
	if err != nil {
		return s.newError(op, "", withCause(ctx, err))
	}
	return nil
}

// keyRange returns the range from <= k < to of the keys that begin with prefix
// and sort after after.
func keyRange(prefix, after string) (from, to []byte) {
	from = []byte(prefix)
	if after >= prefix {
		from = append([]byte(after), 0) // no key sorts between after and this
	}
	to = []byte(prefix)
	for len(to) > 0 && to[len(to)-1] == 0xff {
		to = to[:len(to)-1]
	}
	if len(to) == 0 {
		return from, []byte{0xff} // no valid UTF-8 begins with this byte
	}
	to[len(to)-1]++
	return from, to
}
