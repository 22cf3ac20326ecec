package store_test

import (
	"bytes"
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
	r, err := s.Put(bg, key, []byte(value), store.Always)
	require.NoError(t, err)
	return r
}

// scan returns the keys that a scan yields, and its error.
func scan(ctx context.Context, s store.Store, prefix, after string) (keys []string, err error) {
	for e, err := range s.Scan(ctx, prefix, after) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, e.Key)
	}
	return keys, nil
}

func TestMemoryConditions(t *testing.T) {
	for _, c := range []struct {
		name           string
		cond           func(stale, current store.Revision) store.Condition
		absent, exists error // for a put
	}{
		{"always", func(_, _ store.Revision) store.Condition { return store.Always }, nil, nil},
		{"if absent", func(_, _ store.Revision) store.Condition { return store.IfAbsent }, nil, store.ErrConflict},
		{"current", func(_, r store.Revision) store.Condition { return store.IfRevision(r) }, store.ErrConflict, nil},
		{"stale", func(r, _ store.Revision) store.Condition { return store.IfRevision(r) }, store.ErrConflict, store.ErrConflict},
		{"empty", func(_, _ store.Revision) store.Condition { return store.IfRevision("") }, store.ErrConflict, store.ErrConflict},
	} {
		for _, exists := range []bool{false, true} {
			for _, op := range []string{"put", "delete"} {
				t.Run(fmt.Sprintf("%s/exists %t/%s", c.name, exists, op), func(t *testing.T) {
					s := store.NewMemory()
					stale := put(t, s, "k", "old")
					current := put(t, s, "k", "now")
					if !exists {
						require.NoError(t, s.Delete(bg, "k", store.Always))
					}
					cond, want := c.cond(stale, current), c.absent
					if exists {
						want = c.exists
					}
					if op == "delete" && cond.Absent() {
						want = store.ErrInvalid
					}
					var err error
					var r store.Revision
					if op == "put" {
						r, err = s.Put(bg, "k", []byte("new"), cond)
					} else {
						err = s.Delete(bg, "k", cond)
					}
					require.ErrorIs(t, err, want)
					e, err := s.Get(bg, "k")
					switch {
					case want == nil && op == "put":
						require.NoError(t, err)
						require.Equal(t, store.Entry{Key: "k", Value: []byte("new"), Revision: r}, e)
						require.NotContains(t, []store.Revision{stale, current, ""}, r)
					case want == nil, !exists:
						require.ErrorIs(t, err, store.ErrNotFound)
					default:
						require.NoError(t, err)
						require.Equal(t, store.Entry{Key: "k", Value: []byte("now"), Revision: current}, e)
					}
				})
			}
		}
	}
}

func TestMemoryErrorsNameTheOperationAndChangeNothing(t *testing.T) {
	ended, cancel := context.WithCancel(bg)
	cancel()
	long := strings.Repeat("k", store.MaxKey+1)
	for _, c := range []struct {
		name   string
		ctx    context.Context
		key    string
		closed bool
		want   error
	}{
		{"empty key", bg, "", false, store.ErrInvalidKey},
		{"long key", bg, long, false, store.ErrInvalidKey},
		{"not UTF-8", bg, "\xff", false, store.ErrInvalidKey},
		{"not UTF-8, ended, closed", ended, "\xff", true, store.ErrInvalidKey},
		{"ended", ended, "a", false, context.Canceled},
		{"ended, closed", ended, "a", true, context.Canceled},
		{"closed", bg, "a", true, store.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.NewMemory()
			other := s.Open()
			r := put(t, s, "a", "value")
			if c.closed {
				require.NoError(t, s.Close())
			}
			_, get := s.Get(c.ctx, c.key)
			_, put := s.Put(c.ctx, c.key, []byte("secret"), store.Always)
			_, batch := s.Batch(c.ctx, []store.Write{{Key: c.key, Value: []byte("secret")}})
			for op, err := range map[string]error{
				"get": get, "put": put, "batch": batch, "delete": s.Delete(c.ctx, c.key, store.Always),
			} {
				require.ErrorIs(t, err, c.want)
				var e *store.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, store.Error{Store: "memory", Op: op, Key: c.key, Err: e.Err}, *e)
				require.NotContains(t, err.Error(), "secret")
			}
			if c.want != store.ErrInvalidKey {
				keys, err := scan(c.ctx, s, "", "")
				require.ErrorIs(t, err, c.want)
				require.Empty(t, keys)
				_, err = scan(c.ctx, s, "none", "")
				require.ErrorIs(t, err, c.want)
			}
			e, err := other.Get(bg, "a")
			require.NoError(t, err)
			require.Equal(t, store.Entry{Key: "a", Value: []byte("value"), Revision: r}, e)
			keys, err := scan(bg, other, "", "")
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, keys)
		})
	}
}

