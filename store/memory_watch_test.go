package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// next returns the first n events in text form.
func next(t *testing.T, events func(func(store.Event, error) bool), n int) (texts []string) {
	t.Helper()
	for e, err := range events {
		require.NoError(t, err)
		text := e.Key + "=" + string(e.Value)
		if e.Deleted {
			require.Equal(t, store.Entry{Key: e.Key}, e.Entry)
			text = e.Key + " deleted"
		}
		if texts = append(texts, text); len(texts) == n {
			break
		}
	}
	return texts
}

func TestMemoryWatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		prefix string
		do     func(s *store.Memory)
		want   []string
	}{
		{"all kinds of writes, in order", "", func(s *store.Memory) {
			put(t, s, "a", "1")
			_, _ = s.Batch(bg, []store.Write{{Key: "c", Value: []byte("2")}, {Key: "old", Delete: true}})
			put(t, s, "b", "3")
		}, []string{"a=1", "c=2", "old deleted", "b=3"}},
		{"only the last change of a key", "", func(s *store.Memory) {
			put(t, s, "a", "1")
			put(t, s, "b", "2")
			put(t, s, "a", "3")
			_ = store.Delete(bg, s, "b", store.Always)
		}, []string{"a=3", "b deleted"}},
		{"only keys with the prefix", "a%", func(s *store.Memory) {
			put(t, s, "a", "1")
			put(t, s, "ab", "1")
			put(t, s, "a%", "2")
			put(t, s, "A%", "1")
			put(t, s, "a%b", "3")
		}, []string{"a%=2", "a%b=3"}},
		{"no writes that were refused", "", func(s *store.Memory) {
			_, _ = store.Put(bg, s, "old", nil, store.IfAbsent)
			_ = store.Delete(bg, s, "none", store.Always)
			_, _ = s.Batch(bg, []store.Write{{Key: "a"}, {Key: "old", Cond: store.IfAbsent}})
			put(t, s, "z", "1")
		}, []string{"z=1"}},
		{"writes of other handles", "", func(s *store.Memory) {
			put(t, s.Open(), "a", "1")
		}, []string{"a=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.NewMemory()
			put(t, s, "old", "")
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			events := s.Watch(ctx, c.prefix) // observes changes from here on
			c.do(s)
			require.Equal(t, c.want, next(t, events, len(c.want)))
		})
	}
}

func TestMemoryWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		waiting := s.Watch(ctx, "")
		start := time.Now()
		require.Empty(t, next(t, waiting, 1), "ends with ctx, without an error")
		require.Equal(t, time.Second, time.Since(start))

		closed := s.Watch(bg, "")
		other := s.Open().Watch(bg, "")
		go func() {
			time.Sleep(time.Second)
			_ = s.Close()
			_, _ = store.Put(bg, s.Open(), "k", nil, store.Always)
		}()
		for _, events := range []func(func(store.Event, error) bool){closed, s.Watch(bg, "")} {
			var errs []error
			for e, err := range events {
				require.Zero(t, e)
				errs = append(errs, err)
			}
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], store.ErrClosed)
			require.EqualError(t, errs[0], "store: memory: watch: store: closed")
		}
		require.Equal(t, []string{"k="}, next(t, other, 1), "the watch of another handle continues")
		for _, err := range other {
			require.ErrorIs(t, err, store.ErrInvalid, "a watch can be ranged over once")
		}
	})
}

func TestMemoryWatchEndsBetweenEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *store.Memory, cancel func())
		want error
	}{
		{"ctx", func(_ *store.Memory, cancel func()) { cancel() }, nil},
		{"close", func(s *store.Memory, _ func()) { _ = s.Close() }, store.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.NewMemory()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			events := s.Watch(ctx, "")
			put(t, s, "a", "")
			put(t, s, "b", "")
			var keys []string
			var last error
			for e, err := range events {
				if last = err; err == nil {
					keys = append(keys, e.Key)
					c.end(s, cancel)
				}
			}
			require.Equal(t, []string{"a"}, keys)
			require.ErrorIs(t, last, c.want)
		})
	}
}

// TestMemoryWatchSkipsReplacedChanges checks that a slow loop does not block writers
// and then sees the last value of each key.
func TestMemoryWatchSkipsReplacedChanges(t *testing.T) {
	s := store.NewMemory()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	slow := s.Watch(ctx, "")
	put(t, s, "first", "")
	last, n := map[string]string{}, 0
	for e, err := range slow {
		require.NoError(t, err)
		if e.Key == "first" {
			for i := range 10_000 { // while the loop body runs
				put(t, s, fmt.Sprint("k", i%10), strconv.Itoa(i))
			}
			continue
		}
		n++
		last[e.Key] = string(e.Value)
		if len(last) == 10 {
			break
		}
	}
	require.Equal(t, 10, n)
	for i := range 10 {
		require.Equal(t, strconv.Itoa(9990+i), last[fmt.Sprint("k", i)])
	}
}

// TestMemoryWatchConverges checks that concurrent watches end with the stored values
// and never see a key go back to an older value.
func TestMemoryWatchConverges(t *testing.T) {
	s := store.NewMemory()
	var watches, writers sync.WaitGroup
	seen := make([]map[string]string, 4)
	for i := range seen {
		seen[i] = map[string]string{}
		events := s.Watch(bg, "")
		watches.Go(func() {
			for e, err := range events {
				if err != nil {
					t.Error(err)
					return
				}
				if e.Key == "end" {
					return
				}
				if before, now := seen[i][e.Key], string(e.Value); len(now) < len(before) || len(now) == len(before) && now <= before {
					t.Errorf("%s: %s after %s", e.Key, now, before)
				}
				seen[i][e.Key] = string(e.Value)
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 2000 {
				if _, err := store.Put(bg, s, fmt.Sprint(w, "-", rand.IntN(5)), []byte(strconv.Itoa(i)), store.Always); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stored := map[string]string{}
	for key, e := range dump(t, s) {
		stored[key] = string(e.Value)
	}
	put(t, s, "end", "")
	watches.Wait()
	for i := range seen {
		require.Equal(t, stored, seen[i])
	}
}
