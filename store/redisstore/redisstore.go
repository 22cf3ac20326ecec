// Package redisstore implements [store.Store] on a Redis server or cluster, or
// on a compatible server such as Valkey or KeyDB.
//
// The entries of a prefix are in two Redis keys. "{state:}entries" is a hash
// with the value and the revision of each entry, "{state:}keys" a sorted set
// that orders the keys. In a cluster, both are on one node.
//
// Redis replicates a write after it has acknowledged it. A failover, by a
// cluster or by Sentinel, may lose writes that the old master has acknowledged.
// Where that matters, set "min-replicas-to-write" or use another store.
//
// The entries have a sentinel. If it is gone, because the server was flushed, has
// evicted a Redis key, or was restarted without its data, every call of a store
// that was opened before fails: it does not take the missing entries for ones
// that were deleted. To begin with an empty store, open it again.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// Options are the settings of [Open] and [New].
type Options struct {
	// Prefix begins the names of the Redis keys that the store uses (default
	// "state:"). It must not contain braces. Stores with different prefixes
	// share no entries.
	Prefix string
	// Existing opens what is there and creates nothing. If no store was opened
	// there before, the error wraps fs.ErrNotExist. It is enough that the user
	// may read, as long as the program only reads: see [store.ReadOnly].
	Existing bool
}

// Store is a [store.Store] on Redis.
type Store struct {
	client    redis.UniversalClient
	ownClient bool   // close the client in Close
	entries   string // hash: field "r"+key is the revision, "v"+key the value, "s" the sentinel
	keys      string // sorted set of the keys, all with the score 0
	sentinel  string // the field "s" of entries
	server    serverInfo
	closing   sync.Once
	closed    chan struct{}
	closeErr  error
}

var _ store.Store = (*Store)(nil)

// Open connects to the server of a URL such as "redis://localhost:6379/0",
// which may contain the options of [redis.ParseURL], or to the cluster that the
// server belongs to. Options may be nil. The option pool_size is the most
// connections that the store has, to each node (default: 10 for each CPU that Go
// uses; in a cluster 5).
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	single, err := redis.ParseURL(url)
	if err != nil {
		// The error of the driver may quote the password.
		return nil, openError(fmt.Errorf("%w: not a URL like redis://user:password@host:6379/0", store.ErrInvalid))
	}
	s, err := openOwn(ctx, redis.NewClient(single), opts)
	if !errors.Is(err, errClusterNode) {
		return s, err
	}
	many, err := redis.ParseClusterURL(url)
	if err != nil {
		return nil, openError(fmt.Errorf("%w: the URL has an option that a cluster does not support", store.ErrInvalid))
	}
	return openOwn(ctx, redis.NewClusterClient(many), opts)
}

// openOwn returns a store that closes its client.
func openOwn(ctx context.Context, client redis.UniversalClient, opts *Options) (*Store, error) {
	s, err := New(ctx, client, opts)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.ownClient = true
	return s, nil
}

// New returns a store on a [*redis.Client] or [*redis.ClusterClient]. The
// caller closes the client after the store. The client must not have a cache
// and must not read from replicas. Options may be nil.
//
// The store sends no pipelines, so that PoolSize bounds its connections. It does not
// bound those of a program that sends pipelines with the same client: since go-redis
// 9.23.0 these have PipelinePoolSize connections more, 10 by default, also beyond
// MaxActiveConns. With PipelinePoolSize -1, PoolSize bounds all.
func New(ctx context.Context, client redis.UniversalClient, opts *Options) (*Store, error) {
	prefix := "state:"
	if opts != nil && opts.Prefix != "" {
		prefix = opts.Prefix
	}
	if strings.ContainsAny(prefix, "{}") {
		return nil, openError(fmt.Errorf("%w: the prefix contains braces", store.ErrInvalid))
	}
	if err := ctx.Err(); err != nil {
		return nil, openError(err)
	}
	s := &Store{
		client:  client,
		entries: "{" + prefix + "}entries",
		keys:    "{" + prefix + "}keys",
		closed:  make(chan struct{}),
	}
	err := s.awaitReply(ctx, func() (err error) {
		s.server, err = inspectServer(ctx, client)
		return err
	})
	if err != nil {
		return nil, openError(err)
	}
	if opts != nil && opts.Existing {
		s.sentinel, err = s.readSentinel(ctx)
	} else {
		s.sentinel, err = s.placeSentinel(ctx)
	}
	if err != nil {
		return nil, openError(err)
	}
	return s, nil
}

// readSentinel returns the sentinel of the entries. It returns fs.ErrNotExist if
// there is none.
func (s *Store) readSentinel(ctx context.Context) (string, error) {
	command := redis.NewStringCmd(ctx, "hget", s.entries, "s")
	err := s.process(ctx, command)
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("the entries %s: %w", s.entries, fs.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	return command.Val(), nil
}

// placeSentinel returns the sentinel of the entries. The first store places it.
func (s *Store) placeSentinel(ctx context.Context) (string, error) {
	reply, err := s.runScriptOn(ctx, sentinelScript, []any{s.entries}, []any{string(store.NewRevision())})
	if err != nil {
		return "", err
	}
	sentinel, ok := reply.(string)
	if !ok {
		return "", errReply
	}
	return sentinel, nil
}

// Durability returns [store.DurabilityPower] if the server had "appendonly yes"
// and "appendfsync always" when the store was opened and allows clients to read
// these settings, and [store.DurabilityServer] otherwise.
func (s *Store) Durability() store.Durability { return s.server.durability }

// Close ends running calls. It closes the client if [Open] created it.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		if s.ownClient {
			s.closeErr = s.client.Close()
		}
	})
	return s.closeErr
}

// checkUsable returns an error if ctx has ended or the store is closed.
func (s *Store) checkUsable(ctx context.Context) error {
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

// process executes a command. The command must not contain slices of the
// caller, because it may outlive the call.
func (s *Store) process(ctx context.Context, command redis.Cmder) error {
	err := s.awaitReply(ctx, func() error { return s.client.Process(ctx, command) })
	if cluster, ok := s.client.(*redis.ClusterClient); ok && err != nil && !isRefused(err) {
		// The node may be dead, and another may have its slots. The client itself
		// asks only every minute, and when a node sends it elsewhere.
		cluster.ReloadState(ctx)
	}
	return err
}

// awaitReply calls send and returns when send, ctx or the store ends. The
// client alone ignores ctx while it waits for a reply.
func (s *Store) awaitReply(ctx context.Context, send func() error) error {
	done, panicked := make(chan error, 1), make(chan any, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // in a hook of the client
				panicked <- p
			}
		}()
		done <- send()
	}()
	select {
	case p := <-panicked: // the caller may recover it
		panic(p)
	case err := <-done:
		if err != nil && !isRefused(err) && s.isClosed() {
			return store.ErrClosed // the error of the client depends on timing
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

func openError(err error) error { return newError("open", "", err) }

func newError(op, key string, err error) error {
	if isLasting(err) {
		err = fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	return &store.Error{Store: "redis", Op: op, Key: key, Err: err}
}
