package natsstore

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

const (
	// purgesAtOnce is the number of purges that a store has under way. A server
	// makes each one in the way of the writes of the stream, and 2.9 in the way of
	// all other requests of the connection: more at once make commits slow.
	purgesAtOnce = 2
	// purgeTimeout is the time that a server has for one purge.
	purgeTimeout = 5 * time.Second
	// purgePause is the time after a failed purge in which keys are deleted
	// instead. A server does not answer an account that has no right to purge.
	purgePause = time.Minute
)

// Purge implements [store.Purger]. A key that the server does not purge, for
// example because the account has no right to, is deleted and leaves a marker.
func (s *Store) Purge(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return newError("purge", key, err)
		}
	}
	for _, key := range keys {
		if err := s.purgeKey(ctx, key); err != nil {
			return newError("purge", key, err)
		}
	}
	return nil
}

func (s *Store) purgeKey(ctx context.Context, key string) error {
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer endCall()
	select {
	case s.purging <- struct{}{}:
		defer func() { <-s.purging }()
	case <-ctx.Done():
		return s.withClosed(ctx.Err())
	}
	subject := s.subject + encodeKey(key)
	if s.purgesFail() {
		return s.deleteKey(ctx, key)
	}
	limited, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	err = s.stream.Purge(limited, jetstream.WithPurgeSubject(subject))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || s.nc.IsClosed() || !s.nc.IsConnected():
		return s.withClosed(err)
	}
	s.purgesFailed.Store(time.Now().UnixNano())
	return s.deleteKey(ctx, key)
}

// purgesFail reports whether a purge has failed lately.
func (s *Store) purgesFail() bool {
	at := s.purgesFailed.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < purgePause
}

// deleteKey is Delete, with an error that does not name the operation.
func (s *Store) deleteKey(ctx context.Context, key string) error {
	_, err := s.write(ctx, key, deletion(), nil, store.Always)
	return err
}
