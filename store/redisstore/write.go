package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// Batch implements [store.Store]. The limit on the size of a value applies to
// all values of the batch together.
func (s *Store) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if key, err := store.CheckWrites(writes); err != nil {
		return nil, newError("write", key, err)
	}
	key := "" // of an error about all writes
	if len(writes) == 1 {
		key = writes[0].Key
	}
	if err := s.checkUsable(ctx); err != nil {
		return nil, newError("write", key, err)
	}
	if len(writes) == 0 {
		return nil, nil
	}

	size := 0
	revisions := make([]store.Revision, len(writes))
	args := make([]any, 0, 4*len(writes))
	for i, w := range writes {
		if size += len(w.Value); size > s.server.maxValue {
			return nil, newError("write", w.Key, fmt.Errorf("%w: more than %d bytes", store.ErrTooLarge, s.server.maxValue))
		}
		value := ""
		if !w.Delete {
			revisions[i], value = store.NewRevision(), string(w.Value)
		}
		args = append(args, w.Key, conditionArgument(w.Cond), string(revisions[i]), value)
	}

	reply, err := s.runScript(ctx, writeScript, args...)
	if err != nil {
		return nil, newError("write", key, classify(err))
	}
	switch failing, ok := reply.(int64); {
	case !ok || failing < 0 || failing > int64(len(writes)):
		return nil, newError("write", key, fmt.Errorf("%w: unexpected reply of the server", store.ErrUnknownOutcome))
	case failing > 0:
		return nil, newError("write", writes[failing-1].Key, store.ErrConflict)
	}
	return revisions, nil
}

// conditionArgument returns the argument of writeScript for a condition.
func conditionArgument(cond store.Condition) string {
	if revision, ok := cond.Revision(); ok {
		return "=" + string(revision)
	}
	if cond.Absent() {
		return "absent"
	}
	return "any"
}

// classify adds store.ErrUnknownOutcome to the error of a write that may have
// been made: one that was sent and that the server did not refuse.
func classify(err error) error {
	var network *net.OpError
	notSent := errors.As(err, &network) && network.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout)
	if notSent || isRefused(err) || errors.Is(err, errLost) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}