func TestMemoryCopiesValues(t *testing.T) {
	s := store.NewMemory()
	events := s.Watch(bg, "")
	second := s.Watch(bg, "")
	given := []byte("value")
	_, err := s.Put(bg, "a", given, store.Always)
	require.NoError(t, err)
	_, err = s.Batch(bg, []store.Write{{Key: "b", Value: given}})
	require.NoError(t, err)
	clear(given)
	for round := range 2 {
		for _, key := range []string{"a", "b"} {
			e, err := s.Get(bg, key)
			require.NoError(t, err)
			require.Equal(t, "value", string(e.Value), round)
			clear(e.Value)
		}
		for e, err := range s.Scan(bg, "", "") {
			require.NoError(t, err)
			require.Equal(t, "value", string(e.Value), round)
			clear(e.Value)
		}
		seen := 0
		for e, err := range []func(func(store.Event, error) bool){events, second}[round] {
			require.NoError(t, err)
			require.Equal(t, "value", string(e.Value), round)
			clear(e.Value)
			if seen++; seen == 2 {
				break
			}
		}
	}
}

func TestMemoryDistinguishesEmptyFromMissing(t *testing.T) {
	s := store.NewMemory()
	for _, value := range [][]byte{nil, {}} {
		_, err := s.Put(bg, "k", value, store.Always)
		require.NoError(t, err)
		e, err := s.Get(bg, "k")
		require.NoError(t, err)
		require.Equal(t, []byte{}, e.Value)
		_, err = s.Put(bg, "k", nil, store.IfAbsent)
		require.ErrorIs(t, err, store.ErrConflict)
	}
}

func TestMemoryBatchIsAllOrNothing(t *testing.T) {
	s := store.NewMemory()
	a, b := put(t, s, "a", "1"), put(t, s, "b", "1")
	before := dump(t, s)

	for _, c := range []struct {
		name   string
		writes []store.Write
		want   error
		key    string
	}{
		{"conflict of the last write", []store.Write{{Key: "c"}, {Key: "a", Delete: true}, {Key: "b", Cond: store.IfAbsent}}, store.ErrConflict, "b"},
		{"conflict of a delete", []store.Write{{Key: "a"}, {Key: "x", Delete: true, Cond: store.IfRevision(a)}}, store.ErrConflict, "x"},
		{"repeated key", []store.Write{{Key: "c"}, {Key: "d"}, {Key: "c", Delete: true}}, store.ErrInvalid, "c"},
		{"invalid key", []store.Write{{Key: "c"}, {Key: ""}}, store.ErrInvalidKey, ""},
		{"delete with IfAbsent", []store.Write{{Key: "c"}, {Key: "d", Delete: true, Cond: store.IfAbsent}}, store.ErrInvalid, "d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			revisions, err := s.Batch(bg, c.writes)
			require.ErrorIs(t, err, c.want)
			require.Empty(t, revisions)
			var e *store.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.key, e.Key)
			require.Equal(t, before, dump(t, s))
		})
	}

	revisions, err := s.Batch(bg, []store.Write{
		{Key: "c", Value: []byte("3"), Cond: store.IfAbsent},
		{Key: "a", Delete: true, Cond: store.IfRevision(a)},
		{Key: "b", Value: []byte("2"), Cond: store.IfRevision(b)},
		{Key: "none", Delete: true},
	})
	require.NoError(t, err)
	require.Len(t, revisions, 4)
	require.Equal(t, map[string]store.Entry{
		"b": {Key: "b", Value: []byte("2"), Revision: revisions[2]},
		"c": {Key: "c", Value: []byte("3"), Revision: revisions[0]},
	}, dump(t, s))
	require.Equal(t, []store.Revision{"", ""}, []store.Revision{revisions[1], revisions[3]})
	revisions, err = s.Batch(bg, nil)
	require.NoError(t, err)
	require.Empty(t, revisions)
}

func dump(t *testing.T, s store.Store) map[string]store.Entry {
	t.Helper()
	all := map[string]store.Entry{}
	for e, err := range s.Scan(bg, "", "") {
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
						require.NoError(t, s.Delete(bg, e, store.Always))
						delete(want, e)
					}
				}
			case n < 25:
				require.NoError(t, s.Delete(bg, k, store.Always))
				delete(want, k)
			default:
				want[k] = strconv.Itoa(step)
				put(t, s, k, want[k])
			}
			k = key()
			e, err := s.Get(bg, k)
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
				if _, err := s.Put(bg, k, nil, store.Always); err != nil {
					t.Error(err)
				}
				k = fmt.Sprintf("k%04d-%d", r.IntN(1000), r.IntN(3))
				if err := s.Delete(bg, k, store.Always); err != nil {
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
				for e, err := range s.Scan(ctx, "", "") {
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

func TestMemoryHoldsLargeValues(t *testing.T) {
	s, value := store.NewMemory(), bytes.Repeat([]byte{0, 0xff}, 4<<20)
	_, err := s.Put(bg, "k", value, store.Always)
	require.NoError(t, err)
	e, err := s.Get(bg, "k")
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, e.Value))
}
