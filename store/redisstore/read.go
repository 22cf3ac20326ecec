package redisstore

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

const (
	pageKeys  = 256     // keys that are requested at once
	pageBytes = 4 << 20 // bytes of values that a scan requests at once, or one larger value
)

var (
	errReply = errors.New("unexpected reply of the server")
	errLost  = errors.New("the data was removed since the store was opened: the server was flushed, has evicted it, or has come back without it")
)

// Get implements [store.Store]. It reads 256 entries with each command, and those
// of one command are a snapshot.
func (s *Store) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, newError("get", key, err)
		}
	}
	only := ""
	if len(keys) == 1 {
		only = keys[0]
	}
	if err := s.checkUsable(ctx); err != nil {
		return nil, newError("get", only, err)
	}
	entries := make([]store.Entry, 0, len(keys))
	for page := range slices.Chunk(keys, pageKeys) {
		loaded, err := s.loadEntries(ctx, page)
		if err != nil {
			return nil, newError("get", only, err)
		}
		entries = append(entries, loaded...)
	}
	return entries, nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		from, to := keyRange(prefix, after)
		for {
			keys, lengths, err := s.readPage(ctx, from, to)
			for begin := 0; err == nil && begin < len(keys); {
				end, size := begin+1, lengths[begin]
				for ; end < len(keys) && (size+lengths[end] <= pageBytes || !values); end++ {
					size += lengths[end]
				}
				var entries []store.Entry
				if entries, err = s.listed(ctx, keys[begin:end], values); err == nil {
					for _, entry := range entries {
						if !yield(entry, nil) {
							return
						}
					}
				}
				begin = end
			}
			if err != nil {
				yield(store.Entry{}, newError("list", "", err))
				return
			}
			if len(keys) < pageKeys {
				return
			}
			from = "(" + keys[len(keys)-1]
		}
	}
}

// listed returns the entries of keys, without those that are missing meanwhile,
// or only the keys.
func (s *Store) listed(ctx context.Context, keys []string, values bool) ([]store.Entry, error) {
	if values {
		entries, err := s.loadEntries(ctx, keys)
		return slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Revision == "" }), err
	}
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		entries[i].Key = key
	}
	return entries, s.checkUsable(ctx)
}

// keyRange returns the arguments of ZRANGEBYLEX for the keys that begin with
// prefix and sort after after.
func keyRange(prefix, after string) (from, to string) {
	from, to = "["+prefix, "+"
	if after >= prefix {
		from = "(" + after
	}
	for end := len(prefix); end > 0; end-- {
		if last := prefix[end-1]; last < 0xff {
			to = "(" + prefix[:end-1] + string([]byte{last + 1})
			break
		}
	}
	return from, to
}

// readPage returns the first keys of a range and the sizes of their values.
func (s *Store) readPage(ctx context.Context, from, to string) ([]string, []int64, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, nil, err
	}
	reply, err := s.runScript(ctx, pageScript, from, to, pageKeys)
	if err != nil {
		return nil, nil, err
	}
	lists, _ := reply.([]any)
	if len(lists) != 2 {
		return nil, nil, errReply
	}
	names, _ := lists[0].([]any)
	sizes, _ := lists[1].([]any)
	if len(names) != len(sizes) {
		return nil, nil, errReply
	}
	keys, lengths := make([]string, len(names)), make([]int64, len(names))
	for i := range names {
		name, isName := names[i].(string)
		size, isSize := sizes[i].(int64)
		if !isName || !isSize {
			return nil, nil, errReply
		}
		keys[i], lengths[i] = name, size
	}
	return keys, lengths, nil
}

// loadEntries returns the entries of keys. The revision of a missing one is
// empty.
func (s *Store) loadEntries(ctx context.Context, keys []string) ([]store.Entry, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	args := make([]any, 0, 3+2*len(keys))
	args = append(args, "hmget", s.entries, "s")
	for _, key := range keys {
		args = append(args, "r"+key, "v"+key)
	}
	command := redis.NewSliceCmd(ctx, args...)
	if err := s.process(ctx, command); err != nil {
		return nil, err
	}
	fields := command.Val()
	if len(fields) != 1+2*len(keys) {
		return nil, errReply
	}
	if fields[0] != s.sentinel {
		return nil, errLost
	}
	fields = fields[1:]
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		entries[i].Key = key
		revision, isRevision := fields[2*i].(string)
		value, isValue := fields[2*i+1].(string)
		if isRevision && isValue {
			entries[i].Value, entries[i].Revision = []byte(value), store.Revision(revision)
		}
	}
	return entries, nil
}
