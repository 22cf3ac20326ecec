package storetest_test

import (
	"context"
	"errors"
	"strings"

	"github.com/agentstate/state/store"
)

func purgeFaults() []fault {
	return []fault{
		{"purges only the first key", "Purge/AllKeys", func(b *broken) {
			b.purge = func(ctx context.Context, keys ...string) error { return b.purgeAll(ctx, keys[:min(1, len(keys))]...) }
		}},
		{"purges what is below a key", "Purge/NoOtherKeys", func(b *broken) {
			b.onPurged(func(purged, key string) bool { return strings.HasPrefix(key, purged+"/") })
		}},
		{"purges by a wildcard", "Purge/NoOtherKeys", func(b *broken) {
			b.onPurged(func(purged, key string) bool {
				return strings.HasSuffix(purged, "/*") && strings.HasPrefix(key, purged[:len(purged)-1])
			})
		}},
		{"does not purge a missing key", "Purge/Missing", func(b *broken) {
			b.purge = func(ctx context.Context, keys ...string) error {
				for _, key := range keys {
					if !b.exists(key) {
						return &store.Error{Store: "broken", Op: "purge", Key: key, Err: store.ErrNotFound}
					}
				}
				return b.purgeAll(ctx, keys...)
			}
		}},
		{"lists a purged key", "Purge/NothingIsListed", func(b *broken) {
			b.onList(func(keys []string, _, _ string) []string { return append([]string{"b"}, keys...) })
		}},
		{"purges before it finds an invalid key", "Purge/InvalidKeyRemovesNothing", func(b *broken) {
			b.purge = func(ctx context.Context, keys ...string) error {
				for _, key := range keys {
					if err := b.purgeAll(ctx, key); err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{"purges although its context has ended", "Purge/CancelledRemovesNothing", func(b *broken) {
			b.purge = func(ctx context.Context, keys ...string) error {
				return errors.Join(ctx.Err(), b.purgeAll(context.WithoutCancel(ctx), keys...))
			}
		}},
	}
}

// onPurged has Purge also remove the keys of which also says so.
func (b *broken) onPurged(also func(purged, key string) bool) {
	b.purge = func(ctx context.Context, keys ...string) error {
		all := keys
		for e := range b.Memory.Scan(ctx, "", "") {
			for _, key := range keys {
				if also(key, e.Key) {
					all = append(all[:len(all):len(all)], e.Key)
				}
			}
		}
		return b.purgeAll(ctx, all...)
	}
}
