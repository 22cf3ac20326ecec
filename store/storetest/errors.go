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
		for _, sentinel := range []error{store.ErrNotFound, store.ErrConflict, store.ErrUnknownOutcome, store.ErrInvalid, store.ErrTooLarge,
			store.ErrClosed, context.Canceled} {
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
		value := []byte(secret)
		stale := f.put("there", secret, store.Always)
		f.put("there", secret, store.Always)
		cancelled, cancel := context.WithCancel(f.ctx)
		cancel()
		for _, call := range []struct {
			name, key string
			closed    bool
			err       func() error
		}{
			{"GetMissing", "missing", false, func() error { _, err := f.s.Get(f.ctx, "missing"); return err }},
			{"GetCancelled", "there", false, func() error { _, err := f.s.Get(cancelled, "there"); return err }},
			{"PutIfAbsent", "there", false, func() error { _, err := f.s.Put(f.ctx, "there", value, store.IfAbsent); return err }},
			{"PutStale", "there", false, func() error { _, err := f.s.Put(f.ctx, "there", value, store.IfRevision(stale)); return err }},
			{"PutMissing", "missing", false, func() error { _, err := f.s.Put(f.ctx, "missing", value, store.IfRevision(stale)); return err }},
			{"PutInvalid", "", false, func() error { _, err := f.s.Put(f.ctx, "", value, store.Always); return err }},
			{"PutCancelled", "there", false, func() error { _, err := f.s.Put(cancelled, "there", value, store.Always); return err }},
			{"DeleteStale", "there", false, func() error { return f.s.Delete(f.ctx, "there", store.IfRevision(stale)) }},
			{"DeleteIfAbsent", "there", false, func() error { return f.s.Delete(f.ctx, "there", store.IfAbsent) }},
			{"DeleteCancelled", "there", false, func() error { return f.s.Delete(cancelled, "there", store.Always) }},
			{"ScanCancelled", "", false, func() error { return scanError(cancelled, f.s) }},
			{"GetClosed", "there", true, func() error { _, err := f.s.Get(f.ctx, "there"); return err }},
			{"PutClosed", "there", true, func() error { _, err := f.s.Put(f.ctx, "there", value, store.Always); return err }},
			{"DeleteClosed", "there", true, func() error { return f.s.Delete(f.ctx, "there", store.Always) }},
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
	for _, err := range s.Scan(ctx, "", "") {
		if err != nil {
			return err
		}
	}
	return nil
}
