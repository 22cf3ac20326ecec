package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"iter"
	"slices"

	"github.com/agentstate/state/store"
)

// A statement that reads several keys has one of these numbers of parameters,
// whatever the number of keys, so that two are prepared once and for all.
const (
	fewKeys  = 32
	manyKeys = 256
)

// Get implements [store.Store]. It reads 256 entries with each statement, and
// those of one statement are a snapshot.
func (s *Store) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, s.newError("get", key, err)
		}
	}
	if len(keys) != 1 {
		return s.getSeveral(ctx, keys)
	}
	ctx, call, err := s.beginCall(ctx)
	if err != nil {
		return nil, s.newError("get", keys[0], err)
	}
	defer s.endCall(call)
	var e store.Entry
	err = s.retry(ctx, func() (err error) {
		e, err = s.getEntry(ctx, nil, &s.reads.get, keys[0])
		return err
	})
	if err != nil {
		return nil, s.newError("get", keys[0], withCause(ctx, err))
	}
	return []store.Entry{e}, nil
}

func (s *Store) getSeveral(ctx context.Context, keys []string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	places := make(map[string]int, len(keys)) // of the first entry of each key
	var distinct []string
	for i, key := range keys {
		if _, known := places[key]; !known {
			places[key], distinct = i, append(distinct, key)
		}
		entries[i].Key = key
	}
	for page := range slices.Chunk(distinct, manyKeys) {
		query, parameters := &s.reads.few, fewKeys
		if len(page) > fewKeys {
			query, parameters = &s.reads.many, manyKeys
		}
		args := keyArgs(page)
		for len(args) < parameters {
			args = append(args, args[0])
		}
		found, err := s.readEntries(ctx, "get", nil, query, true, args...)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			entries[places[e.Key]] = e
		}
	}
	for i, key := range keys {
		if first := places[key]; first != i {
			entries[i] = entries[first]
			entries[i].Value = bytes.Clone(entries[i].Value)
		}
	}
	return entries, nil
}

// List implements [store.Store]. It reads in pages and holds neither a
// connection nor a lock while it yields.
func (s *Store) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return s.listPages(ctx, nil, prefix, after, values)
}

// listPages is List in a transaction, or in none if tx is nil.
func (s *Store) listPages(
	ctx context.Context, tx *sql.Tx, prefix, after string, values bool,
) iter.Seq2[store.Entry, error] {
	query := &s.reads.list
	if !values {
		query = &s.reads.listKeys
	}
	return func(yield func(store.Entry, error) bool) {
		const maxPage = 256         // entries
		const enoughBytes = 1 << 20 // of a page
		from, to := keyRange(prefix, after)
		for limit := 16; ; {
			page, err := s.readEntries(ctx, "list", tx, query, values, from, to, limit)
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

// readEntries returns the entries that a query finds, or only their keys.
func (s *Store) readEntries(
	ctx context.Context, op string, tx *sql.Tx, query *query, values bool, args ...any,
) (page []store.Entry, err error) {
	ctx, call, err := s.beginCall(ctx)
	if err != nil {
		return nil, s.newError(op, "", err)
	}
	defer s.endCall(call)
	err = s.retry(ctx, func() error {
		rows, err := s.rows(ctx, tx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for page = nil; rows.Next(); {
			var e store.Entry
			to := []any{&e.Key, &e.Value, &e.Revision}
			if !values {
				to = to[:1]
			}
			if err := rows.Scan(to...); err != nil {
				return err
			}
			page = append(page, e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, s.newError(op, "", withCause(ctx, err))
	}
	return page, nil
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
