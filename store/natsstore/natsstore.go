// Package natsstore implements [store.Store] and [store.Watcher] on a bucket of
// the key-value store of NATS JetStream.
//
// # Buckets
//
// Unless Options.Existing is true, Open creates the bucket if it does not exist: in files, without limits, with
// one value per key and without direct gets, so that the leader answers each
// read. Open fails for a bucket that expires or evicts entries, and for one
// that allows direct gets, which is the default of other tools. A deleted key
// leaves a marker in the bucket, which the process that has deleted it removes
// when it deletes others later, if it may purge the stream. A scan reads markers
// like entries. Purge leaves no marker.
//
// In a cluster, a leader that is partitioned from the other servers may answer
// reads with stale entries until it notices. Writes need a majority, so that no
// condition holds for a stale entry.
//
// # Durability
//
// JetStream acknowledges a write when a majority of the replicas has passed it
// to the operating system. It calls fsync every two minutes, unless the server
// has sync_interval: always, which a client cannot read. A bucket with fewer
// than three replicas therefore has [store.DurabilityServer]. A bucket in files
// with three or more replicas has [store.DurabilityFailover]: it survives the
// loss of a machine. If a majority loses power at the same time, the writes
// since the last fsync are lost even there. Give the replicas separate power
// supplies, or set sync_interval: always.
//
// # Sizes
//
// The maximum size of a value is the max_payload of the server (default 1 MiB)
// minus 272 bytes.
package natsstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

// Options are the settings of [Open] and [New].
type Options struct {
	// Bucket is the name of the bucket (default "state").
	Bucket string
	// Replicas is the number of servers of a cluster that keep the bucket
	// (default 1 for a new bucket). Opening an existing bucket with another
	// number fails, unless Replicas is 0.
	Replicas int
	// Existing opens what is there and creates nothing. If the bucket is missing,
	// the error wraps fs.ErrNotExist. It is enough that the user may read, as
	// long as the program only reads: see [store.ReadOnly].
	Existing bool
}

// Store is a [store.MultiGetter], a [store.Lister], a [store.Watcher], a
// [store.Presence] and a [store.Purger] on a bucket.
type Store struct {
	nc         *nats.Conn
	kv         jetstream.KeyValue
	stream     jetstream.Stream
	js         jetstream.JetStream
	subject    string // prefix of the subjects of all keys
	durability store.Durability
	markers    markers
	purging    chan struct{} // has an element for each purge under way
	// purgesFailed is when the server refused a purge, in ns of Unix time, or 0.
	purgesFailed atomic.Int64
	lifetime     context.Context // ends with Close
	close        func() error

	mu      sync.Mutex     // guards the end of lifetime against keepers.Add
	keepers sync.WaitGroup // of announcements
}

var (
	_ store.MultiGetter = (*Store)(nil)
	_ store.Lister      = (*Store)(nil)
	_ store.Watcher     = (*Store)(nil)
	_ store.Presence    = (*Store)(nil)
	_ store.Purger      = (*Store)(nil)
)

// Open connects to the server of a URL, or to one of several URLs that are
// separated by commas, and opens the bucket. While the connection is lost,
// calls fail at once. The store reconnects in the background. Options may be
// nil.
//
// A call whose context has no deadline waits 5 seconds for the server, and a
// listing a minute.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	nc, err := connect(ctx, url)
	if err != nil {
		return nil, newError("open", "", err)
	}
	s, err := New(ctx, nc, opts)
	if err != nil {
		nc.Close()
		return nil, err
	}
	endCalls := s.close
	s.close = func() error {
		defer nc.Close()
		return endCalls()
	}
	return s, nil
}

// New opens the bucket on a connection. Close does not close the connection.
// Options may be nil.
func New(ctx context.Context, nc *nats.Conn, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Bucket == "" {
		o.Bucket = "state"
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, newError("open", "", err)
	}
	kv, stream, err := openBucket(ctx, js, o)
	if err != nil {
		return nil, newError("open", "", err)
	}
	s := &Store{
		nc: nc, kv: kv, stream: stream, js: js,
		subject:    "$KV." + o.Bucket + ".",
		durability: store.DurabilityServer,
		purging:    make(chan struct{}, purgesAtOnce),
	}
	if config := stream.CachedInfo().Config; config.Storage == jetstream.FileStorage && config.Replicas >= 3 {
		s.durability = store.DurabilityFailover
	}
	lifetime, cancel := context.WithCancel(context.Background())
	s.lifetime = lifetime
	s.close = func() error {
		s.mu.Lock()
		cancel()
		s.mu.Unlock()
		s.keepers.Wait()
		return nil
	}
	return s, nil
}

// connect returns a connection. The client alone ignores ctx while it connects.
func connect(ctx context.Context, servers string) (*nats.Conn, error) {
	type result struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := nats.Connect(servers,
			nats.Name("state"),
			nats.MaxReconnects(-1),
			nats.ReconnectBufSize(-1), // a buffered write could overwrite a newer one later
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default handler prints
		)
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		if bad := (*url.Error)(nil); errors.As(r.err, &bad) {
			// The error of the parser contains the URL, which may contain a
			// password.
			return nil, fmt.Errorf("%w: the URL cannot be parsed", store.ErrInvalid)
		}
		return r.nc, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Durability returns [store.DurabilityFailover] for three or more replicas in
// files, and [store.DurabilityServer] otherwise.
func (s *Store) Durability() store.Durability { return s.durability }

// Close ends running calls and announcements. It closes the connection if [Open] created it.
func (s *Store) Close() error { return s.close() }

// checkUsable returns an error if ctx or the store has ended.
func (s *Store) checkUsable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.lifetime.Err() != nil {
		return store.ErrClosed
	}
	return nil
}

// beginCall returns a context that ends with ctx or when the store is closed,
// and a function that the caller calls at the end of the call.
func (s *Store) beginCall(ctx context.Context) (_ context.Context, endCall func(), err error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.lifetime, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// withClosed adds ErrClosed to the error of a call that Close has ended.
func (s *Store) withClosed(err error) error {
	if s.lifetime.Err() != nil && !errors.Is(err, store.ErrClosed) {
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	}
	return err
}

func newError(op, key string, err error) error {
	return &store.Error{Store: "nats", Op: op, Key: key, Err: err}
}
