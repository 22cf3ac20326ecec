package redisstore

import (
	"context"
	"errors"
	"iter"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

const (
	pageKeys  = 256     // how many keys a scan asks for at once
	pageBytes = 4 << 20 // how many bytes of values, but for a value that has more
)

var errReply = errors.New("the server answered something else")

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, failed("get", key, err)
	}
	if err := s.begin(ctx); err != nil {
		return store.Entry{}, failed("get", key, err)
	}
	found, err := s.load(ctx, []string{key})
	if err == nil && len(found) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, failed("get", key, err)
	}
	return found[0], nil
}

// Scan implements [store.Store].
func (s *Store) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		from, to := bounds(prefix, after)
		for {
			keys, lengths, err := s.page(ctx, from, to)
			for begin := 0; err == nil && begin < len(keys); {
				end, size := begin+1, lengths[begin]
				for ; end < len(keys) && size+lengths[end] <= pageBytes; end++ {
					size += lengths[end]
				}
				var found []store.Entry
				found, err = s.load(ctx, keys[begin:end])
				for _, entry := range found {
					if !yield(entry, nil) {
						return
					}
				}
				begin = end
			}
			if err != nil {
				yield(store.Entry{}, failed("scan", "", err))
				return
			}
			if len(keys) < pageKeys {
				return
			}
			from = "(" + keys[len(keys)-1]
		}
	}
}

// bounds returns the range of the keys that begin with prefix and come after after, as
// ZRANGEBYLEX takes it.
func bounds(prefix, after string) (from, to string) {
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

// page returns the first keys of a range and how long their values are.
func (s *Store) page(ctx context.Context, from, to string) ([]string, []int64, error) {
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	reply, err := s.run(ctx, pageScript, []any{from, to, pageKeys})
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

// load returns the entries of those keys that are there.
func (s *Store) load(ctx context.Context, keys []string) ([]store.Entry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	args := make([]any, 0, 2+2*len(keys))
	args = append(args, "hmget", s.entries)
	for _, key := range keys {
		args = append(args, "r"+key, "v"+key)
	}
	command := redis.NewSliceCmd(ctx, args...)
	if err := s.process(ctx, command); err != nil {
		return nil, err
	}
	fields := command.Val()
	if len(fields) != 2*len(keys) {
		return nil, errReply
	}
	found := make([]store.Entry, 0, len(keys))
	for i, key := range keys {
		revision, isRevision := fields[2*i].(string)
		value, isValue := fields[2*i+1].(string)
		if isRevision && isValue {
			found = append(found, store.Entry{Key: key, Value: []byte(value), Revision: store.Revision(revision)})
		}
	}
	return found, nil
}
