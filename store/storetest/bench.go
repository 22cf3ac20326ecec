package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state/store"
)

// Bench measures a store: reads and writes of one key; compare-and-set by one
// writer, by sixteen writers of one key and by sixteen writers with a key each;
// and scans. A compare-and-set that conflicts is retried and counts once;
// losses/op is the number of conflicts. The metric p50-ns is the median. Bench
// calls open once for each benchmark, deletes the entries that it wrote and
// closes the store.
func Bench(b *testing.B, open func() store.Store) {
	for _, bench := range []struct {
		name string
		run  func(*meter)
	}{
		{"get", (*meter).get},
		{"put-1KB", func(m *meter) { m.put(1 << 10) }},
		{"put-300KB", func(m *meter) { m.put(300 << 10) }},
		{"put-1KB-16", func(m *meter) { m.cas(16, 16) }},
		{"cas-1", func(m *meter) { m.cas(1, 1) }},
		{"cas-16", func(m *meter) { m.cas(16, 1) }},
		{"scan-10000", func(m *meter) { m.scan(10_000) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			m := &meter{b, b.Context(), open(), newPrefix("bench")}
			bench.run(m)
			b.StopTimer()
			m.clean()
		})
	}
}

// meter is one benchmark.
type meter struct {
	*testing.B
	ctx    context.Context
	s      store.Store
	prefix string
}

func (m *meter) key(i int) string { return fmt.Sprintf("%s%06d", m.prefix, i) }

func (m *meter) clean() {
	var writes []store.Write
	for e, err := range m.s.List(m.ctx, m.prefix, "", true) {
		m.must(err)
		writes = append(writes, store.Write{Key: e.Key, Delete: true})
	}
	m.write(writes)
	m.must(m.s.Close())
}

func (m *meter) must(err error) {
	if err != nil {
		m.Helper()
		m.Fatal(err)
	}
}

func (m *meter) get() {
	_, err := store.Put(m.ctx, m.s, m.key(0), make([]byte, 1<<10), store.Always)
	m.must(err)
	m.each(func() error {
		_, err := store.Get(m.ctx, m.s, m.key(0))
		return err
	})
}

func (m *meter) put(size int) {
	value := make([]byte, size)
	m.SetBytes(int64(size))
	m.each(func() error {
		_, err := store.Put(m.ctx, m.s, m.key(0), value, store.Always)
		return err
	})
}

// each measures an operation and reports its median.
func (m *meter) each(run func() error) {
	var times []time.Duration
	for m.Loop() {
		began := time.Now()
		m.must(run())
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	m.ReportMetric(float64(times[len(times)/2]), "p50-ns")
}

// cas measures writers that share keys.
func (m *meter) cas(writers, keys int) {
	var left, losses atomic.Int64
	left.Store(int64(m.N))
	errs := make([]error, writers)
	m.ResetTimer()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			var cond store.Condition
			value := make([]byte, 1<<10)
			for left.Add(-1) >= 0 && errs[i] == nil {
				var lost int64
				cond, lost, errs[i] = m.replace(m.key(i%keys), value, cond)
				losses.Add(lost)
			}
		})
	}
	wg.Wait()
	m.must(errors.Join(errs...))
	m.ReportMetric(float64(losses.Load())/float64(m.N), "losses/op")
}

// replace writes a value by compare-and-set and returns the condition of the
// next write. After a conflict, it reads the key and tries again.
func (m *meter) replace(key string, value []byte, cond store.Condition) (store.Condition, int64, error) {
	for lost := int64(0); ; lost++ {
		if cond == store.Always || lost > 0 {
			e, err := store.Get(m.ctx, m.s, key)
			switch {
			case err == nil:
				cond = store.IfRevision(e.Revision)
			case errors.Is(err, store.ErrNotFound):
				cond = store.IfAbsent
			default:
				return cond, lost, err
			}
		}
		r, err := store.Put(m.ctx, m.s, key, value, cond)
		if !errors.Is(err, store.ErrConflict) {
			return store.IfRevision(r), lost, err
		}
	}
}

func (m *meter) scan(n int) {
	m.fill(n)
	m.each(func() error {
		found := 0
		for _, err := range m.s.List(m.ctx, m.prefix, "", true) {
			if err != nil {
				return err
			}
			found++
		}
		if found != n {
			return fmt.Errorf("the scan yielded %d entries of %d", found, n)
		}
		return nil
	})
}

// fill writes entries of 100 B.
func (m *meter) fill(n int) {
	writes := make([]store.Write, n)
	for i := range writes {
		writes[i] = store.Write{Key: m.key(i), Value: make([]byte, 100)}
	}
	m.write(writes)
}

// write makes writes that are not measured.
func (m *meter) write(writes []store.Write) {
	for some := range slices.Chunk(writes, 100) {
		_, err := m.s.Batch(m.ctx, some)
		m.must(err)
	}
}
