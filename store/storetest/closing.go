package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var closeTests = []storeTest{
	{"CallsAfterClose", func(f *fixture) {
		f.put("key", "value", store.Always)
		require.NoError(f, f.s.Close())
		for _, call := range storeCalls {
			err := call.make(f.ctx, f.s)
			require.ErrorIs(f, err, store.ErrClosed, call.name)
			require.NotErrorIs(f, err, store.ErrUnknownOutcome, call.name)
		}
		if w, ok := store.As[store.Watcher](f.s); ok {
			var err error
			f.mustEnd("Watch after Close", func() {
				for _, err = range w.Watch(f.ctx, "") {
				}
			})
			require.ErrorIs(f, err, store.ErrClosed, "Watch")
		}
		require.NotPanics(f, func() { f.s.Durability() })
	}},
	{"Twice", func(f *fixture) {
		require.NoError(f, f.s.Close())
		require.NoError(f, f.s.Close())
	}},
	{"DataRemains", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		require.NoError(f, f.s.Close())
		f.s = f.open()
		f.requireEntry("key", "value", revision)
	}},
	{"OtherHandlesRemainOpen", func(f *fixture) {
		other := f.open()
		require.NoError(f, f.s.Close())
		f.s = other
		f.requireEntry("key", "value", f.put("key", "value", store.Always))
	}},
	{"DuringWrites", func(f *fixture) {
		const workers = 4
		last := make([]int, workers) // the last acknowledged write
		var closed atomic.Bool
		time.AfterFunc(20*time.Millisecond, func() {
			_ = f.s.Close()
			closed.Store(true)
		})
		f.runWorkers(workers, func(worker int) error {
			for i := 1; ; i++ {
				late := closed.Load()
				_, err := store.Put(f.ctx, f.s, fmt.Sprint(worker), []byte(fmt.Sprint(i)), store.Always)
				switch {
				case err == nil && late:
					return errors.New("a write succeeds after Close")
				case err == nil:
					last[worker] = i
				case errors.Is(err, store.ErrUnknownOutcome):
					last[worker] = -1
					return nil
				case errors.Is(err, store.ErrClosed):
					return nil
				default:
					return err
				}
			}
		})
		f.s = f.open()
		for worker, i := range last {
			if i <= 0 {
				continue
			}
			entry, err := store.Get(f.ctx, f.s, fmt.Sprint(worker))
			require.NoError(f, err)
			require.Equal(f, fmt.Sprint(i), string(entry.Value), "the last acknowledged write")
		}
	}},
	{"DuringScan", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		f.mustEnd("a scan while the store is closed", func() {
			for _, err := range f.s.List(f.ctx, "", "", true) {
				if err == nil {
					_ = f.s.Close()
				}
			}
		})
	}},
	{"DuringWatch", forWatcher(func(f *fixture, w store.Watcher) {
		events := w.Watch(f.ctx, "")
		time.AfterFunc(20*time.Millisecond, func() { _ = f.s.Close() })
		f.mustEnd("a watch while the store is closed", func() {
			for range events {
			}
		})
	})},
}

var durabilityTests = []storeTest{
	{"IsOneOfTheConstants", func(f *fixture) {
		all := []store.Durability{store.DurabilityProcess, store.DurabilityServer, store.DurabilityPower, store.DurabilityFailover}
		require.Contains(f, all, f.s.Durability())
		require.Equal(f, f.s.Durability(), f.open().Durability())
	}},
}
