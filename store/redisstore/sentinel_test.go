package redisstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

// A store whose data is gone says so. It does not take what is missing for what
// was deleted.
func TestDataThatIsGone(t *testing.T) {
	ctx, url := t.Context(), shared(t)
	for name, remove := range map[string]func(prefix string) []string{
		"all of it": func(prefix string) []string { return []string{"{" + prefix + "}entries", "{" + prefix + "}keys"} },
		"entries":   func(prefix string) []string { return []string{"{" + prefix + "}entries"} },
		"the index": func(prefix string) []string { return []string{"{" + prefix + "}keys"} },
	} {
		t.Run(name, func(t *testing.T) {
			opts := &redisstore.Options{Prefix: fresh(t, url)}
			s, err := redisstore.Open(ctx, url, opts)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			_, err = store.Put(ctx, s, "a", []byte("1"), store.IfAbsent)
			require.NoError(t, err)
			require.NoError(t, connect(t, url).Del(ctx, remove(opts.Prefix)...).Err())

			_, err = store.Put(ctx, s, "a", []byte("2"), store.IfAbsent)
			require.ErrorContains(t, err, "removed since the store was opened")
			require.NotErrorIs(t, err, store.ErrUnknownOutcome)
			require.NotErrorIs(t, err, store.ErrConflict)
			for _, err := range s.List(ctx, "", "", true) {
				require.ErrorContains(t, err, "removed since the store was opened")
			}
			for _, err := range s.List(ctx, "", "", false) {
				require.ErrorContains(t, err, "removed since the store was opened")
			}
			if name == "the index" { // the entry itself is there
				return
			}
			_, err = store.Get(ctx, s, "a")
			require.ErrorContains(t, err, "removed since the store was opened")
			require.NotErrorIs(t, err, store.ErrNotFound)

			again, err := redisstore.Open(ctx, url, opts)
			require.NoError(t, err)
			defer func() { require.NoError(t, again.Close()) }()
			_, err = store.Get(ctx, again, "a")
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = store.Put(ctx, again, "a", []byte("3"), store.IfAbsent)
			require.NoError(t, err)
			_, err = store.Get(ctx, s, "a")
			require.ErrorContains(t, err, "removed since the store was opened")
		})
	}
}
