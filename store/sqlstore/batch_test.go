package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
)

// Random batches have the same effect as in memory, by whatever statements they
// are made.
func TestBatchesAreAsInMemory(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, _ *sql.DB, s *sqlstore.Store, _ string) {
		random := rand.New(rand.NewPCG(effort.LogSeed(t), 0))
		memory := store.NewMemory()
		stores := []store.Store{memory, s}
		revs := make([]map[string]store.Revision, 2) // by key, of each store
		revs[0], revs[1] = map[string]store.Revision{}, map[string]store.Revision{}
		made := 0
		for i := range effort.Runs(150) {
			keys := random.Perm(6)[:1+random.IntN(4)]
			batches := make([][]store.Write, 2)
			for n, k := range keys {
				key, value := fmt.Sprint("k", k), fmt.Append(nil, i, n)
				kind, stale := random.IntN(6), random.IntN(4) == 0
				for j := range batches {
					w := store.Write{Key: key, Value: value}
					rev := revs[j][key]
					if stale || rev == "" {
						rev = "stale"
					}
					switch kind {
					case 0, 1:
						w.Cond = store.IfAbsent
					case 2, 3:
						w.Cond = store.IfRevision(rev)
					case 4:
						w = store.Write{Key: key, Delete: true}
					}
					batches[j] = append(batches[j], w)
				}
			}
			var errs [2]error
			for j, s := range stores {
				var written []store.Revision
				if written, errs[j] = s.Batch(t.Context(), batches[j]); errs[j] != nil {
					continue
				}
				for n, w := range batches[j] {
					revs[j][w.Key] = written[n]
				}
			}
			if errs[0] == nil {
				require.NoError(t, errs[1], "%+v", batches[1])
				made++
			} else {
				require.ErrorIs(t, errs[1], store.ErrConflict)
				var want, got *store.Error
				require.True(t, errors.As(errs[0], &want) && errors.As(errs[1], &got))
				require.NotEmpty(t, got.Key)
			}
			require.Equal(t, contents(t, memory), contents(t, s), "%+v", batches[1])
			if random.IntN(8) == 0 { // else all keys exist soon
				for _, s := range stores {
					require.NoError(t, store.Delete(t.Context(), s, fmt.Sprint("k", keys[0]), store.Always))
				}
			}
		}
		require.Greater(t, made, 10)
	})
}

func contents(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for e, err := range s.List(t.Context(), "", "", true) {
		require.NoError(t, err)
		all[e.Key] = string(e.Value)
	}
	return all
}
