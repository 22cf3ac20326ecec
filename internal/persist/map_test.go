package persist

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hashes are the ways the tests hash a key: the real one, and ones under which many keys collide in
// all bits, in all but the last bits, or in all but the first.
var hashes = map[string]func(string) uint64{
	"maphash": func(key string) uint64 { return maphash.String(seed, key) },
	"one":     func(string) uint64 { return 0xfedcba9876543210 },
	"high":    func(key string) uint64 { return uint64(len(key))<<60 | 7 },
	"low":     func(key string) uint64 { return maphash.String(seed, key) & 0x63 },
	"sparse":  func(key string) uint64 { return maphash.String(seed, key) & 0x8000400020001001 },
}

func content[V any](t require.TestingT, m *Map[V]) map[string]V {
	got := map[string]V{}
	for key, v := range m.All() {
		require.NotContains(t, got, key, "All yields a key twice")
		got[key] = *v
	}
	return got
}

// checkShape fails unless every node but the root stands for at least two keys.
func checkShape(t require.TestingT, m *Map[int]) {
	var size func(n *node[int]) int
	size = func(n *node[int]) int {
		total := len(n.leaves)
		for i := range n.children {
			below := size(n.children[i].Load())
			require.GreaterOrEqual(t, below, 2, "a child that should have become a leaf")
			total += below
		}
		return total
	}
	if root := m.root.Load(); root != nil {
		require.Positive(t, size(root), "an empty root")
	}
}

