// Package redisstore is a [store.Store] on a Redis server or cluster, and on what
// speaks like one (Valkey, KeyDB).
//
// All entries of a prefix are in two keys, "{state:}entries", a hash with the value
// and the revision of each entry, and "{state:}keys", a sorted set with their order.
// In a cluster they are on one node.
//
// Redis replicates after it has answered. A failover, by a cluster or by Sentinel,
// may lose what the old master has acknowledged; demand "min-replicas-to-write" or
// take another store where that matters.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// Options are the options of a store. Nil is the defaults.
type Options struct {
	// Prefix begins the names of the keys that the store uses, "state:" if it is
	// empty. It has no braces. Stores of different prefixes share nothing.
	Prefix string
}

// Store is a [store.Batcher] on Redis.
type Store struct {
	client   redis.UniversalClient
	owned    bool
	entries  string // a hash: "r"+key is the revision, "v"+key the value
	keys     string // a sorted set of the keys, all with the score 0
	server   server
	closing  sync.Once
	closed   chan struct{}
	closeErr error
}

var _ store.Batcher = (*Store)(nil)

// Open connects to the server of a URL such as "redis://localhost:6379/0", with the
// options of [redis.ParseURL], or to the cluster that this server belongs to.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	single, err := redis.ParseURL(url)
	if err != nil {
		// The cause may quote the password.
		return nil, opening(fmt.Errorf("%w: not a URL like redis://user:password@host:6379/0", store.ErrInvalid))
	}
	s, err := own(ctx, redis.NewClient(single), opts)
	if !errors.Is(err, errClusterNode) {
		return s, err
	}
	many, err := redis.ParseClusterURL(url)
	if err != nil {
		return nil, opening(fmt.Errorf("%w: the URL has an option that a cluster does not", store.ErrInvalid))
	}
	return own(ctx, redis.NewClusterClient(many), opts)
}

// own returns a store that closes its client.
func own(ctx context.Context, client redis.UniversalClient, opts *Options) (*Store, error) {
	s, err := New(ctx, client, opts)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

// New returns a store on a client, a [*redis.Client] or [*redis.ClusterClient], that
// the caller closes after the store. The client must not cache and must not read
// from replicas.
func New(ctx context.Context, client redis.UniversalClient, opts *Options) (*Store, error) {
	prefix := "state:"
	if opts != nil && opts.Prefix != "" {
		prefix = opts.Prefix
	}
	if strings.ContainsAny(prefix, "{}") {
		return nil, opening(fmt.Errorf("%w: a prefix has no braces", store.ErrInvalid))
	}
	if err := ctx.Err(); err != nil {
		return nil, opening(err)
	}
	s := &Store{
		client:  client,
		entries: "{" + prefix + "}entries",
		keys:    "{" + prefix + "}keys",
		closed:  make(chan struct{}),
	}
	err := s.await(ctx, func() (err error) {
		s.server, err = inspect(ctx, client)
		return err
	})
	if err != nil {
		return nil, opening(err)
	}
	return s, nil
}

// Durability is [store.DurabilityPower] if the server had "appendonly yes" and "appendfsync
// always" when the store was opened, and lets us read that, and [store.DurabilityServer]
// otherwise.
func (s *Store) Durability() store.Durability { return s.server.durability }

// Close ends all calls, and the client if [Open] made it.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		if s.owned {
			s.closeErr = s.client.Close()
		}
	})
	return s.closeErr
}

// begin returns why an operation cannot begin.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return store.ErrClosed
	}
	return nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// process runs a command. The command must not have slices of the caller, because it
// may outlive the call.
func (s *Store) process(ctx context.Context, command redis.Cmder) error {
	return s.await(ctx, func() error { return s.client.Process(ctx, command) })
}

// await runs what asks the server, and ends when ctx or the store does. The client
// alone would not: it waits for an answer until its own timeout.
func (s *Store) await(ctx context.Context, ask func() error) error {
	done := make(chan error, 1)
	go func() { done <- ask() }()
	select {
	case err := <-done:
		if err != nil && !isRefused(err) && s.isClosed() {
			return store.ErrClosed // what the client says about it depends on the moment
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

func opening(err error) error { return failed("open", "", err) }

func failed(op, key string, err error) error {
	return &store.Error{Store: "redis", Op: op, Key: key, Err: err}
}
