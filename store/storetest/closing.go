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
			for _, err = range w.Watch(f.ctx, "") {
			}
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
		written, read := f.s, f.open()
		var closed atomic.Bool
		time.AfterFunc(20*time.Millisecond, func() {
			_ = written.Close()
			closed.Store(true)
		})
		f.runWorkers(4, func(worker int) error {
			key := fmt.Sprint(worker)
			for i, last := 1, ""; ; i++ {
				late := closed.Load()
				_, err := store.Put(f.ctx, written, key, []byte(fmt.Sprint(i)), store.Always)
				switch {
				case err == nil && late:
					return errors.New("a write succeeds after Close")
				case err == nil:
					last = fmt.Sprint(i)
				case errors.Is(err, store.ErrUnknownOutcome):
					return nil
				case errors.Is(err, store.ErrClosed):
					entries, err := read.Get(f.ctx, key)
					if err == nil && string(entries[0].Value) != last {
						err = fmt.Errorf("%q was acknowledged last, but %q is there", last, entries[0].Value)
					}
					return err
				default:
					return err
				}
			}
		})
	}},
	{"DuringList", func(f *fixture) {
		f.putKeys([]string{"a", "b", "c"})
		for _, err := range f.s.List(f.ctx, "", "", true) {
			if err == nil {
				_ = f.s.Close()
			}
		}
	}},
	{"DuringWatch", func(f *fixture) {
		events := f.watcher().Watch(f.ctx, "")
		time.AfterFunc(20*time.Millisecond, func() { _ = f.s.Close() })
		for range events {
		}
	}},
}

var durabilityTests = []storeTest{
	{"IsOneOfTheConstants", func(f *fixture) {
		all := []store.Durability{
			store.DurabilityProcess, store.DurabilityServer, store.DurabilityPower, store.DurabilityFailover,
		}
		require.Contains(f, all, f.s.Durability())
		require.Equal(f, f.s.Durability(), f.open().Durability())
	}},
}
