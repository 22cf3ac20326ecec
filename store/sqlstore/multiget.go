package sqlstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/agentstate/state/store"
)

// A statement that reads several keys has one of these numbers of parameters,
// whatever the number of keys, so that two are prepared once and for all.
const (
	fewKeys  = 32
	manyKeys = 256
)

// GetMulti implements [store.MultiGetter]. It reads 256 entries with each
// statement, and those of one statement are a snapshot.
func (s *Store) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	places := make(map[string]int, len(keys)) // of the first entry of each key
	var distinct []string
	for i, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, s.newError("get multi", key, err)
		}
		if _, known := places[key]; !known {
			places[key], distinct = i, append(distinct, key)
		}
		entries[i].Key = key
	}
	for page := range slices.Chunk(distinct, manyKeys) {
		query, parameters := s.reads.few, fewKeys
		if len(page) > fewKeys {
			query, parameters = s.reads.many, manyKeys
		}
		args := keyArgs(page)
		for len(args) < parameters {
			args = append(args, args[0])
		}
		found, err := s.readEntries(ctx, "get multi", query, args...)
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
