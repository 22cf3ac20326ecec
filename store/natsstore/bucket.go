package natsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// openBucket returns a bucket and its stream. It creates the bucket if it does
// not exist and fails for a bucket that loses entries.
func openBucket(ctx context.Context, js jetstream.JetStream, o Options) (jetstream.KeyValue, jetstream.Stream, error) {
	bucket, replicas := o.Bucket, o.Replicas
	name := "KV_" + bucket
	kv, err := js.KeyValue(ctx, bucket)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, nil, fmt.Errorf("%w: %w", jetstream.ErrJetStreamNotEnabled, err)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) && o.Existing {
		return nil, nil, fmt.Errorf("the bucket %q: %w", bucket, fs.ErrNotExist)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name:              name,
			Subjects:          []string{"$KV." + bucket + ".>"},
			MaxMsgsPerSubject: 1,
			MaxMsgs:           -1,
			MaxBytes:          -1,
			MaxMsgSize:        -1,
			MaxConsumers:      -1,
			Discard:           jetstream.DiscardNew,
			Storage:           jetstream.FileStorage,
			Replicas:          max(replicas, 1),
			AllowRollup:       true,
			DenyDelete:        true,
			AllowDirect:       false, // any replica answers direct gets, even a stale one
		})
		// Another process may have created it at the same time.
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil, nil, fmt.Errorf("cannot create the bucket %q: %w", bucket, err)
		}
		kv, err = js.KeyValue(ctx, bucket)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the bucket %q: %w", bucket, err)
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("the bucket %q: %w", bucket, err)
	}
	if err := checkBucket(stream.CachedInfo().Config, replicas); err != nil {
		return nil, nil, fmt.Errorf("the bucket %q is not suitable: %w", bucket, err)
	}
	return kv, stream, nil
}

// checkBucket returns an error if a bucket cannot keep the guarantees of a
// store.
func checkBucket(config jetstream.StreamConfig, replicas int) error {
	switch {
	case config.MaxAge != 0:
		return fmt.Errorf("its entries expire after %v", config.MaxAge)
	case config.Retention != jetstream.LimitsPolicy:
		return errors.New("it removes entries after they are read")
	case config.Discard != jetstream.DiscardNew && (config.MaxBytes > 0 || config.MaxMsgs > 0):
		return errors.New("it evicts entries when it is full; set discard to new or its limits to -1")
	case config.MaxMsgsPerSubject != 1:
		return fmt.Errorf("it keeps %d values of a key, not 1", config.MaxMsgsPerSubject)
	case config.DiscardNewPerSubject:
		return errors.New("it refuses to replace a value")
	case config.AllowDirect:
		return errors.New("it allows direct gets, which may be stale; run nats stream edit --no-allow-direct on its stream")
	case config.Mirror != nil || config.Sealed:
		return errors.New("it cannot be written to")
	case replicas != 0 && replicas != config.Replicas:
		return fmt.Errorf("it has %d replicas, not %d", config.Replicas, replicas)
	}
	return nil
}
