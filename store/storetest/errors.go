package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// secret is a value that no error may contain.
const secret = "hunter2"

var errorTests = []storeTest{
	{"NameStoreAndKey", forEachError(func(f *fixture, key string, err error) {
		var named *store.Error
		require.ErrorAs(f, err, &named)
		require.NotEmpty(f, named.Store)
		require.NotEmpty(f, named.Op)
		require.Equal(f, key, named.Key)
		require.Contains(f, err.Error(), named.Store)
		require.Contains(f, err.Error(), key)
	})},
	{"ContainNoValue", forEachError(func(f *fixture, _ string, err error) {
		for ; err != nil; err = errors.Unwrap(err) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
				require.NotContains(f, fmt.Sprintf(verb, err), secret)
			}
		}
	})},
	{"MatchOneSentinel", forEachError(func(f *fixture, _ string, err error) {
		var matched []error
		for _, sentinel := range []error{
			store.ErrNotFound, store.ErrConflict, store.ErrUnknownOutcome, store.ErrInvalid,
			store.ErrTooLarge, store.ErrClosed, context.Canceled,
		} {
			if errors.Is(err, sentinel) {
				matched = append(matched, sentinel)
			}
		}
		require.Len(f, matched, 1, "%v", err)
	})},
}

// forEachError tests the errors of all methods. The key of an error may be "".
func forEachError(check func(f *fixture, key string, err error)) func(f *fixture) {
	return func(f *fixture) {
		stale := store.IfRevision(f.put("there", secret, store.Always))
		f.put("there", secret, store.Always)
		cancelled, cancel := context.WithCancel(f.ctx)
		cancel()
		get := func(ctx context.Context, key string) error {
			_, err := store.Get(ctx, f.s, key)
			return err
		}
		put := func(ctx context.Context, key string, cond store.Condition) error {
			_, err := store.Put(ctx, f.s, key, []byte(secret), cond)
			return err
		}
		for _, call := range []struct {
			name, key string
			closed    bool
			err       func() error
		}{
			{"GetCancelled", "there", false, func() error { return get(cancelled, "there") }},
			{"PutIfAbsent", "there", false, func() error { return put(f.ctx, "there", store.IfAbsent) }},
			{"PutStale", "there", false, func() error { return put(f.ctx, "there", stale) }},
			{"PutMissing", "missing", false, func() error { return put(f.ctx, "missing", stale) }},
			{"PutInvalid", "", false, func() error { return put(f.ctx, "", store.Always) }},
			{"PutCancelled", "there", false, func() error { return put(cancelled, "there", store.Always) }},
			{"DeleteStale", "there", false, func() error { return store.Delete(f.ctx, f.s, "there", stale) }},
			{"DeleteIfAbsent", "there", false, func() error { return store.Delete(f.ctx, f.s, "there", store.IfAbsent) }},
			{"DeleteCancelled", "there", false, func() error { return store.Delete(cancelled, f.s, "there", store.Always) }},
			{"ScanCancelled", "", false, func() error { return scanError(cancelled, f.s) }},
			{"GetClosed", "there", true, func() error { return get(f.ctx, "there") }},
			{"PutClosed", "there", true, func() error { return put(f.ctx, "there", store.Always) }},
			{"DeleteClosed", "there", true, func() error { return store.Delete(f.ctx, f.s, "there", store.Always) }},
			{"ScanClosed", "", true, func() error { return scanError(f.ctx, f.s) }},
		} {
			if call.closed {
				require.NoError(f, f.s.Close())
			}
			err := call.err()
			require.Error(f, err, call.name)
			f.subtest(call.name, func(f *fixture) { check(f, call.key, err) })
		}
	}
}

// scanError returns the error that a scan yields.
func scanError(ctx context.Context, s store.Store) error {
	for _, err := range s.List(ctx, "", "", true) {
		if err != nil {
			return err
		}
	}
	return nil
}