func TestFillIsManySets(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			property.Check(t, func(t *rapid.T) {
				keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-f]{0,2}|[a-c]{3,5}|key-[0-9]{1,3}`), 0, 200, rapid.ID).Draw(t, "keys")
				model := map[string]int{}
				entries := make([]Entry[int], len(keys))
				for i, key := range keys {
					model[key] = i
					entries[i] = Entry[int]{Key: key, Value: &i, hash: hash(key)}
				}
				given := slices.Clone(entries)
				var m, frozen Map[int]
				_, ok := m.fill(1, entries)
				require.True(t, ok)
				require.Equal(t, model, content(t, &m))
				checkShape(t, &m)
				m.Share(&frozen)
				for i, key := range keys {
					require.Equal(t, i, *m.get(hash(key), key))
				}
				for i, key := range keys {
					m.set(2, hash, key, new(int))
					if i%2 == 0 {
						m.delete(2, hash(key), key)
					}
				}
				checkShape(t, &m)
				require.Len(t, content(t, &m), len(keys)/2)
				require.Equal(t, model, content(t, &frozen))

				if len(keys) > 0 {
					double := rapid.SampledFrom(given).Draw(t, "double")
					at := rapid.IntRange(0, len(given)).Draw(t, "at")
					var empty Map[int]
					key, ok := empty.fill(1, slices.Insert(given, at, double))
					require.False(t, ok)
					require.Equal(t, double.Key, key)
					require.Empty(t, content(t, &empty))
				}
			})
		})
	}
}

func TestFillOfOneKeyManyTimesIsRefusedAtOnce(t *testing.T) {
	var m Map[int]
	key, ok := m.Fill(1, slices.Repeat([]Entry[int]{{Key: "a", Value: new(int)}}, 1_000_000))
	require.False(t, ok)
	require.Equal(t, "a", key)
}

func TestMapIsABuiltinMap(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			property.Check(t, func(t *rapid.T) {
				type branch struct {
					m     Map[int]
					owner uint64
					model map[string]int
				}
				owners := uint64(1)
				branches := []*branch{{owner: owners, model: map[string]int{}}}
				any := rapid.Custom(func(t *rapid.T) *branch {
					return branches[rapid.IntRange(0, len(branches)-1).Draw(t, "branch")]
				})
				aKey := rapid.StringMatching(`[a-f]{0,2}|[a-c]{3,5}`)
				t.Repeat(map[string]func(*rapid.T){
					"set": func(t *rapid.T) {
						b, key, v := any.Draw(t, "b"), aKey.Draw(t, "key"), rapid.Int().Draw(t, "v")
						checkOld(t, b.model, key, b.m.set(b.owner, hash, key, &v))
						b.model[key] = v
					},
					"delete": func(t *rapid.T) {
						b, key := any.Draw(t, "b"), aKey.Draw(t, "key")
						checkOld(t, b.model, key, b.m.delete(b.owner, hash(key), key))
						delete(b.model, key)
						require.Nil(t, b.m.get(hash(key), key))
					},
					"clear": func(t *rapid.T) {
						b := any.Draw(t, "b")
						for key := range b.model {
							checkOld(t, b.model, key, b.m.delete(b.owner, hash(key), key))
						}
						require.Nil(t, b.m.root.Load())
						clear(b.model)
					},
					"share": func(t *rapid.T) {
						b, fork := any.Draw(t, "b"), &branch{}
						b.m.Share(&fork.m)
						b.owner, fork.owner = owners+1, owners+2
						owners += 2
						fork.model = maps.Clone(b.model)
						branches = append(branches, fork)
					},
					"": func(t *rapid.T) {
						for _, b := range branches {
							require.Empty(t, cmp.Diff(b.model, content(t, &b.m)))
							for key := range b.model {
								checkOld(t, b.model, key, b.m.get(hash(key), key))
							}
							checkShape(t, &b.m)
						}
					},
				})
			})
		})
	}
}

// checkOld fails unless old is what model has for key.
func checkOld(t *rapid.T, model map[string]int, key string, old *int) {
	v, ok := model[key]
	require.Equal(t, ok, old != nil, "presence of %q", key)
	if ok {
		require.Equal(t, v, *old, "value of %q", key)
	}
}

func TestZeroMap(t *testing.T) {
	var m, other Map[int]
	require.Nil(t, m.Get("a"))
	require.Nil(t, m.Delete(1, "a"))
	require.Empty(t, content(t, &m))
	m.Share(&other)
	one := 1
	require.Nil(t, other.Set(2, "a", &one))
	require.Same(t, &one, other.Get("a"))
	require.Nil(t, m.Get("a"))
	require.Same(t, &one, other.Delete(3, "a"))
}

func TestAllStopsEarly(t *testing.T) {
	m := filled(1000)
	for want := range 50 {
		seen := 0
		for range m.All() {
			if seen++; seen > want {
				break
			}
		}
		require.Equal(t, want+1, seen)
	}
}

func TestOwnedPathIsChangedInPlace(t *testing.T) {
	m := filled(1000)
	v := new(int)
	root := m.root.Load()
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Set(1, "key-7", v) }))
	require.Same(t, root, m.root.Load())
	require.NotNil(t, m.Delete(2, "key-8"))
	require.NotSame(t, root, m.root.Load(), "another owner copies")
	require.Nil(t, m.Delete(3, "absent"))
	root = m.root.Load()
	require.Nil(t, m.Delete(4, "absent"))
	require.Same(t, root, m.root.Load(), "deleting nothing copies nothing")
}

// TestReadersBesideWriters has one writer on each of two maps that share nodes, and readers on both.
// Keys that are only overwritten must never be missing, and values must only grow.
func TestReadersBesideWriters(t *testing.T) {
	const keys, rounds = 60, 300
	var trunk, branch Map[int]
	for i := range keys {
		trunk.Set(1, strconv.Itoa(i), new(int))
	}
	trunk.Share(&branch)
	var owners sync.Mutex
	last := uint64(1)
	next := func() uint64 {
		owners.Lock()
		defer owners.Unlock()
		last++
		return last
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for _, m := range []*Map[int]{&trunk, &branch} {
		writers.Go(func() {
			owner := next()
			for v := 1; v <= rounds; v++ {
				for i := range keys {
					value := v
					m.Set(owner, strconv.Itoa(i), &value)
					m.Set(owner, fmt.Sprint("passing-", i), &value)
				}
				var fork Map[int]
				m.Share(&fork)
				owner = next()
				fork.Set(next(), "0", new(int))
				for i := range keys {
					m.Delete(owner, fmt.Sprint("passing-", i))
				}
			}
		})
		for range 2 {
			readers.Go(func() {
				var seen [keys]int
				for {
					select {
					case <-stop:
						return
					default:
					}
					for i := range keys {
						v := m.Get(strconv.Itoa(i))
						if v == nil || *v < seen[i] {
							t.Errorf("key %d: got %v after %d", i, v, seen[i])
							return
						}
						seen[i] = *v
						m.Get(fmt.Sprint("passing-", i))
					}
				}
			})
		}
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	require.Len(t, content(t, &trunk), keys)
	for _, v := range content(t, &branch) {
		require.Equal(t, rounds, v)
	}
}

func filled(n int) *Map[int] {
	m := &Map[int]{}
	for i := range n {
		m.Set(1, fmt.Sprint("key-", i), &i)
	}
	return m
}
