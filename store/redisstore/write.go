package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	revisions, err := s.write(ctx, "put", []store.Write{{Key: key, Value: value, Cond: cond}})
	if err != nil {
		return "", err
	}
	return revisions[0], nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string, cond store.Condition) error {
	_, err := s.write(ctx, "delete", []store.Write{{Key: key, Delete: true, Cond: cond}})
	return err
}

// Batch implements [store.Batcher]. The values together may be as large as one alone.
func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return s.write(ctx, "batch", writes)
}

func (s *Store) write(ctx context.Context, op string, writes []store.Write) ([]store.Revision, error) {
	if key, err := check(writes); err != nil {
		return nil, failed(op, key, err)
	}
	key := "" // what an error about all of the writes names
	if len(writes) == 1 {
		key = writes[0].Key
	}
	if err := s.begin(ctx); err != nil {
		return nil, failed(op, key, err)
	}
	if len(writes) == 0 {
		return nil, nil
	}

	size := 0
	revisions := make([]store.Revision, len(writes))
	args := make([]any, 0, 4*len(writes))
	for i, w := range writes {
		if size += len(w.Value); size > s.server.largest {
			return nil, failed(op, w.Key, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, s.server.largest))
		}
		value := ""
		if !w.Delete {
			revisions[i], value = store.NewRevision(), string(w.Value)
		}
		args = append(args, w.Key, condition(w.Cond), string(revisions[i]), value)
	}

	reply, err := s.run(ctx, writeScript, args)
	if err != nil {
		return nil, failed(op, key, outcome(err))
	}
	switch failing, ok := reply.(int64); {
	case !ok || failing < 0 || failing > int64(len(writes)):
		return nil, failed(op, key, fmt.Errorf("%w: the server answered something else", store.ErrUnknownOutcome))
	case failing > 0:
		return nil, failed(op, writes[failing-1].Key, store.ErrConflict)
	}
	return revisions, nil
}

// check returns why the writes are none that a store makes, and the key at fault.
func check(writes []store.Write) (string, error) {
	seen := make(map[string]bool, len(writes))
	for _, w := range writes {
		if err := store.CheckKey(w.Key); err != nil {
			return w.Key, err
		}
		if seen[w.Key] {
			return w.Key, fmt.Errorf("%w: the key is in the batch twice", store.ErrInvalid)
		}
		seen[w.Key] = true
		if w.Delete && w.Cond.Absent() {
			return w.Key, fmt.Errorf("%w: a delete cannot demand that there is no entry", store.ErrInvalid)
		}
	}
	return "", nil
}

// condition writes a condition as the script reads it.
func condition(cond store.Condition) string {
	if revision, ok := cond.Revision(); ok {
		return "=" + string(revision)
	}
	if cond.Absent() {
		return "absent"
	}
	return "any"
}

// outcome adds that a write may have been made, unless the error says that it was not:
// the server refused it, or it was never sent.
func outcome(err error) error {
	var network *net.OpError
	if isRefused(err) || errors.As(err, &network) && network.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}
