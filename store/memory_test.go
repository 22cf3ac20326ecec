package store_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var bg = context.Background()

func put(t *testing.T, s store.Store, key, value string) store.Revision {
	t.Helper()
	r, err := store.Put(bg, s, key, []byte(value), store.Always)
	require.NoError(t, err)
	return r
}

// scan returns the keys that a scan yields, and its error.
func scan(ctx context.Context, s store.Store, prefix, after string) (keys []string, err error) {
	for e, err := range s.List(ctx, prefix, after, true) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, e.Key)
	}
	return keys, nil
}

func dump(t *testing.T, s store.Store) map[string]store.Entry {
	t.Helper()
	all := map[string]store.Entry{}
	for e, err := range s.List(bg, "", "", true) {
		require.NoError(t, err)
		all[e.Key] = e
	}
	return all
}

func TestMemoryHandlesShareEntriesAndCloseSeparately(t *testing.T) {
	first := store.NewMemory()
	second := first.Open()
	put(t, first, "k", "v")
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	put(t, second, "l", "w")
	require.NoError(t, second.Close())
	keys, err := scan(bg, first.Open(), "", "")
	require.NoError(t, err)
	require.Equal(t, []string{"k", "l"}, keys)
	require.Equal(t, store.DurabilityProcess, first.Durability())
}

func TestMemoryDistinguishesEmptyFromMissing(t *testing.T) {
	s := store.NewMemory()
	for _, value := range [][]byte{nil, {}} {
		_, err := store.Put(bg, s, "k", value, store.Always)
		require.NoError(t, err)
		e, err := store.Get(bg, s, "k")
		require.NoError(t, err)
		require.Equal(t, []byte{}, e.Value)
		_, err = store.Put(bg, s, "k", nil, store.IfAbsent)
		require.ErrorIs(t, err, store.ErrConflict)
	}
}

// TestMemoryAgreesWithAMap compares random writes and scans with a map. The keys
// fill many blocks.
func TestMemoryAgreesWithAMap(t *testing.T) {
	for seed := range uint64(effort.Runs(1)) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, want := store.NewMemory(), map[string]string{}
		key := func() string { return strconv.FormatInt(r.Int64N(3000), 1+1+r.IntN(35)) }
		for step := range 20_000 {
			k := key()
			switch n := r.IntN(100); {
			case n == 0: // empty whole blocks
				for _, e := range slices.Sorted(maps.Keys(want)) {
					if strings.HasPrefix(e, k[:1]) {
						require.NoError(t, store.Delete(bg, s, e, store.Always))
						delete(want, e)
					}
				}
			case n < 25:
				require.NoError(t, store.Delete(bg, s, k, store.Always))
				delete(want, k)
			default:
				want[k] = strconv.Itoa(step)
				put(t, s, k, want[k])
			}
			k = key()
			e, err := store.Get(bg, s, k)
			value, exists := want[k]
			require.Equal(t, exists, err == nil, k)
			require.Equal(t, value, string(e.Value), k)
			if step%500 == 0 {
				prefix, after := key(), key()
				prefix = prefix[:r.IntN(len(prefix)+1)]
				if r.IntN(3) == 0 {
					after = ""
				}
				var keys []string
				for _, k := range slices.Sorted(maps.Keys(want)) {
					if strings.HasPrefix(k, prefix) && k > after {
						keys = append(keys, k)
					}
				}
				got, err := scan(bg, s, prefix, after)
				require.NoError(t, err)
				require.Equal(t, keys, got, "seed %d, step %d, prefix %q, after %q", seed, step, prefix, after)
			}
		}
	}
}

// TestMemoryScanYieldsStableKeysOnce scans while writers create and delete the keys
// between the stable ones.
func TestMemoryScanYieldsStableKeysOnce(t *testing.T) {
	s := store.NewMemory()
	var stable []string
	for i := range 1000 {
		stable = append(stable, fmt.Sprintf("k%04d", i))
		put(t, s, stable[i], "")
	}
	ctx, cancel := context.WithCancel(bg)
	var wg sync.WaitGroup
	for w := range uint64(2) {
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(w, 1)); ctx.Err() == nil; {
				k := fmt.Sprintf("k%04d-%d", r.IntN(1000), r.IntN(3))
				if _, err := store.Put(bg, s, k, nil, store.Always); err != nil {
					t.Error(err)
				}
				k = fmt.Sprintf("k%04d-%d", r.IntN(1000), r.IntN(3))
				if err := store.Delete(bg, s, k, store.Always); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		keys, err := scan(bg, s, "k", "")
		require.NoError(t, err)
		require.True(t, slices.IsSorted(keys))
		require.Equal(t, len(keys), len(slices.Compact(slices.Clone(keys))))
		require.Equal(t, stable, slices.DeleteFunc(keys, func(k string) bool { return len(k) > len("k0000") }))
	}
	cancel()
	wg.Wait()
}

func TestMemoryScanEnds(t *testing.T) {
	full := store.NewMemory()
	for i := range 1000 {
		put(t, full, strconv.Itoa(i), "")
	}
	for _, c := range []struct {
		name string
		want error
	}{{"break", nil}, {"ctx", context.Canceled}, {"close", store.ErrClosed}} {
		for _, at := range []int{1, 256, 300} {
			t.Run(fmt.Sprintf("%s after %d", c.name, at), func(t *testing.T) {
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				s, seen, last := full.Open(), 0, error(nil)
				for e, err := range s.List(ctx, "", "", true) {
					if last = err; err != nil {
						require.Zero(t, e)
						continue
					}
					if seen++; seen < at {
						continue
					}
					switch c.name {
					case "ctx":
						cancel()
						continue
					case "close":
						require.NoError(t, s.Close())
						continue
					}
					break
				}
				require.Equal(t, at, seen)
				require.ErrorIs(t, last, c.want)
			})
		}
	}
}
