package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var contextTests = []storeTest{
	{"CancelledGet", endedContext(func(f *fixture, ctx context.Context) error {
		entry, err := store.Get(ctx, f.s, "key")
		require.Zero(f, entry)
		return err
	})},
	{"CancelledPut", endedContext(func(f *fixture, ctx context.Context) error {
		_, err := store.Put(ctx, f.s, "key", []byte("lost"), store.Always)
		return err
	})},
	{"CancelledPutOfNewKey", endedContext(func(f *fixture, ctx context.Context) error {
		_, err := store.Put(ctx, f.s, "new", []byte("lost"), store.IfAbsent)
		f.requireMissing("new")
		return err
	})},
	{"CancelledDelete", endedContext(func(f *fixture, ctx context.Context) error {
		return store.Delete(ctx, f.s, "key", store.Always)
	})},
	{"CancelledScan", endedContext(func(f *fixture, ctx context.Context) error {
		var last error
		for entry, err := range f.s.List(ctx, "", "", true) {
			require.Error(f, err, "%q is yielded", entry.Key)
			require.NoError(f, last, "Scan yields after an error")
			last = err
		}
		return last
	})},
	{"DeadlineWhileWriting", func(f *fixture) {
		value := randomBytes(300 << 10)
		current, exists := "", false // the last write that was certainly made
		for i := range 40 {
			key := "key"
			value := append([]byte(fmt.Sprintf("%02d", i)), value...)
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*5*time.Microsecond)
			var err error
			f.mustEnd("a put whose context has a deadline", func() { _, err = store.Put(ctx, f.s, key, value, store.Always) })
			cancel()
			entry, lookErr := store.Get(f.ctx, f.s, key)
			if errors.Is(lookErr, store.ErrNotFound) {
				require.False(f, exists, "the entry is missing")
			} else {
				require.NoError(f, lookErr)
				require.Len(f, entry.Value, len(value), "part of a value")
			}
			is := ""
			if len(entry.Value) > 0 {
				is = string(entry.Value[:2])
			}
			switch {
			case err == nil:
				require.Equal(f, string(value[:2]), is, "the write was acknowledged")
			case errors.Is(err, store.ErrUnknownOutcome):
				// The write may still be made: this key proves nothing from now
				// on.
				require.ErrorIs(f, err, context.DeadlineExceeded)
				require.NoError(f, store.Delete(f.ctx, f.s, key, store.Always))
				return
			default:
				require.ErrorIs(f, err, context.DeadlineExceeded)
				require.Equal(f, current, is, "the error says that the write was not made")
			}
			current, exists = is, is != ""
		}
	}},
	{"DeadlineWhileScanning", func(f *fixture) {
		for i := range 5 {
			_, err := store.Put(f.ctx, f.s, fmt.Sprint(i), randomBytes(100<<10), store.Always)
			require.NoError(f, err)
		}
		for i := range 20 {
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*5*time.Microsecond)
			var last error
			n := 0
			f.mustEnd("a scan whose context has a deadline", func() {
				for _, err := range f.s.List(ctx, "", "", true) {
					if last = err; err == nil {
						n++
					}
				}
			})
			cancel()
			if last == nil {
				require.Equal(f, 5, n, "a scan that was cut short yields no error")
			} else {
				require.ErrorIs(f, last, context.DeadlineExceeded)
			}
		}
	}},
	{"StoreRemainsUsable", func(f *fixture) {
		for i := range 50 {
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i)*20*time.Microsecond)
			_, _ = store.Get(ctx, f.s, "key")
			_, _ = store.Put(ctx, f.s, "other", []byte("value"), store.Always)
			for range f.s.List(ctx, "", "", true) {
			}
			cancel()
		}
		revision := f.put("key", "value", store.IfAbsent)
		f.requireEntry("key", "value", revision)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
	}},
}

// endedContext tests that a call with an ended context returns its error and
// changes nothing.
func endedContext(call func(f *fixture, ctx context.Context) error) func(f *fixture) {
	return func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		f.requireRefused(call(f, ctx), context.Canceled, "key", "value", revision)
		ctx, cancel = context.WithDeadline(f.ctx, time.Now().Add(-time.Hour))
		defer cancel()
		f.requireRefused(call(f, ctx), context.DeadlineExceeded, "key", "value", revision)
	}
}
