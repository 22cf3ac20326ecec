package sqlstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
)

// Each call takes as many round trips to the server as it must. A workspace
// replaces a head, puts new blobs, and deletes old ones.
func TestRoundTrips(t *testing.T) {
	const blobs = 3
	calls := []struct {
		name            string
		postgres, mysql int // limits of the round trips
		call            func(ctx context.Context, s store.Store, head store.Revision) error
	}{
		{"get", 1, 1, func(ctx context.Context, s store.Store, _ store.Revision) error {
			_, err := store.Get(ctx, s, "head")
			return err
		}},
		{"get several", 1, 1, func(ctx context.Context, s store.Store, _ store.Revision) error {
			_, err := s.Get(ctx, "head", "head/old0", "missing")
			return err
		}},
		{"put", 1, 1, func(ctx context.Context, s store.Store, head store.Revision) error {
			_, err := store.Put(ctx, s, "head", []byte("new"), store.IfRevision(head))
			return err
		}},
		{"delete", 1, 1, func(ctx context.Context, s store.Store, _ store.Revision) error {
			return store.Delete(ctx, s, "head", store.Always)
		}},
		{"update and insert", 1, 1, func(ctx context.Context, s store.Store, head store.Revision) error {
			_, err := s.Batch(ctx, []store.Write{
				{Key: "head", Value: []byte("new"), Cond: store.IfRevision(head)},
				{Key: "head/new", Value: []byte("new"), Cond: store.IfAbsent},
			})
			return err
		}},
		{"update, inserts and deletes", 1, 1, func(ctx context.Context, s store.Store, head store.Revision) error {
			writes := []store.Write{{Key: "head", Value: []byte("new"), Cond: store.IfRevision(head)}}
			for i := range blobs {
				writes = append(writes,
					store.Write{Key: fmt.Sprint("head/new", i), Value: []byte("new"), Cond: store.IfAbsent},
					store.Write{Key: fmt.Sprint("head/old", i), Delete: true})
			}
			_, err := s.Batch(ctx, writes)
			return err
		}},
	}
	for _, driver := range []string{"postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			server := newServer(t, driver)
			proxy := testkit.NewProxy(t, server.host(t))
			s := server.open(t, server.withHost(t, proxy.Addr()), server.table(t))
			for _, c := range calls {
				var trips int
				for range 2 { // the first one prepares statements
					var writes []store.Write
					for e, err := range s.List(t.Context(), "", "", true) {
						require.NoError(t, err)
						writes = append(writes, store.Write{Key: e.Key, Delete: true})
					}
					_, err := s.Batch(t.Context(), writes)
					require.NoError(t, err)
					writes = []store.Write{{Key: "head", Value: []byte("old")}}
					for i := range blobs {
						writes = append(writes, store.Write{Key: fmt.Sprint("head/old", i), Value: []byte("old")})
					}
					revs, err := s.Batch(t.Context(), writes)
					require.NoError(t, err)
					before := proxy.RoundTrips()
					require.NoError(t, c.call(t.Context(), s, revs[0]), c.name)
					trips = proxy.RoundTrips() - before
				}
				limit := map[string]int{"postgres": c.postgres, "mysql": c.mysql}[driver]
				require.LessOrEqual(t, trips, limit, c.name)
			}
		})
	}
}
