// Package storetest has the tests that every [store.Store] passes, yours too:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() store.Store {
//			path := filepath.Join(t.TempDir(), "state.db")
//			return func() store.Store { return open(t, path) }
//		})
//	}
//
// The names of its tests say what is wrong with a store that fails them. What a
// [store.Batcher] and a [store.Watcher] promise is tested if the store is one.
package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// Run tests a store. Each call of fresh makes a data set that is empty; each call
// of the function that it returns opens one more handle on that data set. Run
// closes the handles, and calls fresh again for each of its tests.
func Run(t *testing.T, fresh func(t *testing.T) (open func() store.Store)) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Keys", keys},
		{"Values", values},
		{"Aliasing", aliasing},
		{"Revisions", revisions},
		{"Conditions", conditions},
		{"Delete", deletes},
		{"Scan", scans},
		{"Batch", batches},
		{"Watch", watches},
		{"Contexts", contexts},
		{"Concurrency", concurrency},
		{"Closing", closing},
		{"Errors", failures},
		{"Durability", durability},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, fresh(t))) })
			}
		})
	}
}

// test is one test of a store, on data of its own.
type test struct {
	name string
	run  func(f *fixture)
}

// fixture is what a test works with: a data set that was empty when it began.
type fixture struct {
	*testing.T
	ctx  context.Context
	s    store.Store        // the first handle
	open func() store.Store // opens one more
}

func newFixture(t *testing.T, open func() store.Store) *fixture {
	f := &fixture{T: t, ctx: t.Context()}
	f.open = func() store.Store {
		s := open()
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	f.s = f.open()
	return f
}

// sub runs a part of a test, on the same data.
func (f *fixture) sub(name string, run func(f *fixture)) {
	f.Run(name, func(t *testing.T) { run(&fixture{T: t, ctx: f.ctx, s: f.s, open: f.open}) })
}

// put writes without failing.
func (f *fixture) put(key, value string, cond store.Condition) store.Revision {
	f.Helper()
	revision, err := f.s.Put(f.ctx, key, []byte(value), cond)
	require.NoError(f, err)
	require.NotEmpty(f, revision, "the revision of a write is empty")
	return revision
}

// has demands that an entry is there, in Get and in Scan.
func (f *fixture) has(key, value string, revision store.Revision) {
	f.Helper()
	want := store.Entry{Key: key, Value: []byte(value), Revision: revision}
	entry, err := f.s.Get(f.ctx, key)
	require.NoError(f, err)
	require.Equal(f, text(want), text(entry), "Get")
	entries := f.scan(key, "")
	require.NotEmpty(f, entries, "Scan does not yield %q", key)
	require.Equal(f, text(want), text(entries[0]), "Scan")
}

// hasNot demands that a key is not there, in Get and in Scan.
func (f *fixture) hasNot(key string) {
	f.Helper()
	entry, err := f.s.Get(f.ctx, key)
	require.ErrorIs(f, err, store.ErrNotFound)
	require.Zero(f, entry)
	require.NotContains(f, f.keys(key, ""), key)
}

// refused demands that a write failed with an error, and that the entry is what it
// was.
func (f *fixture) refused(err, sentinel error, key, value string, revision store.Revision) {
	f.Helper()
	require.ErrorIs(f, err, sentinel)
	require.NotErrorIs(f, err, store.ErrUnknownOutcome)
	f.has(key, value, revision)
}

// scan returns what a scan yields.
func (f *fixture) scan(prefix, after string) []store.Entry {
	f.Helper()
	var entries []store.Entry
	for entry, err := range f.s.Scan(f.ctx, prefix, after) {
		require.NoError(f, err)
		entries = append(entries, entry)
	}
	return entries
}

// keys returns the keys that a scan yields.
func (f *fixture) keys(prefix, after string) []string {
	f.Helper()
	return keysIn(f.scan(prefix, after))
}

func keysIn(entries []store.Entry) []string {
	var keys []string
	for _, entry := range entries {
		keys = append(keys, entry.Key)
	}
	return keys
}

// fill writes each key with itself as the value, in no order.
func (f *fixture) fill(keys []string) {
	f.Helper()
	f.together(8, func(worker int) error {
		for i := worker; i < len(keys); i += 8 {
			if _, err := f.s.Put(f.ctx, keys[i], []byte(keys[i]), store.IfAbsent); err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs n workers at the same time, waits for them and fails if one did.
func (f *fixture) together(n int, work func(worker int) error) {
	f.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for worker := range n {
		wg.Go(func() { errs[worker] = work(worker) })
	}
	wg.Wait()
	require.NoError(f, errors.Join(errs...))
}

// patience, if it is set, limits how long a call may take that something should
// end. Otherwise the limit is the -timeout of go test: a slow machine is no fault
// of a store. Tests of stores that hang on purpose set it.
var patience time.Duration

// hangs returns a channel that is ready when a call has to be given up, shortly
// before go test would end the process without saying which call it was.
func (f *fixture) hangs() <-chan time.Time {
	if patience > 0 {
		return time.After(patience)
	}
	if deadline, ok := f.Deadline(); ok {
		left := time.Until(deadline)
		return time.After(left - left/10)
	}
	return nil
}

// soon fails the test if a call hangs that a context, Close or another call
// should end.
func (f *fixture) soon(what string, call func()) {
	f.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-f.hangs():
		f.Fatalf("%s does not end", what)
	}
}

// readable is an entry as a failed comparison shows it.
type readable struct {
	Key, Value string
	Revision   store.Revision
}

func text(entry store.Entry) readable {
	return readable{entry.Key, string(entry.Value), entry.Revision}
}
