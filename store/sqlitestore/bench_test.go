//go:build linux

package sqlitestore_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// BenchmarkGoal measures the speed goals of this package.
func BenchmarkGoal(b *testing.B) {
	b.Run("sqlite-put", func(b *testing.B) { b.Run("subject", putAgainstSync) })
	b.Run("sqlite-writers", func(b *testing.B) { b.Run("subject", putsAgainstSyncs) })
}

// appender appends to a file and syncs it: the minimum cost of a durable write.
type appender struct {
	mu sync.Mutex
	f  *os.File
}

func newAppender(b *testing.B) *appender {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	require.NoError(b, err)
	b.Cleanup(func() { _ = f.Close() })
	return &appender{f: f}
}

func (a *appender) append(value []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.f.Write(value); err != nil {
		return err
	}
	return syscall.Fdatasync(int(a.f.Fd()))
}

// putAgainstSync measures the medians of a Put of 1 KB and of an append of 1 KB with a
// sync, in turns, because the speed of a disk varies from second to second. The keys
// exist before, as those of most sessions do.
func putAgainstSync(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "state.db"))
	a := newAppender(b)
	value := make([]byte, 1<<10)
	var puts, syncs []time.Duration
	const keys = 100
	var writes []store.Write
	for i := range keys {
		writes = append(writes, store.Write{Key: "key" + strconv.Itoa(i), Value: value})
	}
	_, err := s.Batch(b.Context(), writes)
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		_, err := store.Put(b.Context(), s, writes[i%keys].Key, value, store.Always)
		puts = append(puts, time.Since(start))
		require.NoError(b, err)
		start = time.Now()
		err = a.append(value)
		syncs = append(syncs, time.Since(start))
		require.NoError(b, err)
	}
	put, sync := median(puts), median(syncs)
	b.ReportMetric(float64(put), "put-p50-ns")
	b.ReportMetric(float64(sync), "sync-p50-ns")
	b.ReportMetric(float64(put)/float64(sync), "put/sync")
}

// putsAgainstSyncs measures the time of 16 writers that put 1 KB and of 16 writers
// that append 1 KB with a sync each, in turns.
func putsAgainstSyncs(b *testing.B) {
	const writers, each = 16, 20
	s := open(b, filepath.Join(b.TempDir(), "state.db"))
	a := newAppender(b)
	value := make([]byte, 1<<10)
	together := func(write func(key string) error) time.Duration {
		var wg sync.WaitGroup
		start := time.Now()
		for w := range writers {
			wg.Go(func() {
				for range each {
					if err := write("key" + strconv.Itoa(w)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	var puts, syncs time.Duration
	n := 0.0
	for b.Loop() {
		puts += together(func(key string) error {
			_, err := store.Put(b.Context(), s, key, value, store.Always)
			return err
		})
		syncs += together(func(string) error { return a.append(value) })
		n += writers * each
	}
	b.ReportMetric(n/puts.Seconds(), "puts/s")
	b.ReportMetric(n/syncs.Seconds(), "syncs/s")
	b.ReportMetric(float64(syncs)/float64(puts), "puts/syncs")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
