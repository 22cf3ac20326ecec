package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bucket returns the bucket and its stream, which it makes if there is none, and
// refuses one that loses entries.
func bucket(ctx context.Context, js jetstream.JetStream, opts Options) (jetstream.KeyValue, jetstream.Stream, error) {
	name := "KV_" + opts.Bucket
	kv, err := js.KeyValue(ctx, opts.Bucket)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, nil, fmt.Errorf("%w: %w", jetstream.ErrJetStreamNotEnabled, err)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name:              name,
			Subjects:          []string{"$KV." + opts.Bucket + ".>"},
			MaxMsgsPerSubject: 1,
			MaxMsgs:           -1,
			MaxBytes:          -1,
			MaxMsgSize:        -1,
			MaxConsumers:      -1,
			Discard:           jetstream.DiscardNew,
			Storage:           jetstream.FileStorage,
			Replicas:          max(opts.Replicas, 1),
			AllowRollup:       true,
			DenyDelete:        true,
			AllowDirect:       false, // any replica answers direct gets, also one that is behind
		})
		// Another process may have been faster.
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil, nil, fmt.Errorf("the bucket %q cannot be made: %w", opts.Bucket, err)
		}
		kv, err = js.KeyValue(ctx, opts.Bucket)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the bucket %q: %w", opts.Bucket, err)
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("the bucket %q: %w", opts.Bucket, err)
	}
	if err := check(stream.CachedInfo().Config, opts); err != nil {
		return nil, nil, fmt.Errorf("the bucket %q is refused: %w", opts.Bucket, err)
	}
	return kv, stream, nil
}

// check says why a bucket cannot be a store.
func check(config jetstream.StreamConfig, opts Options) error {
	switch {
	case config.MaxAge != 0:
		return fmt.Errorf("its entries expire after %v", config.MaxAge)
	case config.Retention != jetstream.LimitsPolicy:
		return errors.New("it removes entries that were read")
	case config.Discard != jetstream.DiscardNew && (config.MaxBytes > 0 || config.MaxMsgs > 0):
		return errors.New("it evicts entries when it is full; set discard to new or its limits to -1")
	case config.MaxMsgsPerSubject != 1:
		return fmt.Errorf("it keeps %d values of a key, not 1", config.MaxMsgsPerSubject)
	case config.DiscardNewPerSubject:
		return errors.New("it refuses to replace a value")
	case config.AllowDirect:
		return errors.New("it allows direct gets, whose answers may be old; run nats stream edit --no-allow-direct on its stream")
	case config.Mirror != nil || config.Sealed:
		return errors.New("it cannot be written to")
	case opts.Replicas != 0 && opts.Replicas != config.Replicas:
		return fmt.Errorf("it has %d replicas, not %d", config.Replicas, opts.Replicas)
	}
	return nil
}
