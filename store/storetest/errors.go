package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
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
		require.Equal(f, fault.IsFinal(matched[0]), fault.IsFinal(err), "%v: it does not wrap what it matches", err)
	})},
}

// forEachError tests the errors of all methods. The key of an error may be "".
func forEachError(check func(f *fixture, key string, err error)) func(f *fixture) {
	return func(f *fixture) {
		stale := store.IfRevision(f.put("there", secret, store.Always))
		f.put("there", secret, store.Always)
		type failure struct {
			name, key string
			err       error
		}
		failures := []failure{
			{"PutIfAbsent", "there", put(f.ctx, f.s, "there", store.IfAbsent)},
			{"PutStale", "there", put(f.ctx, f.s, "there", stale)},
			{"PutMissing", "missing", put(f.ctx, f.s, "missing", stale)},
			{"PutInvalid", "", put(f.ctx, f.s, "", store.Always)},
			{"DeleteStale", "there", store.Delete(f.ctx, f.s, "there", stale)},
			{"DeleteIfAbsent", "there", store.Delete(f.ctx, f.s, "there", store.IfAbsent)},
		}
		cancelled, cancel := context.WithCancel(f.ctx)
		cancel()
		for _, call := range storeCalls {
			failures = append(failures, failure{call.name + "Cancelled", call.key, call.make(cancelled, f.s)})
		}
		require.NoError(f, f.s.Close())
		for _, call := range storeCalls {
			failures = append(failures, failure{call.name + "Closed", call.key, call.make(f.ctx, f.s)})
		}
		for _, failed := range failures {
			f.Log(failed.name)
			require.Error(f, failed.err)
			check(f, failed.key, failed.err)
		}
	}
}
