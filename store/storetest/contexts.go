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
		rest := randomBytes(300 << 10)
		current := "" // the last write that was certainly made
		for i := range 40 {
			number := fmt.Sprintf("%02d", i)
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*5*time.Microsecond)
			_, err := store.Put(ctx, f.s, "key", append([]byte(number), rest...), store.Always)
			cancel()
			entries, lookErr := f.s.Get(f.ctx, "key")
			require.NoError(f, lookErr)
			is := string(entries[0].Value)
			if is != "" {
				require.Len(f, is, len(number)+len(rest), "part of a value")
				is = is[:len(number)]
			}
			switch {
			case err == nil:
				require.Equal(f, number, is, "the write was acknowledged")
			case errors.Is(err, store.ErrUnknownOutcome):
				require.ErrorIs(f, err, context.DeadlineExceeded)
				return // the write may still be made: the key proves nothing from now on
			default:
				require.ErrorIs(f, err, context.DeadlineExceeded)
				require.Equal(f, current, is, "the error says that the write was not made")
			}
			current = is
		}
	}},
	{"DeadlineWhileReading", func(f *fixture) {
		keys := numbered("key ", 300)
		f.putKeys(keys)
		for i := range 40 {
			for name, read := range map[string]func(ctx context.Context) ([]store.Entry, error){
				"Get":  func(ctx context.Context) ([]store.Entry, error) { return f.s.Get(ctx, keys...) },
				"List": func(ctx context.Context) ([]store.Entry, error) { return collect(f.s.List(ctx, "", "", true)) },
			} {
				ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*10*time.Microsecond)
				entries, err := read(ctx)
				cancel()
				if err == nil {
					require.Equal(f, keys, keysOf(entries), "%s was cut short and returns no error", name)
					continue
				}
				require.ErrorIs(f, err, context.DeadlineExceeded, name)
				require.True(f, name == "List" || len(entries) == 0, "Get returns entries with an error")
			}
		}
		f.requireEntry("key", "value", f.put("key", "value", store.IfAbsent))
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
	{"GetMany", "", func(ctx context.Context, s store.Store) error {
		return getNothing(ctx, s, "there", "missing", "other")
	}},
	{"Put", "there", func(ctx context.Context, s store.Store) error { return put(ctx, s, "there", store.Always) }},
	{"PutNew", "new", func(ctx context.Context, s store.Store) error { return put(ctx, s, "new", store.IfAbsent) }},
	{"Delete", "there", func(ctx context.Context, s store.Store) error {
		return store.Delete(ctx, s, "there", store.Always)
	}},
	{"Batch", "", func(ctx context.Context, s store.Store) error {
		_, err := s.Batch(ctx, []store.Write{
			{Key: "there", Value: []byte(secret)}, {Key: "other", Delete: true}, {Key: "new"},
		})
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

func listNothing(ctx context.Context, s store.Store, values bool) error {
	entries, err := collect(s.List(ctx, "", "", values))
	if len(entries) > 0 {
		return errYielded
	}
	return err
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
