// Package natsstore is a [store.Store] in a bucket of the key-value store of NATS
// JetStream. It is a [store.Watcher].
//
// # Buckets
//
// The bucket is made if it is not there: in files, without limits, one value per
// key and no direct gets, so that each read is answered by the leader. A bucket
// that expires or evicts entries is refused, and so is one that allows direct
// gets, as those that other tools make do. A deleted key leaves a marker in the
// bucket, which costs a scan as much as an entry.
//
// In a cluster, a leader that is cut off from the others may answer reads with old
// entries until it notices. Writes need the majority, and no condition holds for
// what is old.
//
// # Durability
//
// JetStream acknowledges a write when it was handed to the operating systems of
// the majority of the replicas, and calls fsync every two minutes, unless the
// server has sync_interval: always, which a client cannot see. So a bucket with
// less than three replicas has the durability [store.DurabilityServer], and one with three
// or more, in files, [store.DurabilityFailover]: it survives the loss of a machine. When
// the majority loses its power at once, the writes since the last fsync are lost
// also there. Let the replicas not share their power, or set sync_interval: always.
//
// # Sizes
//
// A value has at most the max_payload of the server, 1 MiB unless it is set, less
// 272 bytes. Larger ones are [store.ErrTooLarge].
package natsstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

// Options is what can be chosen. The zero value is good.
type Options struct {
	// Bucket is the name of the bucket, "state" if empty.
	Bucket string
	// Replicas is on how many servers of a cluster the bucket is. 0 is 1 for a
	// new bucket and any for one that is there.
	Replicas int
}

// Store is a bucket.
type Store struct {
	nc         *nats.Conn
	kv         jetstream.KeyValue
	stream     jetstream.Stream
	js         jetstream.JetStream
	subject    string // what the subjects of all keys begin with
	durability store.Durability
	open       context.Context // ends with Close
	close      func() error
}

var _ store.Watcher = (*Store)(nil)

// Open connects to a server, or to one of several whose URLs are divided by
// commas, and opens the bucket. While the connection is lost, calls fail at once;
// it is restored in the background.
//
// A call whose ctx has no deadline waits 5 seconds for the server.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	nc, err := connect(ctx, url)
	if err != nil {
		return nil, fail("open", "", err)
	}
	s, err := New(ctx, nc, opts)
	if err != nil {
		nc.Close()
		return nil, err
	}
	end := s.close
	s.close = func() error {
		defer nc.Close()
		return end()
	}
	return s, nil
}

// New opens the bucket on a connection, which Close does not close.
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
		return nil, fail("open", "", err)
	}
	kv, stream, err := bucket(ctx, js, o)
	if err != nil {
		return nil, fail("open", "", err)
	}
	s := &Store{nc: nc, kv: kv, stream: stream, js: js, subject: "$KV." + o.Bucket + ".", durability: store.DurabilityServer}
	if config := stream.CachedInfo().Config; config.Storage == jetstream.FileStorage && config.Replicas >= 3 {
		s.durability = store.DurabilityFailover
	}
	open, end := context.WithCancel(context.Background())
	s.open = open
	s.close = sync.OnceValue(func() error {
		end()
		return nil
	})
	return s, nil
}

// connect connects until ctx ends.
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
			nats.ReconnectBufSize(-1), // what is kept for later could overwrite what is newer then
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
		)
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		if bad := (*url.Error)(nil); errors.As(r.err, &bad) {
			return nil, fmt.Errorf("%w: the URL cannot be parsed", store.ErrInvalid) // it may hold a password
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

// Durability is [store.DurabilityFailover] for three replicas in files, and [store.DurabilityServer]
// for all else.
func (s *Store) Durability() store.Durability { return s.durability }

// Close ends all calls, and closes the connection if Open made it.
func (s *Store) Close() error { return s.close() }

// begin returns a context that ends with ctx, with the store and with end.
func (s *Store) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if s.open.Err() != nil {
		return nil, nil, store.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.open, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// ended adds ErrClosed to the error of a call that Close ended.
func (s *Store) ended(err error) error {
	if s.open.Err() != nil && !errors.Is(err, store.ErrClosed) {
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	}
	return err
}

func fail(op, key string, err error) error {
	return &store.Error{Store: "nats", Op: op, Key: key, Err: err}
}
