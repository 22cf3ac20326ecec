package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var contextTests = []storeTest{
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

// storeCalls are the calls of a store, on data in which the keys there and other
// exist, with the key that an error must name. No call returns anything beside an
// error.
var storeCalls = []struct {
	name, key string
	make      func(ctx context.Context, s store.Store) error
}{
	{"Get", "there", func(ctx context.Context, s store.Store) error { return getNothing(ctx, s, "there") }},
	{"GetMany", "", func(ctx context.Context, s store.Store) error { return getNothing(ctx, s, "there", "missing", "other") }},
	{"Put", "there", func(ctx context.Context, s store.Store) error { return put(ctx, s, "there", store.Always) }},
	{"PutNew", "new", func(ctx context.Context, s store.Store) error { return put(ctx, s, "new", store.IfAbsent) }},
	{"Delete", "there", func(ctx context.Context, s store.Store) error { return store.Delete(ctx, s, "there", store.Always) }},
	{"Batch", "", func(ctx context.Context, s store.Store) error {
		_, err := s.Batch(ctx, []store.Write{{Key: "there", Value: []byte(secret)}, {Key: "other", Delete: true}, {Key: "new"}})
		return err
	}},
	{"List", "", func(ctx context.Context, s store.Store) error { return listNothing(ctx, s, true) }},
	{"ListKeys", "", func(ctx context.Context, s store.Store) error { return listNothing(ctx, s, false) }},
}

var errYielded = errors.New("something is returned beside the error")

func put(ctx context.Context, s store.Store, key string, cond store.Condition) error {
	_, err := store.Put(ctx, s, key, []byte(secret), cond)
	return err
}

func getNothing(ctx context.Context, s store.Store, keys ...string) error {
	entries, err := s.Get(ctx, keys...)
	if len(entries) > 0 {
		return errYielded
	}
	return err
}

func listNothing(ctx context.Context, s store.Store, values bool) (last error) {
	for _, err := range s.List(ctx, "", "", values) {
		if err == nil || last != nil {
			return errYielded
		}
		last = err
	}
	return last
}

// endedContextTests test that a call with an ended context returns its error and
// changes nothing.
func endedContextTests() (tests []storeTest) {
	for _, call := range storeCalls {
		tests = append(tests, storeTest{"Cancelled" + call.name, func(f *fixture) {
			f.put("there", "value", store.Always)
			f.put("other", "value", store.Always)
			ctx, cancel := context.WithCancel(f.ctx)
			cancel()
			f.requireRefused(context.Canceled, func() error { return call.make(ctx, f.s) })
			ctx, cancel = context.WithDeadline(f.ctx, time.Now().Add(-time.Hour))
			defer cancel()
			f.requireRefused(context.DeadlineExceeded, func() error { return call.make(ctx, f.s) })
		}})
	}
	return tests
}
